"""Device code by the installed nvcc. Without a toolkit these targets do not exist (see //third_party/cuda)."""

load("@cuda//:config.bzl", "HAVE_CUDA", "NVCC")

_FLAGS = "-std=c++20 -O3 -gencode=arch=compute_90,code=sm_90 -Werror=all-warnings " + \
         "--expt-relaxed-constexpr -Xcompiler -fPIC,-Wall,-Wextra,-Wno-unused-parameter"

def cuda_library(name, srcs, hdrs = [], deps = [], **kwargs):
    """A cc_library of .cu files. `hdrs` names every header of the package that they include; headers of other
    packages come by label in `deps_hdrs` (a genrule does not follow includes)."""
    deps_hdrs = kwargs.pop("deps_hdrs", [])
    if not HAVE_CUDA:
        return
    objects = []
    for src in srcs:
        obj = src.replace(".cu", ".cu.o")
        native.genrule(
            name = name + "_" + src.replace(".", "_"),
            srcs = [src] + hdrs + deps_hdrs,
            outs = [obj],
            cmd = NVCC + " " + _FLAGS + " -I . -c $(location " + src + ") -o $@",
        )
        objects.append(obj)
    native.cc_library(
        name = name,
        srcs = objects,
        hdrs = hdrs,
        deps = deps + ["@cuda//:cudart_static"],
        **kwargs
    )
