"""Finds the CUDA toolkit. Without one, @cuda//:config.bzl says HAVE_CUDA = False and device targets are left out."""

def _cuda_configure_impl(ctx):
    root = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = ctx.path(root + "/bin/nvcc").exists
    ctx.file("config.bzl", "HAVE_CUDA = %s\nNVCC = \"%s/bin/nvcc\"\n" % (found, root))
    if found:
        ctx.symlink(root + "/include", "include")
        ctx.symlink(root + "/lib64", "lib64")
    ctx.file("BUILD.bazel", _BUILD if found else "")

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "cudart_static",
    srcs = ["lib64/libcudart_static.a"],
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = ["-ldl", "-lpthread", "-lrt"],
)

# NVTX 3, which is headers alone and needs neither the CUDA runtime nor a driver.
cc_library(
    name = "nvtx",
    hdrs = glob(["include/nvtx3/**"]),
    includes = ["include"],
    linkopts = ["-ldl"],
)
"""

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
