"""The rows of bench/results: one schema for what every bench measures, and the file of the runs
that they come from.

A row is one figure. Its key says what was measured, of which its first fields, the setup, are
the same for all libraries that were timed beside each other; `value` holds the number, or
several, separated by spaces, of repeated runs or of a series; `run` names a row of runs.csv,
which has the machine, the commit and the command. An empty field does not apply, or is not
known."""

import csv
import dataclasses
import io
import pathlib
import re

SETUP = ("case", "place", "ranks", "bytes", "way")
KEY = SETUP + ("library", "metric")
FIELDS = KEY + ("unit", "value", "run")
RUN_FIELDS = ("run", "date", "commit", "machine", "software", "conditions", "command")
NUMBER = re.compile(r"[<>]?-?\d+(\.\d+)?")


class ReportError(Exception):
    """What a file lacks, or has too much; says the file and the line."""


@dataclasses.dataclass
class Row:
    """case: a collective, a program, a policy. place: outofplace or inplace. ranks, bytes: of
    the larger buffer of a rank. way: how it was called. library: who did it. metric: what
    `value` counts, in `unit`."""

    case: str
    metric: str
    unit: str
    value: str
    place: str = ""
    ranks: str = ""
    bytes: str = ""
    way: str = ""
    library: str = "OCCL"
    run: str = ""

    def key(self) -> tuple[str, ...]:
        return tuple(getattr(self, field) for field in KEY)

    def numbers(self) -> list[float]:
        """The figures, without a bound's sign; none if what was measured failed."""
        return [float(word.lstrip("<>")) for word in self.value.split() if NUMBER.fullmatch(word)]


def read_table(path: pathlib.Path, fields: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a CSV file with exactly these columns; none if there is no such file."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != fields:
            raise ReportError(f"{path}: the columns must be {','.join(fields)}")
        rows = list(reader)
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise ReportError(f"{path}:{number}: the row has not {len(fields)} fields")
    return rows


def text_of(rows: list[dict[str, str]], fields: tuple[str, ...]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def check(row: Row, where: str) -> Row:
    """The row, or an error that says which field is wrong."""
    for field in ("ranks", "bytes"):
        if not re.fullmatch(r"\d*", getattr(row, field)):
            raise ReportError(f"{where}: {field} is '{getattr(row, field)}', not a number")
    if not row.case or not row.metric:
        raise ReportError(f"{where}: a row needs a case and a metric")
    if row.value != "fails" and not (
        row.value and all(NUMBER.fullmatch(word) for word in row.value.split())
    ):
        raise ReportError(f"{where}: the value is '{row.value}', not a number")
    return row


def read_rows(path: pathlib.Path) -> list[Row]:
    rows = [Row(**fields) for fields in read_table(path, FIELDS)]
    seen = set()
    for number, row in enumerate(rows, 2):
        check(row, f"{path}:{number}")
        if row.key() in seen:
            raise ReportError(f"{path}:{number}: the second row of {'/'.join(row.key())}")
        seen.add(row.key())
    return rows


def merge(old: list[Row], new: list[Row], cases: tuple[str, ...] = ()) -> list[Row]:
    """The rows of both; what is new takes the place of all old rows of its setup, so that what
    stands beside each other is of one run. In the order of `cases`, other cases as they come."""
    replaced = {row.key()[: len(SETUP)] for row in new}
    by_key = {row.key(): row for row in old if row.key()[: len(SETUP)] not in replaced}
    if len({row.key() for row in new}) < len(new):
        raise ReportError("what is to be added has two rows with one key")
    by_key.update((row.key(), row) for row in new)
    order = {case: number for number, case in enumerate(cases)}
    for row in old + new:
        order.setdefault(row.case, len(order))

    def place(row: Row) -> tuple:
        return (
            order[row.case],
            row.place != "outofplace",
            row.place,
            int(row.ranks or 0),
            int(row.bytes or 0),
            row.way,
            row.library != "OCCL",
            row.library,
            row.metric,
        )

    return sorted(by_key.values(), key=place)


def write_rows(path: pathlib.Path, rows: list[Row]) -> None:
    path.write_text(text_of([dataclasses.asdict(row) for row in rows], FIELDS), encoding="utf-8")


def read_runs(path: pathlib.Path) -> dict[str, dict[str, str]]:
    """By name, where and how a run was measured."""
    runs = {}
    for number, run in enumerate(read_table(path, RUN_FIELDS), 2):
        if run["run"] in runs or not run["run"]:
            raise ReportError(
                f"{path}:{number}: the run '{run['run']}' has no name, or is there twice"
            )
        runs[run["run"]] = run
    return runs


def add_run(runs: dict[str, dict[str, str]], table: str, run: dict[str, str]) -> str:
    """Adds what is known of a run; the name that it has in `runs`."""
    stem = f"{table}-{run['date']}-{run['commit'].split(' ')[0] or 'unknown'}"
    name, number = stem, 1
    while name in runs and {**runs[name], "run": ""} != {**run, "run": ""}:
        number += 1
        name = f"{stem}-{number}"
    runs[name] = {**run, "run": name}
    return name


def write_runs(path: pathlib.Path, runs: dict[str, dict[str, str]]) -> None:
    path.write_text(text_of([runs[name] for name in sorted(runs)], RUN_FIELDS), encoding="utf-8")
