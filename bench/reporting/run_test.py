#!/usr/bin/env python3
"""The runner takes what a bench has printed into its table, or writes it as rows of the schema; tables
that nothing else reads become rows, too."""

import contextlib
import io
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
from unittest import mock

BENCH = pathlib.Path(os.path.abspath(__file__)).parent.parent
sys.path.insert(0, str(BENCH))
import report  # noqa: E402
import run  # noqa: E402
from reporting import columns, parse, rows  # noqa: E402

HOST = """| collective | ranks | bytes | OCCL us | p99 | Open MPI us | p99 | copying us | Open MPI / OCCL | copying / OCCL | verdict |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|
| allreduce | 2 | 64 | 0.7 | 1.1 | 0.9 | 1.5 | 0.1 | 1.38 | 0.06 | pass |
"""
LINKS = """commit 413eadf, 4 x NVIDIA H200, 580.159.04
| GB/s, 4 GPUs, parts of 64 MiB | 8 | 16 |
|---|---|---|
| loads from all | 310 | - |
"""
CALLS = """NCCL 2.28.9

| 64 calls in a row | host, us a call | until done, us a call |
|---|---:|---:|
| allreduce | 5.20 | 6.10 |
"""
JACOBI = """Jacobi, us an iteration

| n | host waits | graph | partitioned | graph | host waits / partitioned |
|---|---|---|---|---|---|
| 4096 | 90.1 | 40.0 | 30.5 | 20.5 | 2.95 |
"""
FOLDS = """| fold, GB/s read | 8 KiB |
|---|---:|
| float32 sum, 2 sources | 21.5 |
"""
COSTS = """| what | |
|---|---:|
| launch of an empty kernel | 3.24 us |
"""
MARKS = """| threads | mark (send), ns | mark (collective), ns |
|---:|---:|---:|
| 8 | 12.5 | 14.5 |
"""
STARTED = """us a collective

| bytes of allreduce, float | started | stream / started |
|---|---|---|
| 1024 | 11.5 | 0.40 |
"""


def figures(text: str, ranks: str = "") -> dict[tuple[str, ...], str]:
    return {
        (row.case, row.ranks, row.bytes, row.way, row.unit): row.value
        for row in columns.rows_of(text, "bench", ranks)
    }


class ColumnsTest(unittest.TestCase):
    def test_tables_of_all_forms_become_rows(self):
        for text, expected in (
            (
                LINKS,
                {("bench, GB/s, 4 GPUs, parts of 64 MiB, loads from all", "4", "", "8", "GB/s"): "310"},
            ),
            (
                CALLS,
                {
                    (f"bench, NCCL 2.28.9, 64 calls in a row, allreduce", "", "", way, "us"): value
                    for way, value in (("host, us a call", "5.20"), ("until done, us a call", "6.10"))
                },
            ),
            (
                JACOBI,
                {
                    ("bench, Jacobi, us an iteration, n 4096", "2", "", way, "us"): value
                    for way, value in (
                        ("host waits", "90.1"),
                        ("host waits, graph", "40.0"),
                        ("partitioned", "30.5"),
                        ("partitioned, graph", "20.5"),
                    )
                },
            ),
            (
                FOLDS,
                {
                    ("bench, fold, GB/s read, float32 sum, 2 sources", "", "", "8 KiB", "GB/s"): "21.5"
                },
            ),
            (COSTS, {("bench, launch of an empty kernel", "", "", "", "us"): "3.24"}),
            (
                MARKS,
                {
                    ("bench, threads 8", "", "", f"mark ({way}), ns", "ns"): value
                    for way, value in (("send", "12.5"), ("collective", "14.5"))
                },
            ),
            (STARTED, {("bench, us a collective, allreduce, float", "", "1024", "started", "us"): "11.5"}),
        ):
            with self.subTest(text.splitlines()[0]):
                found = figures(text, "2" if text == JACOBI else "")
                ratios = {key for key in found if " / " in key[3]}
                self.assertEqual({k: v for k, v in found.items() if k not in ratios}, expected)
                self.assertTrue(all(key[4] == "" for key in ratios), "a ratio has no unit")

    def test_rows_have_the_schema(self):
        for text in (LINKS, CALLS, JACOBI, COSTS, MARKS, STARTED):
            found = columns.rows_of(text, "bench")
            self.assertEqual(len({row.key() for row in found}), len(found))
            for row in found:
                rows.check(row, "here")

    def test_errors_say_what_is_wrong(self):
        for text, message in (
            ("nothing\n", "bench: no table of a bench was found"),
            (MARKS.replace(" | 14.5", ""), "a row with 2 cells under a heading with 3"),
        ):
            with self.assertRaisesRegex(rows.ReportError, message):
                columns.rows_of(text, "bench")


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name, text in (("host", HOST), ("marks", MARKS), ("rows", "")):
            (self.folder / name).write_text(text, encoding="utf-8")
        self.benches = {
            name: run.Bench(name, table, "", command, "idle")
            for name, table, command in (
                ("host", "host", f"cat {self.folder}/$1"),
                ("own", "host", f"echo aside; bench={BENCH} cp {self.folder}/rows $ROWS"),
                ("marks", "", f"cat {self.folder}/marks"),
                ("fails", "", f"cat {self.folder}/marks; exit 3"),
            )
        }

    def run_bench(self, *arguments):
        said = io.StringIO()
        with mock.patch.object(run, "benches", lambda: self.benches), contextlib.redirect_stdout(
            said
        ), contextlib.redirect_stderr(said):
            return run.main(["--results", str(self.folder), *arguments]), said.getvalue()

    def test_rows_go_into_the_table_with_command_and_conditions(self):
        self.assertEqual(self.run_bench("--conditions", "nobody", "host", "host")[0], 0)
        found = rows.read_rows(self.folder / "host.csv")
        self.assertEqual([row.value for row in found if row.metric == "time"][0], "0.7")
        origin = rows.read_runs(self.folder / "runs.csv")[found[0].run]
        self.assertEqual(origin["command"], "bench/run.py host host")
        self.assertRegex(origin["conditions"], r"^load average at the start [\d.]+; idle; nobody$")

    def test_rows_that_a_bench_writes_itself_come_before_what_it_prints(self):
        row = rows.Row("allreduce", "time", "us", "4.5", ranks="2", bytes="64", way="run")
        parse.write_own_rows(str(self.folder / "rows"), [row])
        self.assertEqual(self.run_bench("own")[0], 0)
        self.assertEqual(rows.read_rows(self.folder / "host.csv")[0].value, "4.5")

    def test_a_file_of_rows_in_place_of_the_table(self):
        path = self.folder / "out.csv"
        self.assertEqual(self.run_bench("--csv", str(path), "host", "host")[0], 0)
        self.assertFalse((self.folder / "host.csv").exists())
        self.assertEqual(len(parse.parse(path.read_text(), "out")[0]), 7)
        self.assertEqual(self.run_bench("--csv", str(path), "marks")[0], 0)
        self.assertEqual(parse.parse(path.read_text(), "out")[0], columns.rows_of(MARKS, "marks"))

    def test_nothing_is_taken_of_what_failed_or_was_to_be_printed_only(self):
        path = self.folder / "out.csv"
        status, said = self.run_bench("--csv", str(path), "fails")
        self.assertEqual(status, 3)
        self.assertIn("12.5", said)
        self.assertEqual(self.run_bench("--print", "host", "host")[0], 0)
        self.assertFalse(path.exists() or (self.folder / "host.csv").exists())

    def test_errors_end_with_a_line_that_says_what(self):
        status, said = self.run_bench("hots")
        self.assertEqual(status, 2)
        self.assertIn("there is no bench 'hots'", said)
        self.assertEqual(self.run_bench("host", "rows")[0], 2)

    def test_the_listed_benches_have_tables_that_there_are(self):
        found = run.benches()
        for bench in found.values():
            self.assertTrue(bench.command, bench.name)
            for ranks in ("2", "4", "8"):
                table = run.table_of(bench, {"ranks": ranks}, "")
                self.assertIn(table, ("", *report.tables.TABLES), bench.name)
        self.assertEqual(
            {run.table_of(bench, {}, ranks) for bench in found.values() for ranks in "248"} - {""},
            set(report.tables.TABLES),
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
