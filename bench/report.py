#!/usr/bin/env python3
"""Keeps the tables of bench/results: of each a CSV file, a page and a plot.

    bench/report.py                        writes the pages and plots of all tables from their CSV
    bench/report.py --check                fails if a page or a plot is not what its CSV file gives
    bench/report.py --add TABLE OUTPUT...  takes the figures in what a bench has printed, or written
                                           as CSV (-: the standard input), into a table, in the
                                           place of older ones of the same setup; then writes both

What is known of a run goes to runs.csv: --command, --conditions, and --commit, --machine,
--software, --date where what is found here (or in the output) is not right. Plots need
matplotlib (tools/setup.sh bench); without it they stay as they are."""

import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(os.path.abspath(__file__)).parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from reporting import page, parse, rows, tables  # noqa: E402

try:
    from reporting import panels, plot
except ImportError:  # of matplotlib
    plot = None

OVERVIEW = "gpus.svg"  # what the README shows
OVERVIEW_TABLES = {"2 GPUs": "gpus_2", "4 GPUs": "gpus_4"}


def said_by(*command: str) -> str:
    try:
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
    except FileNotFoundError:
        return ""


def commit() -> str:
    changes = said_by("git", "status", "--porcelain", "--", ".", ":!bench/results")
    return said_by("git", "rev-parse", "--short", "HEAD") + (" with changes" if changes else "")


def machine() -> str:
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return f"{model}, {os.cpu_count()} cores, {gigabytes:.0f} GiB"


def software() -> str:
    said = [
        "Linux " + ".".join(platform.release().split(".")[:2]),
        said_by("mpirun", "--version").split("\n")[0],
    ]
    return ", ".join(filter(None, said))


def expected(results: pathlib.Path) -> dict[pathlib.Path, str]:
    """What the pages and plots should be."""
    runs = rows.read_runs(results / "runs.csv")
    found, files = {}, {}
    for name, table in tables.TABLES.items():
        found[name] = rows.read_rows(results / f"{name}.csv")
        if not found[name]:
            continue
        unknown = {row.run for row in found[name]} - set(runs)
        if unknown:
            raise rows.ReportError(
                f"{results}/{name}.csv: runs.csv does not have the run '{sorted(unknown)[0]}'"
            )
        files[results / f"{name}.md"] = page.page(name, table, found[name], runs)
        if plot:
            files[results / f"{name}.svg"] = plot.plot(table, found[name])
    shown = {title: found[name] for title, name in OVERVIEW_TABLES.items() if found.get(name)}
    if plot and shown:
        files[results / OVERVIEW] = panels.svg_of(plot.overview, shown)
    return files


def write(results: pathlib.Path) -> int:
    for path, text in expected(results).items():
        path.write_text(text, encoding="utf-8")
    if not plot:
        print(
            "report.py: the plots were not drawn: matplotlib is missing (tools/setup.sh bench)",
            file=sys.stderr,
        )
    return 0


def is_drawn_elsewhere(path: pathlib.Path) -> bool:
    """Whether a plot is of another version of matplotlib, whose bytes differ."""
    return (
        path.suffix == ".svg"
        and path.exists()
        and panels.version_of(path.read_text(encoding="utf-8")) != panels.matplotlib.__version__
    )


def check(results: pathlib.Path) -> int:
    wrong = [
        path
        for path, text in expected(results).items()
        if not is_drawn_elsewhere(path)
        and (not path.exists() or path.read_text(encoding="utf-8") != text)
    ]
    for path in wrong:
        print(f"{path}: is not what the CSV files give; bench/report.py writes it")
    return 1 if wrong else 0


def run_of(options: argparse.Namespace, origin: dict[str, str]) -> dict[str, str]:
    """What is known of a run: what the options say, an empty text being nothing, else the
    output, else this machine."""
    found = {
        "date": lambda: datetime.date.today().isoformat(),
        "commit": lambda: origin.get("commit") or commit(),
        "machine": lambda: "{ranks} x {machine}".format(**origin) if origin else machine(),
        "software": lambda: f"driver {origin['driver']}" if origin else software(),
        "conditions": lambda: "",
        "command": lambda: "",
    }
    said = {name: getattr(options, name) for name in found}
    return {name: find() if said[name] is None else said[name] for name, find in found.items()}


def add(options: argparse.Namespace) -> int:
    name, *outputs = options.add
    if name not in tables.TABLES:
        raise rows.ReportError(f"there is no table '{name}'; there are {', '.join(tables.TABLES)}")
    if not outputs:
        raise rows.ReportError("--add needs a table and what a bench has printed")
    new, origin = [], {}
    for output in outputs:
        text = (
            sys.stdin.read() if output == "-" else pathlib.Path(output).read_text(encoding="utf-8")
        )
        found, said = parse.parse(text, output, options.ranks)
        new += found
        origin = {**origin, **said}
    run = run_of(options, origin)
    path, run_path = options.results / f"{name}.csv", options.results / "runs.csv"
    runs = rows.read_runs(run_path)
    label = rows.add_run(runs, name, run)
    for row in new:
        row.run = label
    merged = rows.merge(rows.read_rows(path), new, tables.TABLES[name].cases)
    used = {
        row.run
        for table in tables.TABLES
        if table != name
        for row in rows.read_rows(options.results / f"{table}.csv")
    }
    used |= {row.run for row in merged}
    rows.write_rows(path, merged)
    rows.write_runs(run_path, {key: value for key, value in runs.items() if key in used})
    print(f"{path}: {len(new)} figures of {label}")
    return write(options.results)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--add", nargs="+", metavar=("TABLE", "OUTPUT"), help="take figures into a table"
    )
    parser.add_argument(
        "--check", action="store_true", help="compare the pages and plots with the CSV files"
    )
    parser.add_argument(
        "--results",
        type=pathlib.Path,
        default=ROOT / "bench/results",
        help="the folder of the tables",
    )
    parser.add_argument(
        "--ranks", default="", help="of an output that does not say how many there were"
    )
    for name in ("command", "conditions", "commit", "machine", "software", "date"):
        parser.add_argument(f"--{name}", help="of the run; empty: not known")
    options = parser.parse_args(arguments)
    if options.date and not re.fullmatch(r"\d{4}-\d\d-\d\d", options.date):
        parser.error("--date is YYYY-MM-DD")
    try:
        return (
            add(options)
            if options.add
            else check(options.results) if options.check else write(options.results)
        )
    except (OSError, UnicodeDecodeError, rows.ReportError) as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
