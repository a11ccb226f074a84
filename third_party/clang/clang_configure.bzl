"""Finds clang 19 and LLVM's tools beside it, which only occl_device.bc and its test need. Without them @clang//:config.bzl says HAVE_CLANG = False."""

_TOOLS = {"CLANG": "clang++", "LLC": "llc", "LLVM_AS": "llvm-as", "LLVM_DIS": "llvm-dis"}

def _clang_configure_impl(ctx):
    found = {name: ctx.which(tool + "-19") for name, tool in _TOOLS.items()}
    ctx.file("config.bzl", "".join(
        ["HAVE_CLANG = %s\n" % all(found.values())] +
        ["%s = \"%s\"\n" % (name, path or "") for name, path in found.items()],
    ))
    ctx.file("BUILD.bazel", "")

clang_configure = repository_rule(
    implementation = _clang_configure_impl,
    environ = [
        "OCCL_CLANG", # what of it tools/dev/bazel.sh finds, so that a server notices when it comes
        "PATH",
    ],
    local = True,
)
