"""Tests of devices once more, as where these do not access each other's memory."""

load("//build_defs:cuda.bzl", "cuda_cc_test")

def through_host_tests(names, deps):
    """through_host_<name>_test of each <name>_test.cpp; deps: what all of them together need."""
    for name in names:
        cuda_cc_test(
            name = "through_host_" + name + "_test",
            size = "medium",
            srcs = [name + "_test.cpp"],
            deps = deps + [
                "//test/gpu/harness:through_host",
                "@system//:gtest_main",
            ],
        )
