"""What the programs of bench/ print for tables of bench/results, as rows: a function for each kind
of output, found by its heading. columns.py has the others.

The Python benches write rows as CSV themselves (`--csv`); those are read as they are."""

import csv
import re
from collections.abc import Callable, Iterator

from reporting.rows import KEY, ReportError, Row, check, text_of

# Of a line that says where the output was measured: "commit 413eadf, 2 x NVIDIA H200, 580.159.04".
ORIGIN = re.compile(
    r"commit (?P<commit>\w+), (?P<ranks>\d+) x (?P<machine>.+), (?P<driver>[\d.]+)$"
)
OWN_FIELDS = KEY + ("unit", "value")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def is_figure(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d+)?", text) is not None


def time_row(value: str, **fields: str) -> Iterator[Row]:
    """A row of microseconds, unless nothing was measured."""
    if is_figure(value):
        yield Row(**{"metric": "time", "unit": "us", **fields}, value=value)


def host_row(header: list[str], values: list[str], _ranks: str) -> Iterator[Row]:
    """bench:host_collectives."""
    case, ranks, size, ours, p99, theirs, their_p99, copying, ratio, by_copying = values[:10]
    where = {
        "case": case,
        "ranks": ranks,
        "bytes": size,
        "way": "run",
        "place": "inplace" if case == "broadcast" else "outofplace",
    }
    yield from time_row(ours, **where)
    yield from time_row(p99, **where, metric="p99")
    yield from time_row(theirs, **where, library="Open MPI")
    yield from time_row(their_p99, **where, library="Open MPI", metric="p99")
    yield from time_row(copying, **where, library="memcpy")
    yield from time_row(ratio, **where, library="Open MPI", metric="ratio", unit="")
    yield from time_row(by_copying, **where, library="memcpy", metric="ratio", unit="")


def gpu_row(header: list[str], values: list[str], ranks: str) -> Iterator[Row]:
    """bench/gpu/processes:gpu_collectives: three ways of each library, and the ratios of the
    better NCCL to OCCL."""
    case, *more = header[0].removesuffix(", bytes").replace("in place", "inplace").split()
    place = [] if "inplace" in more else ["outofplace"]
    where = {
        "case": case,
        "ranks": ranks,
        "bytes": values[0],
        "place": "-".join(place + more),
    }
    for number, way in enumerate(("stream", "graph", "blocking")):
        for library, column in (("OCCL", 1), ("NCCL", 4), ("NCCL symmetric", 7)):
            yield from time_row(values[column + number], **where, way=way, library=library)
        yield from time_row(
            values[10 + number], **where, way=way, library="best NCCL", metric="ratio", unit=""
        )


def exchange_row(header: list[str], values: list[str], ranks: str) -> Iterator[Row]:
    """bench/gpu/processes:gpu_exchange."""
    where = {
        "case": "sendrecv " + header[0].split(",")[0],
        "ranks": ranks,
        "bytes": values[0],
        "place": "outofplace-ordinary",
    }
    for number, way in enumerate(("stream", "graph"), 1):
        yield from time_row(values[number], **where, way=way)
        if "-" in header[3]:  # there was no NCCL
            continue
        yield from time_row(values[2 + number], **where, way=way, library="NCCL")
        yield from time_row(
            values[4 + number], **where, way=way, library="best NCCL", metric="ratio", unit=""
        )


def slice_row(header: list[str], values: list[str], ranks: str) -> Iterator[Row]:
    """bench/gpu's `measure`: kernels by hand in a loop, and NCCL in a graph. What it has of the
    interpreter alone has no table."""
    where = {"case": "allreduce", "place": "outofplace", "ranks": ranks, "bytes": values[0]}
    for name, value in zip(header, values):
        time = value.split(" ")[0]  # behind it: how many thread blocks were best
        if name.startswith("hand "):
            way = re.sub(r"^(LL|push|pull)$", r"one-shot \1", name.removeprefix("hand "))
            yield from time_row(time, **where, way=way, library="by hand")
        elif name == "NCCL, graph":
            yield from time_row(time, **where, way="graph", library="NCCL")


def training_row(header: list[str], values: list[str], ranks: str) -> Iterator[Row]:
    """bench/gpu/processes:gpu_training_step."""
    library, way = values[0].split(", ", 1)
    if library.startswith("NCCL"):
        library = "NCCL symmetric" if way.startswith("symmetric, ") else "NCCL"
        way = way.removeprefix("symmetric, ")
    yield from time_row(
        values[1], case="training step, " + header[0], ranks=ranks, way=way, library=library
    )


def submission_row(header: list[str], values: list[str], ranks: str) -> Iterator[Row]:
    """bench/gpu/latency:submit_latency; 0 where a way was not measured."""
    where = {"case": "allreduce, from host to host", "ranks": ranks, "bytes": values[0]}
    for name, after, value in zip(header[1:], header[2:] + [""], values[1:]):
        if name == "99 %" or not is_figure(value) or float(value) == 0:
            continue
        way = "ncclAllReduce" if name == "NCCL" else name
        yield from time_row(value, **where, way=way, library="NCCL" if name == "NCCL" else "OCCL")
        if after == "99 %":
            yield from time_row(values[header.index(name) + 1], **where, way=way, metric="p99")


def late_row(_header: list[str], values: list[str], ranks: str) -> Iterator[Row]:
    """bench/gpu/latency:late_peer."""
    mode, late, *times = values
    for metric, value in zip(("p10", "time", "p90"), times):
        yield from time_row(
            value, case=f"late rank, {late} us", ranks=ranks, bytes="16384", way=mode, metric=metric
        )


def order_row(_header: list[str], values: list[str], _ranks: str) -> Iterator[Row]:
    """bench/runtime:orders."""
    where = {"case": "eight allreduces", "ranks": values[0], "bytes": values[1]}
    for way, value in (("same order", values[2]), ("random orders", values[3])):
        yield from time_row(value, **where, way=way)
    yield from time_row(
        values[5].lstrip("+"), **where, way="random orders", metric="cost", unit="round trips"
    )


def partitioned_row(_header: list[str], values: list[str], _ranks: str) -> Iterator[Row]:
    """bench:host_partitioned."""
    partitions, size, own, polling, *others = values
    where = {"case": "partitioned send", "ranks": "2", "bytes": size}
    yield from time_row(own, **where, way=partitions)
    yield from time_row(polling, **where, way=partitions, library="OCCL, polling")
    for form, value in zip(("one MPI_Send", "MPI_Isend each", "MPI_Send_init each"), others):
        yield from time_row(value, **where, way=partitions, library=form)


# Tables in Markdown, by their first cells.
TABLES: list[tuple[str, Callable[[list[str], list[str], str], Iterator[Row]]]] = [
    (
        r"collective \| ranks \| bytes \| OCCL us \| p99 \| Open MPI us \| p99 \| copying us",
        host_row,
    ),
    (r"\w+( in place)?( bfloat16)?( ordinary)?, bytes \| OCCL \| graph \| blocking \| NCCL [^|]*\| graph", gpu_row),
    (r"(ring|pairs), bytes to a rank \| OCCL \| graph \| NCCL", exchange_row),
    (r"bytes \| hand LL \|", slice_row),
    (r"\d+ all-reduces, [\d.]+ MB \| us", training_row),
    (r"bytes \| occlStart \| 99 %", submission_row),
    (r"mode \| late by, us", late_row),
    (r"ranks \| bytes \| same order, us each", order_row),
    (r"partitions \| bytes \| OCCL us \| polling us \| one MPI_Send us", partitioned_row),
]


def latency_line(line: str, before: str) -> tuple[list[Row], str]:
    """bench/runtime:latency; `before` is the way that the line is part of. The rows, and the way
    of the lines that follow."""
    found = re.match(
        r"( *)(\S.*?) +(\d+) ranks +([\d.]+) us an operation "
        r"\(.* ([\d.]+) or less, p99 +([\d.]+)\)",
        line,
    )
    if not found:
        return [], before
    way = f"{before}, {found[2]}" if found[1] else found[2]
    where = {
        "case": "allreduce, submission to completion",
        "ranks": found[3],
        "bytes": "64",
        "way": way,
    }
    rows = [
        *time_row(found[4], **where),
        *time_row(found[5], **where, metric="p10"),
        *time_row(found[6], **where, metric="p99"),
    ]
    return rows, before if found[1] else way


def figure_line(line: str, unit: str) -> list[Row]:
    """bench/runtime:costs and sequences: what, its figure, and perhaps the OCCL paper's."""
    found = re.match(r"(\S.*?) {2,}([\d.]+)(?: +(\d+)(?: to (\d+))?)? *$", line)
    if not found:
        return []
    case, metric = found[1], "memory" if unit == "bytes" else "time"
    rows = [Row(case, metric, unit, found[2])]
    if found[3]:
        rows.append(
            Row(
                case, metric, unit, " ".join(filter(None, found.groups()[2:])), library="OCCL paper"
            )
        )
    return rows


def queue_line(line: str, forms: list[str]) -> list[Row]:
    """bench/runtime:completion_queues: the number of threads, and a figure for each form of
    queue."""
    words = line.split()
    if len(words) != len(forms) + 1 or not all(map(is_figure, words)):
        return []
    return [
        Row("completion queue", "time", "ns", value, ranks=words[0], way=form)
        for form, value in zip(forms, words[1:])
    ]


def rows_of_tables(lines: list[str], ranks: str) -> Iterator[Row]:
    header, parse = None, None
    for line in lines:
        if not line.startswith("|"):
            header, parse = None, None
            continue
        if set(line.strip()) <= set("|-: "):
            continue
        found = next(
            (function for start, function in TABLES if re.match(r"\| " + start, line)), None
        )
        if found or header is None:
            header, parse = cells(line), found
        elif parse:
            if len(cells(line)) != len(header):
                raise ReportError(
                    f"a row with {len(cells(line))} cells under a heading with {len(header)}: "
                    f"{line.strip()}"
                )
            yield from parse(header, cells(line), ranks)


def rows_of_text(lines: list[str]) -> Iterator[Row]:
    unit, forms, way = "", [], ""
    for line in lines:
        words = line.split()
        if re.match(r"producers +ring", line):
            forms = re.split(r" {2,}", line.strip())[1:]
        elif re.match(r"(memory of a rank|median( time of a start)?) ", line):
            unit = words[-1] if words[-1] in ("bytes", "ns") else "ns"
        elif forms and queue_line(line, forms):
            yield from queue_line(line, forms)
        elif unit:
            yield from figure_line(line, unit)
        rows, way = latency_line(line, way)
        yield from rows


def rows_of_csv(text: str, name: str) -> Iterator[Row]:
    for number, row in enumerate(csv.DictReader(text.splitlines()), 2):
        if set(row) != set(OWN_FIELDS):
            raise ReportError(
                f"{name}:{number}: a row must have {len(OWN_FIELDS)} fields: {','.join(OWN_FIELDS)}"
            )
        yield check(Row(**row), f"{name}:{number}")


def write_own_rows(path: str, rows: list[Row]) -> None:
    """What a Python bench has measured, for report.py --add."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(
            text_of(
                [{field: getattr(row, field) for field in OWN_FIELDS} for row in rows], OWN_FIELDS
            )
        )


def parse(text: str, name: str, ranks: str = "") -> tuple[list[Row], dict[str, str]]:
    """The rows of a program's output, and what it says of its origin (commit, ranks, machine,
    driver). `ranks`: of an output that does not say how many there were."""
    lines = text.splitlines()
    origin = next((found.groupdict() for found in map(ORIGIN.match, lines) if found), {})
    if text.startswith("case,"):
        rows = list(rows_of_csv(text, name))
    else:
        rows = [*rows_of_tables(lines, origin.get("ranks", ranks)), *rows_of_text(lines)]
    if not rows:
        raise ReportError(f"{name}: no table or list of a bench was found in it")
    if any(
        not row.ranks
        for row in rows
        if row.way in ("stream", "graph", "blocking") or row.case.startswith("training")
    ):
        raise ReportError(f"{name}: it does not say the number of ranks; --ranks does")
    return rows, origin
