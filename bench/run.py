#!/usr/bin/env python3
"""Runs a bench of bench/benches.tsv and takes its figures into its table of bench/results.

    bench/run.py                        lists the benches, and the tables that they write
    bench/run.py NAME [ARGUMENT...]     builds and runs one; its rows go into its table, those of a
                                        bench that has none are printed as CSV
    bench/run.py --csv FILE NAME ...    its rows go into that file instead, for bench/report.py --add
                                        or bench/gate/gate.py
    bench/run.py --print NAME ...       only what the program says; no rows are taken

--build: the command that Bazel's targets are given to; empty: nothing is built. Exit status: 0;
that of the program; 2 for an unknown bench, an output without figures and what else is wrong."""

import argparse
import csv
import dataclasses
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.path.abspath(__file__)).parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import report  # noqa: E402
from reporting import columns, parse, rows  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Bench:
    """A line of benches.tsv; what it lacks is empty."""

    name: str
    table: str
    targets: str
    command: str
    conditions: str


def benches(path: pathlib.Path = ROOT / "bench/benches.tsv") -> dict[str, Bench]:
    with open(path, encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        table = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        found = [
            Bench(**{field: "" if value == "-" else value for field, value in line.items()})
            for line in table
        ]
    return {bench.name: bench for bench in found}


def said_by(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Runs a command; its exit status and what it has printed, which is shown as it comes."""
    lines = []
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def table_of(bench: Bench, origin: dict[str, str], ranks: str) -> str:
    return bench.table.replace("*", origin.get("ranks", ranks) or "*")


def take(bench: Bench, options: argparse.Namespace, text: str, load: float) -> int:
    """Rows of the schema, or what a program has printed, into the table or the file."""
    if not bench.table:
        found = columns.rows_of(text, bench.name, options.ranks)
        parse.write_own_rows(options.csv or "/dev/stdout", found)
        return 0
    found, origin = parse.parse(text, bench.name, options.ranks)
    if options.csv:
        parse.write_own_rows(options.csv, found)
        return 0
    table = table_of(bench, origin, options.ranks)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        said = [f"load average at the start {load:.1f}", bench.conditions, options.conditions]
        return report.main(
            ["--add", table, file.name, "--ranks", options.ranks]
            + ["--results", str(options.results)]
            + ["--command", shlex.join(["bench/run.py", bench.name, *options.arguments])]
            + ["--conditions", "; ".join(filter(None, said))]
        )


def run(bench: Bench, options: argparse.Namespace) -> int:
    if bench.targets and options.build:
        targets = bench.targets.split()
        built = subprocess.run([*options.build.split(), *targets], cwd=ROOT, check=False)
        if built.returncode:
            return built.returncode
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as work:
        own_rows = pathlib.Path(work) / "rows.csv"
        status, text = said_by(
            ["bash", "-euo", "pipefail", "-c", bench.command, bench.name, *options.arguments],
            {"BIN": str(ROOT / "bazel-bin"), "WORK": work, "ROWS": str(own_rows)},
        )
        if own_rows.exists() and own_rows.stat().st_size:
            text = own_rows.read_text(encoding="utf-8")
    return status or (0 if options.print else take(bench, options, text, load))


def show(found: dict[str, Bench]) -> int:
    width = max(map(len, found))
    for bench in found.values():
        print(f"{bench.name:{width}}  {bench.table or '-'}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--csv", default="", help="a file for the rows, instead of the table")
    parser.add_argument("--print", action="store_true", help="take no rows")
    parser.add_argument("--conditions", default="", help="what else is to be known of the run")
    parser.add_argument("--ranks", default="", help="of an output that does not say how many")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results")
    parser.add_argument("--build", default="tools/dev/bazel.sh build", help="or nothing")
    parser.add_argument("name", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    try:
        found = benches()
        if not options.name:
            return show(found)
        if options.name not in found:
            raise rows.ReportError(f"there is no bench '{options.name}'; bench/run.py lists them")
        return run(found[options.name], options)
    except (OSError, UnicodeDecodeError, rows.ReportError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
