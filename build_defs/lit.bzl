"""One Bazel test for each lit file."""

_LIT_DATA = [
    "//test:lit_config",
    "@llvm//:FileCheck",
    "@llvm//:lit",
    "@llvm//:not",
    "@llvm//:split-file",
]

def lit_tests(srcs, data, size = "small"):
    """A sh_test named `<file>.test` for each of srcs; `data` are the tools and inputs that the files use.

    `lit_files` are srcs themselves, for tests that read them.
    """
    native.filegroup(
        name = "lit_files",
        srcs = srcs,
        visibility = ["//test:__subpackages__"],
    )
    for src in srcs:
        native.sh_test(
            name = src + ".test",
            size = size,
            srcs = ["//build_defs:run_lit.sh"],
            args = ["$(rootpath " + src + ")"],
            data = [src] + _LIT_DATA + data,
        )
