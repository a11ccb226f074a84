"""Device code by the installed nvcc. Without a toolkit these targets do not exist (see //third_party/cuda)."""

load("@cuda//:config.bzl", "HAVE_CUDA", "NVCC")

_FLAGS = "-std=c++20 -O3 -gencode=arch=compute_90,code=sm_90 -Werror=all-warnings " + \
         "--expt-relaxed-constexpr -Xcompiler -fPIC,-Wall,-Wextra,-Wno-unused-parameter"

# NVTX 3's headers, where they are.
NVTX_HEADERS = ["@cuda//:nvtx"] if HAVE_CUDA else []

def _headers_impl(ctx):
    return [DefaultInfo(files = depset(transitive = [
        dep[CcInfo].compilation_context.headers
        for dep in ctx.attr.deps
    ]))]

# The headers of libraries and of all that they depend on, for actions that compile by themselves.
_headers = rule(
    implementation = _headers_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def cuda_library(name, srcs, hdrs = [], deps = [], **kwargs):
    """A cc_library of .cu files. `hdrs` and the headers of `deps` are all that they include."""
    if not HAVE_CUDA:
        return
    _headers(
        name = name + "_headers",
        deps = deps,
        visibility = ["//visibility:private"],
    )
    objects = []
    for src in srcs:
        obj = src.replace(".cu", ".cu.o")
        native.genrule(
            name = name + "_" + src.replace(".", "_"),
            srcs = [src] + hdrs + [":" + name + "_headers"],
            outs = [obj],
            # nvcc names its temporary files after its process id, which is the same in every sandbox.
            cmd = "export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && " +
                  NVCC + " " + _FLAGS + " -I . -c $(location " + src + ") -o $@",
        )
        objects.append(obj)
    native.cc_library(
        name = name,
        srcs = objects,
        hdrs = hdrs,
        deps = deps + ["@cuda//:cudart_static"],
        **kwargs
    )

def cuda_cc_library(deps = [], **kwargs):
    """A cc_library of host code that calls the CUDA runtime."""
    if HAVE_CUDA:
        native.cc_library(deps = deps + ["@cuda//:cudart_static"], **kwargs)

def cuda_cc_binary(**kwargs):
    """A cc_binary whose libraries exist only where there is a CUDA toolkit."""
    if HAVE_CUDA:
        native.cc_binary(**kwargs)

def cuda_cc_test(deps = [], **kwargs):
    """A cc_test of host code that calls the CUDA runtime; it passes where there is no device."""
    if HAVE_CUDA:
        native.cc_test(deps = deps + ["@cuda//:cudart_static"], **kwargs)
