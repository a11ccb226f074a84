"""Any table in Markdown as rows of the schema, for benches that have no table in bench/results.

A figure's case consists of the bench's name, the line above the table and the row's labels, its
first heading and cell among them; its way is the heading of its column. Columns of bytes and ranks fill these fields."""

import re
from collections.abc import Iterator

from reporting.parse import ORIGIN, cells
from reporting.rows import NUMBER, ReportError, Row

# Not behind a number: "8 KiB" over a column is a size.
UNIT = re.compile(r"(?:^|[ ,(])(?<!\d )(us|ns|ms|s|GB/s|MB/s|MB|KiB|MiB|bytes)(?=$|[ ,;:)])")
TIMES = ("us", "ns", "ms", "s")
# Headings of columns whose numbers say what was measured.
LABELS = ("n", "M", "rate", "threads", "partitions")


def unit_of(*texts: str) -> str:
    """Of the first text that names one."""
    return next((found[1] for found in map(UNIT.search, texts) if found), "")


def ways(header: list[str]) -> list[str]:
    """The headings; one that stands there several times belongs to the single one before it."""
    found, last = [], ""
    for name in header:
        is_single = header.count(name) == 1
        found.append(name if is_single or not last else f"{last}, {name}")
        last = name if is_single else last
    return found


def figures(bench: str, title: str, header: list[str], values: list[str], ranks: str) -> Iterator[Row]:
    fields, labels = {"ranks": ranks, "bytes": ""}, []
    for number, (name, way, cell) in enumerate(zip(header, ways(header), values)):
        field = re.match(r"(ranks|bytes)\b(?:,? (?:of )?(.*))?$", name)
        value = cell.split(" ")[0]
        if field and cell.isdigit():
            fields[field[1]] = cell
            labels += [field[2]] if field[2] else []
        elif name in LABELS:
            labels.append(f"{name} {cell}")
        elif number == 0:
            labels.append(f"{name}, {cell}" if name not in ("", "what") else cell)
        elif NUMBER.fullmatch(value):
            is_ratio = " / " in name
            heading = "" if header[0].startswith(("bytes", "ranks")) else header[0]
            unit = "" if is_ratio else unit_of(name, cell.partition(" ")[2], heading, title)
            yield Row(
                case=", ".join(filter(None, [bench, title, *labels])),
                metric="ratio" if is_ratio else "time" if unit in TIMES else "figure",
                unit=unit,
                value=value,
                way=way,
                **fields,
            )


def rows_of(text: str, name: str, ranks: str = "") -> list[Row]:
    """The rows of all tables in the output of the bench of this name; `ranks` where it does not say
    how many there were."""
    found, title, header = [], "", None
    for line in text.splitlines():
        if ORIGIN.match(line):
            ranks = ORIGIN.match(line)["ranks"]
        elif not line.startswith("|"):
            title, header = line.strip() or (title if header is None else ""), None
        elif set(line.strip()) <= set("|-: "):
            continue
        elif header is None:
            header = cells(line)
        elif len(cells(line)) != len(header):
            raise ReportError(
                f"{name}: a row with {len(cells(line))} cells under a heading with {len(header)}: "
                f"{line.strip()}"
            )
        else:
            found += figures(name, title, header, cells(line), ranks)
    if not found:
        raise ReportError(f"{name}: no table of a bench was found in it")
    return found
