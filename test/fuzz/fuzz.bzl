"""Fuzz targets: a libFuzzer program, and a test of what it has found."""

def fuzz_target(name, srcs, deps, corpus):
    """`<name>`, to be built with --config=fuzz, and `<name>_replay`, a test that runs it on the files of `corpus`, folders
    of this package or files of others."""
    native.cc_library(
        name = name + "_target",
        testonly = True,
        srcs = srcs,
        deps = deps,
        alwayslink = True,
    )
    native.cc_binary(
        name = name,
        testonly = True,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":" + name + "_target"],
    )
    native.cc_test(
        name = name + "_replay",
        size = "small",
        srcs = ["replay.cpp"],
        args = ["test/fuzz/corpus/" + name] + ["algorithms" for label in corpus if label == "//algorithms"],
        data = native.glob(["corpus/" + name + "/**"]) + corpus,
        deps = [":" + name + "_target"],
    )
