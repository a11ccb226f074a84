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

HEAD = "collective,ranks,bytes,place,way,us,peer_us\n"


class GateTest(unittest.TestCase):
    def compare(self, before, now, *options):
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for name, rows in (("before.csv", before), ("now.csv", now)):
                names.append(os.path.join(folder, name))
                with open(names[-1], "w", encoding="utf-8") as table:
                    table.write(HEAD + "".join(f"allreduce,2,{row}\n" for row in rows))
            arguments = ["gate.py", "compare", *names, "--within", "5", *options]
            output = io.StringIO()
            with mock.patch.object(sys, "argv", arguments), redirect_stdout(output), redirect_stderr(output):
                return gate.main(), output.getvalue()

    def test_a_row_that_is_slower_beside_the_same_peer_fails(self):
        status, output = self.compare(["64,outofplace,run,10.0,10.0"], ["64,outofplace,run,11.0,10.0"])
        self.assertEqual(status, 1)
        self.assertIn("slower: allreduce/2/64/outofplace/run: 10.0 us -> 11.0 us", output)

    def test_a_row_that_is_slower_as_its_peer_is_passes(self):
        self.assertEqual(self.compare(["64,outofplace,run,10.0,10.0"], ["64,outofplace,run,15.0,15.0"])[0], 0)

    def test_a_faster_peer_alone_fails_nothing(self):
        self.assertEqual(self.compare(["64,outofplace,run,10.0,10.0"], ["64,outofplace,run,10.0,5.0"])[0], 0)

    def test_without_a_peer_the_time_decides(self):
        self.assertEqual(self.compare(["64,outofplace,run,10.0,"], ["64,outofplace,run,11.0,"])[0], 1)
        self.assertEqual(self.compare(["64,outofplace,run,10.0,"], ["64,outofplace,run,10.4,"])[0], 0)

    def test_the_best_of_several_measurements_counts(self):
        rows = ["64,outofplace,run,14.0,10.0", "64,outofplace,run,10.1,10.0"]
        self.assertEqual(self.compare(["64,outofplace,run,10.0,10.0"], rows)[0], 0)

    def test_exempt_rows_are_said_and_do_not_fail(self):
        status, output = self.compare(["64,outofplace,run,10.0,10.0"], ["64,outofplace,run,12.0,10.0"], "--exempt", "allreduce/*/64/*")
        self.assertEqual(status, 0)
        self.assertIn("slower, exempt: allreduce/2/64", output)

    def test_nothing_in_common_is_an_error(self):
        status, output = self.compare(["64,outofplace,run,10.0,10.0"], ["128,outofplace,run,10.0,10.0"])
        self.assertEqual(status, 2)
        self.assertIn("no row of the baseline was measured", output)

    def test_reports_of_both_kinds_are_read(self):
        report = ("| collective | ranks | bytes | OCCL us | p99 | Open MPI us | p99 | copying us | Open MPI / OCCL | copying / OCCL | verdict |\n"
                  "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
                  "| allreduce | 2 | 64 | 0.7 | 1.1 | 0.9 | 1.0 | 0.1 | 1.38 | 0.1 | pass |\n\n"
                  "| reduce in place, bytes | OCCL | graph | blocking | NCCL 2 | graph | blocking | symmetric | graph | blocking | best |\n"
                  "|---|---|---|---|---|---|---|---|---|---|---|\n"
                  "| 1024 | 4.4 | 3.4 | 13.7 | 6.8 | 6.0 | 16.0 | 6.0 | 3.9 | 13.7 | 1.36 |\n"
                  "| gather, bytes | OCCL | graph | blocking | NCCL 2 | graph | blocking | symmetric | graph | blocking | best |\n"
                  "|---|---|---|---|---|---|---|---|---|---|---|\n"
                  "| 64 | 1.0 | - | - | 2.0 | - | - | 3.0 | - | - | 2.00 |\n")
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
            file.write(report)
            file.flush()
            rows = [tuple(row.values()) for row in gate.rows_of(file.name, "2")]
        self.assertEqual(rows, [("allreduce", "2", "64", "outofplace", "run", "0.7", "0.9"),
                                ("reduce", "2", "1024", "inplace", "stream", "4.4", "6.0"),
                                ("reduce", "2", "1024", "inplace", "graph", "3.4", "3.9"),
                                ("reduce", "2", "1024", "inplace", "blocking", "13.7", "13.7"),
                                ("gather", "2", "64", "outofplace", "stream", "1.0", "2.0")])

    def test_committed_rows_can_be_read(self):
        folder = os.path.dirname(os.path.abspath(__file__))
        for name in ("host.csv", "gpu2.csv"):
            self.assertGreater(len(gate.best(gate.rows_of(os.path.join(folder, name)))), 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
