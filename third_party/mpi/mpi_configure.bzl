"""Finds Open MPI, which only the benchmark and tests of mpix_occl.h need. Without it @mpi//:config.bzl says HAVE_MPI = False."""

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "mpi",
    hdrs = glob(["include/**"]),
    defines = ["OMPI_SKIP_MPICXX"], # its C++ interface, long removed from the standard, does not compile cleanly
    includes = ["include"],
    linkopts = %s,
)
"""

def _ask(ctx, mpicc, what):
    return ctx.execute([mpicc, "--showme:" + what]).stdout.strip().split(" ")

def _mpi_configure_impl(ctx):
    mpicc = ctx.which("mpicc")
    # Other MPIs' wrappers do not know the question, and answer nothing, or anything.
    places = [d for d in _ask(ctx, mpicc, "incdirs") if d.startswith("/") and ctx.path(d + "/mpi.h").exists] if mpicc else []
    if not places:
        ctx.file("config.bzl", "HAVE_MPI = False\n")
        ctx.file("BUILD.bazel", "")
        return
    ctx.symlink(places[0], "include")
    linkopts = ["-L" + d for d in _ask(ctx, mpicc, "libdirs")] + \
               ["-l" + library for library in _ask(ctx, mpicc, "libs")]
    ctx.file("BUILD.bazel", _BUILD % repr(linkopts))
    ctx.file("config.bzl", "HAVE_MPI = True\n")

mpi_configure = repository_rule(
    implementation = _mpi_configure_impl,
    environ = ["PATH"],
    local = True,
)
