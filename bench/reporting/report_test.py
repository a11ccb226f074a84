#!/usr/bin/env python3
"""What the benches print is read as rows, newer rows take the place of older ones, and a page
that is not its table's is found."""

import io
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

BENCH = pathlib.Path(os.path.abspath(__file__)).parent.parent
sys.path.insert(0, str(BENCH))
import report  # noqa: E402
from reporting import parse, rows  # noqa: E402
from reporting.rows import Row  # noqa: E402
from reporting.tables import COLLECTIVES  # noqa: E402

HOST = """| collective | ranks | bytes | OCCL us | p99 | Open MPI us | p99 | copying us | Open MPI / OCCL | copying / OCCL | verdict |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|
| allreduce | 2 | 64 | 0.7 | 1.1 | 0.9 | 1.5 | 0.1 | 1.38 | 0.06 | pass |
| broadcast | 4 | 1024 | 2.0 | 2.1 | 4.0 | 4.1 | 0.2 | 2.00 | 0.10 | pass |
"""
PARTITIONED = """| partitions | bytes | OCCL us | polling us | one MPI_Send us | MPI_Isend each us | MPI_Send_init each us |
|---|---|---|---|---|---|---|
| 8, the last one late | 65536 | 31.0 | 1.8 | 11.5 | 3.0 | 2.8 |
"""
GPU = """commit 413eadf, 2 x NVIDIA H200, 580.159.04
| reduce in place, bytes | OCCL | graph | blocking | NCCL 2.28.9 | graph | blocking | symmetric | graph | blocking | best NCCL / OCCL: plain | graph | blocking |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
| 1024 | 3.1 | 2.7 | 11.2 | 6.8 | 4.8 | 13.8 | 6.0 | 4.7 | - | 1.93 | 1.75 | 1.23 |
"""
EXCHANGE = """commit 413eadf, 2 x NVIDIA H200, 580.159.04

| ring, bytes to a rank | OCCL | graph | NCCL 2.28.9 | graph | NCCL / OCCL | graph |
|---|---|---|---|---|---|---|
| 1024 | 8.4 | 4.6 | 10.3 | 6.3 | 1.23 | 1.39 |

| pairs, bytes to a rank | OCCL | graph | NCCL - | graph | NCCL / OCCL | graph |
|---|---|---|---|---|---|---|
| 4096 | 9.8 | 5.0 | 0.0 | 0.0 | 0.00 | 0.00 |
"""
SLICE = """| bytes | hand LL | hand push | one-shot push | / hand | hand two-shot | NCCL, graph |
|---|---|---|---|---|---|---|
| 1024 | 3.22 (b2) | 2.96 (b1) | 8.02 (b2) | 2.71 |  | 14.86 |
"""
TRAINING = """| 161 all-reduces, 102.2 MB | us | GB/s |
|---|---|---|
| OCCL, daemon of 32 thread blocks, each rank in its own random order | 834 | 122.5 |
| NCCL 2.28.9, in a stream, in buckets | 472 | 216.4 |
| NCCL 2.28.9, symmetric, in a stream, in buckets | 489 | 209.3 |
"""
SUBMISSIONS = """| bytes | occlStart | 99 % | occlCall | 99 % | in the stream | NCCL | in the stream, in a row | occlCall in a row |
|---|---|---|---|---|---|---|---|---|
| 1024 | 12.0 | 18.0 | 12.9 | 16.0 | 0.0 | 15.4 | 0.0 | 4.4 |
"""
LATENCY = """callback, may block           2 ranks     3.740 us an operation (a tenth of the runs    3.500 or less, p99    5.250)
  until it begins             2 ranks     2.660 us an operation (a tenth of the runs    2.500 or less, p99    3.750)
"""
COSTS = """median                                                           ns OCCL paper, ns
context load (16 bytes, last written by another thread)         0.9            450
both                                                           16.9   7000 to 8000
"""
QUEUES = """ns a completion, written and taken out (median of 7 runs of 50000 a thread); the OCCL paper has 7000 to 8000
for one submission read and one completion written on a GPU.

producers           ring   packed ring         slots
1                   27.8          26.6          28.9
"""
SEQUENCES = """memory of a rank                                bytes
a communicator, together                       751616

median time of a start                             ns
10 sequences in turn, 10000 have been used         318
"""


def figures(text: str, ranks: str = "") -> dict[tuple[str, ...], str]:
    return {
        (row.case, row.place, row.ranks, row.bytes, row.way, row.library, row.metric): row.value
        for row in parse.parse(text, "output", ranks)[0]
    }


class ParseTest(unittest.TestCase):
    def test_host_collectives(self):
        found = figures(HOST)
        self.assertEqual(len(found), 14)
        self.assertEqual(found["allreduce", "outofplace", "2", "64", "run", "OCCL", "time"], "0.7")
        self.assertEqual(
            found["allreduce", "outofplace", "2", "64", "run", "Open MPI", "ratio"], "1.38"
        )
        self.assertEqual(found["broadcast", "inplace", "4", "1024", "run", "memcpy", "time"], "0.2")

    def test_partitioned_sends(self):
        found = figures(PARTITIONED)
        self.assertEqual(len(found), 5)
        where = ("partitioned send", "", "2", "65536", "8, the last one late")
        self.assertEqual(found[*where, "OCCL", "time"], "31.0")
        self.assertEqual(found[*where, "OCCL, polling", "time"], "1.8")
        self.assertEqual(found[*where, "MPI_Send_init each", "time"], "2.8")

    def test_exchanges(self):
        values = figures(EXCHANGE)
        self.assertEqual(len(values), 8)
        ring, pairs = (
            (f"sendrecv {shape}", "outofplace-ordinary", "2", size)
            for shape, size in (("ring", "1024"), ("pairs", "4096"))
        )
        self.assertEqual(values[*ring, "stream", "NCCL", "time"], "10.3")
        self.assertEqual(values[*ring, "graph", "best NCCL", "ratio"], "1.39")
        self.assertEqual(values[*pairs, "graph", "OCCL", "time"], "5.0")

    def test_gpu_collectives_with_what_they_say_of_their_origin(self):
        found, origin = parse.parse(GPU, "output")
        self.assertEqual(
            (origin["commit"], origin["ranks"], origin["machine"]), ("413eadf", "2", "NVIDIA H200")
        )
        values = figures(GPU)
        self.assertEqual(len(found), 11)  # 12 but for the one that was not measured
        self.assertEqual(
            values["reduce", "inplace", "2", "1024", "graph", "NCCL symmetric", "time"], "4.7"
        )
        self.assertEqual(
            values["reduce", "inplace", "2", "1024", "blocking", "best NCCL", "ratio"], "1.23"
        )
        ordinary = figures(GPU.replace("reduce in place,", "reduce bfloat16 ordinary,"))
        self.assertEqual(
            ordinary["reduce", "outofplace-bfloat16-ordinary", "2", "1024", "graph", "OCCL", "time"],
            "2.7",
        )

    def test_kernels_by_hand(self):
        where = ("allreduce", "outofplace", "8", "1024")
        self.assertEqual(
            figures(SLICE, "8"),
            {
                (*where, "one-shot LL", "by hand", "time"): "3.22",
                (*where, "one-shot push", "by hand", "time"): "2.96",
                (*where, "graph", "NCCL", "time"): "14.86",
            },
        )

    def test_a_step_of_training(self):
        step = "training step, 161 all-reduces, 102.2 MB"
        found = figures(TRAINING, "4")
        self.assertEqual(
            found[step, "", "4", "", "in a stream, in buckets", "NCCL symmetric", "time"], "489"
        )
        self.assertEqual(found[step, "", "4", "", "in a stream, in buckets", "NCCL", "time"], "472")

    def test_submissions_without_what_was_not_measured(self):
        found = figures(SUBMISSIONS, "2")
        case = "allreduce, from host to host"
        self.assertEqual(found[case, "", "2", "1024", "occlCall", "OCCL", "p99"], "16.0")
        self.assertEqual(found[case, "", "2", "1024", "ncclAllReduce", "NCCL", "time"], "15.4")
        self.assertEqual(len(found), 6)

    def test_latency_of_callbacks(self):
        case = "allreduce, submission to completion"
        found = figures(LATENCY)
        self.assertEqual(found[case, "", "2", "64", "callback, may block", "OCCL", "time"], "3.740")
        self.assertEqual(
            found[case, "", "2", "64", "callback, may block, until it begins", "OCCL", "p99"],
            "3.750",
        )

    def test_costs_queues_and_sequences(self):
        self.assertEqual(figures(COSTS)["both", "", "", "", "", "OCCL paper", "time"], "7000 8000")
        self.assertEqual(
            figures(QUEUES)["completion queue", "", "1", "", "packed ring", "OCCL", "time"], "26.6"
        )
        found = figures(SEQUENCES)
        self.assertEqual(
            found["a communicator, together", "", "", "", "", "OCCL", "memory"], "751616"
        )
        self.assertEqual(
            found["10 sequences in turn, 10000 have been used", "", "", "", "", "OCCL", "time"],
            "318",
        )

    def test_rows_of_a_python_bench_are_read_as_they_are(self):
        row = Row("ring, 64 ranks", "processor time", "s", ">860", library="MSCCLang")
        with tempfile.NamedTemporaryFile("r", suffix=".csv", encoding="utf-8") as file:
            parse.write_own_rows(file.name, [row])
            self.assertEqual(parse.parse(file.read(), "output")[0], [row])

    def test_errors_say_where_and_what(self):
        header = ",".join(parse.OWN_FIELDS)
        for text, message in (
            ("", "output: no table or list of a bench was found"),
            (HOST.replace(" | pass", ""), "a row with 10 cells under a heading with 11"),
            (TRAINING, "it does not say the number of ranks"),
            (f"{header}\nring,,x,,,OCCL,time,s,1\n", "output:2: ranks is 'x', not a number"),
            (f"{header}\nring,,,,,OCCL,time,s,soon\n", "output:2: the value is 'soon'"),
            ("case,value\nring,1\n", "output:2: a row must have 9 fields"),
        ):
            with self.subTest(message), self.assertRaisesRegex(rows.ReportError, message):
                parse.parse(text, "output")


class MergeTest(unittest.TestCase):
    def row(self, value, size="64", library="OCCL", metric="time", run="new", case="allreduce"):
        return Row(case, metric, "us", value, ranks="2", bytes=size, library=library, run=run)

    def test_a_new_run_replaces_all_that_stood_beside(self):
        old = [
            self.row("1", run="old"),
            self.row("3", library="Open MPI", run="old"),
            self.row("9", size="128", run="old"),
        ]
        new = [self.row("2")]
        self.assertEqual(
            rows.merge(old, new), [self.row("2"), self.row("9", size="128", run="old")]
        )

    def test_the_order_is_that_of_the_cases_and_of_numbers(self):
        new = [
            self.row("1", size="1024"),
            self.row("1", size="64"),
            self.row("1", case="broadcast"),
        ]
        merged = rows.merge([], new, ("broadcast", "allreduce"))
        self.assertEqual(
            [(row.case, row.bytes) for row in merged],
            [("broadcast", "64"), ("allreduce", "64"), ("allreduce", "1024")],
        )

    def test_one_key_twice_is_an_error(self):
        with self.assertRaisesRegex(rows.ReportError, "two rows with one key"):
            rows.merge([], [self.row("1"), self.row("2")])


class ReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def report(self, *arguments):
        output = io.StringIO()
        with mock.patch.object(
            sys, "argv", ["report.py", "--results", str(self.folder), *arguments]
        ), redirect_stdout(output), redirect_stderr(output):
            return report.main(), output.getvalue()

    def add(self, text, *arguments, table="host"):
        path = self.folder / "output.txt"
        path.write_text(text, encoding="utf-8")
        return self.report(
            "--add",
            table,
            str(path),
            "--commit",
            "abc1234",
            "--date",
            "2026-11-20",
            "--machine",
            "here",
            "--command",
            "make bench",
            *arguments,
        )

    def test_added_figures_are_on_the_page_with_their_origin(self):
        self.assertEqual(self.add(HOST)[0], 0)
        page = (self.folder / "host.md").read_text(encoding="utf-8")
        self.assertIn("| allreduce | 2 | 64 | 0.7 | 1.1 | 0.9 | 1.5 | 0.1 | 1.38 | 0.06 |", page)
        self.assertIn("2026-11-20; commit abc1234; here", page)
        self.assertIn("`make bench`", page)
        self.assertEqual(self.report("--check")[0], 0)

    def test_a_run_that_nothing_refers_to_goes(self):
        self.add(HOST)
        self.assertEqual(self.add(HOST.replace("0.7", "0.6"), "--commit", "def5678")[0], 0)
        runs = rows.read_runs(self.folder / "runs.csv")
        self.assertEqual([run["commit"] for run in runs.values()], ["def5678"])

    def test_rows_of_two_runs_say_which(self):
        self.add(HOST)
        self.add(
            HOST.replace("| 64 |", "| 128 |").replace("| 1024 |", "| 2048 |"), "--commit", "def5678"
        )
        page = (self.folder / "host.md").read_text(encoding="utf-8")
        self.assertIn("| 1.38 | 0.06 | a |", page)
        self.assertIn("- **b** 2026-11-20; commit def5678", page)

    def test_a_page_that_was_edited_by_hand_is_found(self):
        self.add(HOST)
        page = self.folder / "host.md"
        page.write_text(page.read_text(encoding="utf-8").replace("1.38", "2.38"), encoding="utf-8")
        status, output = self.report("--check")
        self.assertEqual(status, 1)
        self.assertIn("host.md: is not what the CSV files give", output)

    def test_a_plot_of_other_figures_is_found(self):
        self.add(HOST)
        plot = self.folder / "host.svg"
        if not report.plot:
            self.skipTest("needs matplotlib")
        drawn = plot.read_text(encoding="utf-8")
        plot.write_text(drawn.replace("allreduce", "all"), encoding="utf-8")
        self.assertEqual(self.report("--check")[0], 1)
        plot.write_text(drawn.replace("Matplotlib v", "Matplotlib v0."), encoding="utf-8")
        self.assertEqual(self.report("--check")[0], 0, "of another version its bytes say nothing")

    def test_errors_end_with_a_line_that_says_what(self):
        self.add(HOST)
        table = self.folder / "host.csv"
        for arguments, message in (
            (("--add", "hosts", "x"), "there is no table 'hosts'; there are host, "),
            (("--add", "host"), "--add needs a table and what a bench has printed"),
            (("--add", "host", "nowhere"), "nowhere"),
        ):
            status, output = self.report(*arguments)
            self.assertEqual(status, 2)
            self.assertIn(message, output)
        text = table.read_text(encoding="utf-8")
        for wrong, message in (
            (text.replace("case,", "name,"), "the columns must be case,"),
            (text.replace(",0.7,", ",soon,"), "host.csv:3: the value is 'soon'"),
            (text + text.splitlines()[1] + "\n", "the second row of allreduce/outofplace/2/64"),
            (text.replace("host-2026-11-20", "host-2026-11-19"), "runs.csv does not have the run"),
        ):
            table.write_text(wrong, encoding="utf-8")
            status, output = self.report("--check")
            self.assertEqual(status, 2)
            self.assertIn(message, output)


class CommittedTablesTest(unittest.TestCase):
    def test_pages_and_plots_are_those_of_the_figures(self):
        with redirect_stdout(io.StringIO()) as output:
            self.assertEqual(report.check(BENCH / "results"), 0, output.getvalue())

    def test_there_are_at_most_ten_tables_and_none_is_dated(self):
        tables = {path.stem for path in (BENCH / "results").glob("*.csv")} - {"runs"}
        self.assertLessEqual(len(tables), 10)
        self.assertEqual(tables, set(report.tables.TABLES))
        others = {path.name for path in (BENCH / "results").iterdir()} - {
            "runs.csv",
            "BUILD.bazel",
            report.OVERVIEW,
        }
        self.assertEqual(
            others, {table + suffix for table in tables for suffix in (".csv", ".md", ".svg")}
        )

    def test_collectives(self):
        text = (BENCH.parent / "plan/collectives/collectives.def").read_text()
        listed = re.findall(r'^OCCL_COLLECTIVE\(\w+, "(\w+)",.* Named\)$', text, re.MULTILINE)
        self.assertEqual(list(COLLECTIVES), listed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
