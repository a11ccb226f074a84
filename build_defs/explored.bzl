"""Tests of the runtime under a deterministic scheduler: all that they link is built with -DOCCL_EXPLORE.

The compiler reports each access to memory, as to thread sanitizer; the explorer has the functions that it calls, and the library is
not linked.
"""

_COPTS = [
    "-DOCCL_EXPLORE",
    "-fsanitize=thread",
    "--param=tsan-instrument-func-entry-exit=0",
    "-Wno-tsan",  # that fences are not known: the explorer knows them
    # Inlined, or checked, they would not be reported.
    "-U_FORTIFY_SOURCE",
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
    "-g1",  # so that a race has lines
]

def _explore_impl(settings, attr):
    copts = settings["//command_line_option:copt"]
    return {"//command_line_option:copt": copts + _COPTS}

_explore = transition(
    implementation = _explore_impl,
    inputs = ["//command_line_option:copt"],
    outputs = ["//command_line_option:copt"],
)

def _explored_impl(ctx):
    binary = ctx.attr.binary[0][DefaultInfo]
    executable = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(
        output = executable,
        target_file = binary.files_to_run.executable,
        is_executable = True,
    )
    return [DefaultInfo(executable = executable, runfiles = binary.default_runfiles)]

_explored_test = rule(
    implementation = _explored_impl,
    test = True,
    attrs = {
        "binary": attr.label(cfg = _explore),
        "_whitelist_function_transition": attr.label(
            default = "@bazel_tools//tools/whitelists/function_transition_whitelist",
        ),
    },
)

def explored_test(name, srcs, deps, size = "small"):
    """A googletest whose sources and dependencies are built for exploration; `deps` exist only there."""
    native.cc_binary(
        name = name + "_binary",
        testonly = True,
        srcs = srcs,
        tags = ["manual"],
        deps = deps + ["@system//:gtest_main"],
    )
    _explored_test(
        name = name,
        size = size,
        binary = ":" + name + "_binary",
    )
