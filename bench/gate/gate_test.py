#!/usr/bin/env python3
"""Rows that the gate must let through, and rows that it must not."""

import io
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gate  # noqa: E402

HEAD = "case,place,ranks,bytes,way,library,metric,unit,value,run\n"
RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "results")
HOST = (
    "| collective | ranks | bytes | OCCL us | p99 | Open MPI us | p99 | copying us | Open MPI / OCCL | copying / OCCL | verdict |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
    "| allreduce | 2 | 64 | 0.9 | 1.1 | 0.9 | 1.0 | 0.1 | 1.00 | 0.1 | pass |\n"
)


def rows(measured: list[str]) -> str:
    """measured: bytes, our time, the peer's or nothing."""
    text = HEAD
    for row in measured:
        size, ours, peer = row.split(",")
        text += f"allreduce,outofplace,2,{size},run,OCCL,time,us,{ours},\n"
        text += f"allreduce,outofplace,2,{size},run,Open MPI,time,us,{peer},\n" if peer else ""
        text += f"allreduce,outofplace,2,{size},run,memcpy,time,us,0.1,\n"
    return text


class GateTest(unittest.TestCase):
    def compare(self, before, *now, options=()):
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for number, text in enumerate((before, *now)):
                names.append(os.path.join(folder, f"{number}.txt"))
                with open(names[-1], "w", encoding="utf-8") as table:
                    table.write(text)
            arguments = ["gate.py", *names, "--within", "5", *options]
            output = io.StringIO()
            with mock.patch.object(sys, "argv", arguments), redirect_stdout(
                output
            ), redirect_stderr(output):
                return gate.main(), output.getvalue()

    def test_a_row_that_is_slower_beside_the_same_peer_fails(self):
        status, output = self.compare(rows(["64,10.0,10.0"]), rows(["64,11.0,10.0"]))
        self.assertEqual(status, 1)
        self.assertIn("slower: allreduce/2/64/outofplace/run: 10 us -> 11 us", output)

    def test_a_row_that_is_slower_as_its_peer_is_passes(self):
        self.assertEqual(self.compare(rows(["64,10.0,10.0"]), rows(["64,15.0,15.0"]))[0], 0)

    def test_a_faster_peer_alone_fails_nothing(self):
        self.assertEqual(self.compare(rows(["64,10.0,10.0"]), rows(["64,10.0,5.0"]))[0], 0)

    def test_without_a_peer_the_time_decides(self):
        self.assertEqual(self.compare(rows(["64,10.0,"]), rows(["64,11.0,"]))[0], 1)
        self.assertEqual(self.compare(rows(["64,10.0,"]), rows(["64,10.4,"]))[0], 0)

    def test_the_best_of_several_measurements_counts(self):
        self.assertEqual(
            self.compare(rows(["64,10.0,10.0"]), rows(["64,14.0,10.0"]), rows(["64,10.1,10.0"]))[0],
            0,
        )

    def test_exempt_rows_are_said_and_do_not_fail(self):
        status, output = self.compare(
            rows(["64,10.0,10.0"]), rows(["64,12.0,10.0"]), options=("--exempt", "allreduce/*/64/*")
        )
        self.assertEqual(status, 0)
        self.assertIn("slower, exempt: allreduce/2/64", output)

    def test_nothing_in_common_is_an_error(self):
        status, output = self.compare(rows(["64,10.0,10.0"]), rows(["128,10.0,10.0"]))
        self.assertEqual(status, 2)
        self.assertIn("no row of the baseline was measured", output)

    def test_output_of_a_bench_is_compared_with_a_table(self):
        status, output = self.compare(rows(["64,0.7,0.9"]), HOST)
        self.assertEqual(status, 1)
        self.assertIn("0.7 us -> 0.9 us (peer 0.9 -> 0.9)", output)

    def test_a_file_that_is_neither_is_an_error(self):
        status, output = self.compare(rows(["64,10.0,10.0"]), "nothing\n")
        self.assertEqual(status, 2)
        self.assertIn("no table or list of a bench was found", output)

    def test_committed_tables_can_be_compared(self):
        for name in ("host.csv", "gpus_2.csv", "gpus_4.csv"):
            self.assertGreater(len(gate.timed(gate.rows_of(os.path.join(RESULTS, name), ""))), 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
