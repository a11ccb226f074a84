"""Tests of devices once more, with the same sources in another environment."""

load("//build_defs:cuda.bzl", "cuda_cc_test")

def _tests_as(environment, names, deps):
    for name in names:
        cuda_cc_test(
            name = environment + "_" + name + "_test",
            size = "medium",
            srcs = [name + "_test.cpp"],
            deps = deps + [
                "//test/gpu/harness:" + environment,
                "@system//:gtest_main",
            ],
        )

def through_host_tests(names, deps):
    """through_host_<name>_test of each <name>_test.cpp: devices do not access each other's memory. deps: what all of them together need."""
    _tests_as("through_host", names, deps)

def as_needed_tests(names, deps):
    """as_needed_<name>_test: ranks take device memory as calls need it."""
    _tests_as("as_needed", names, deps)

def between_machines_tests(names, deps):
    """between_machines_<name>_test: ranks, which are processes, are as on two machines."""
    _tests_as("between_machines", names, deps)
