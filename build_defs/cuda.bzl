"""Device code by the installed nvcc. Without a toolkit these targets do not exist (see //third_party/cuda)."""

load("@cuda//:config.bzl", "HAVE_CUDA", "NVCC")

_FLAGS = "-std=c++20 -O3 %s -Werror=all-warnings " + \
         "--expt-relaxed-constexpr -Xcompiler -fPIC,-Wall,-Wextra,-Wno-unused-parameter"

# Everyday builds have machine code for one architecture. Those with --config=package (.bazelrc) have that of all, and PTX, which CUDA compiles
# for later devices when it loads it.
_ONE_ARCHITECTURE = "-gencode=arch=compute_90,code=sm_90"
_ALL = [80, 90, 100]
_ALL_ARCHITECTURES = " ".join(
    ["-gencode=arch=compute_%d,code=sm_%d" % (each, each) for each in _ALL] +
    ["-gencode=arch=compute_%d,code=compute_%d" % (_ALL[-1], _ALL[-1]), "-DOCCL_PTX_FOR=%d" % _ALL[-1]],
)

# nvcc would name the flag alone.
_HAS_ALL = " && ".join([
    "{ %s --list-gpu-arch | grep -qx compute_%d || { echo '%s cannot compile for compute capability %d.%d, which --config=package asks for: " %
    (NVCC, each, NVCC, each // 10, each % 10) +
    "take another toolkit (CUDA_HOME; 12.8 has all), or change build_defs/cuda.bzl' >&2; exit 1; }; }"
    for each in _ALL
]) + " && "

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

def _compile(src, architectures):
    # nvcc names its temporary files after its process id, which is the same in every sandbox.
    return "export TMPDIR=$$(mktemp -d) && trap 'rm -rf $$TMPDIR' EXIT && " + \
           NVCC + " " + _FLAGS % architectures + " -I . -c $(location " + src + ") -o $@"

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
            cmd = select({
                "//build_defs:all_architectures": _HAS_ALL + _compile(src, _ALL_ARCHITECTURES),
                "//conditions:default": _compile(src, _ONE_ARCHITECTURE),
            }),
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
