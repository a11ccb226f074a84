"""lit configuration of all of test/: the tools that a test names come from Bazel's runfiles."""
import os

import lit.formats

root = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])

config.name = "occl"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".coll", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.environ["TEST_TMPDIR"]
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(root, d) for d in ("tools/occlc", "tools/occl-opt", "tools/occl-run", "external/llvm/bin")]
    + [os.environ["PATH"]]
)
for name in ("OCCL_MUTANT", "OCCL_MUTANT_TRACE"):  # see test/mutation
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
config.substitutions.append(("%python", "python3"))
config.substitutions.append(("%algorithms", os.path.join(root, "algorithms")))
config.substitutions.append(("%topologies", os.path.join(root, "topologies")))
config.substitutions.append(("%compile_time", os.path.join(root, "bench/compile_time")))
config.substitutions.append(("%schedules", os.path.join(root, "bench/schedules")))
