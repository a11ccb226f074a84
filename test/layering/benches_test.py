#!/usr/bin/env python3
"""Each program of bench/ is run by a line of bench/benches.tsv: it is named there, or in a script of bench/ that is."""

import os
import pathlib
import re
import unittest

BENCH = pathlib.Path(os.path.realpath(__file__)).parents[2] / "bench"
PROGRAM = re.compile(r'^ *\[?(?:cuda_)?cc_binary\(\n +name = "(\w+)"', re.M)


class BenchesTest(unittest.TestCase):
    def test_each_program_is_run_by_a_bench(self):
        listed = (BENCH / "benches.tsv").read_text()
        run = listed + "".join(
            script.read_text()
            for script in BENCH.rglob("*.sh")
            if str(script.parent.relative_to(BENCH.parent)) in listed
        )
        programs = [
            (name, str(build.relative_to(BENCH.parent)))
            for build in BENCH.rglob("BUILD.bazel")
            for name in PROGRAM.findall(build.read_text())
        ]
        self.assertGreater(len(programs), 15)
        missing = [f"{build}: {name}" for name, build in programs if not re.search(rf"\b{name}\b", run)]
        self.assertEqual(missing, [], "bench/benches.tsv does not run them")


if __name__ == "__main__":
    unittest.main(verbosity=2)
