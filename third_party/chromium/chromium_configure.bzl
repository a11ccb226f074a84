"""Finds a Chromium, which only the test of pages in a browser needs. Without one @chromium//:config.bzl says CHROMIUM = ""."""

def _chromium_configure_impl(ctx):
    found = [ctx.which(name) for name in ["chromium", "chromium-headless-shell", "google-chrome"]]
    ctx.file("config.bzl", "CHROMIUM = \"%s\"\n" % ([path for path in found if path] + [""])[0])
    ctx.file("BUILD.bazel", "")

chromium_configure = repository_rule(
    implementation = _chromium_configure_impl,
    environ = [
        "OCCL_CHROMIUM", # what of it tools/dev/bazel.sh finds, so that a server notices when it comes
        "PATH",
    ],
    local = True,
)
