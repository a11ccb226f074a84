#!/usr/bin/env python3
"""Compares what was measured with the committed figures, row by row.

    gate.py BASELINE NOW [NOW...] --within 5 [--ranks 2] [--exempt PATTERN...]

BASELINE and NOW are tables of bench/results or what bench:host_collectives or
bench/gpu/processes have printed. A row is (case, ranks, bytes, place, way). Machines differ from
day to day, and so does what runs beside: so a row has moved only if its time grew by more than
the bound *and* the peer that was timed in the same run did not grow with it, that is if our time
divided by the peer's grew by more than the bound, too. Of several measurements of a row the best
counts. Exit status: 0 if no row has moved, 1 if some have, 2 for a file that cannot be read or
has no row of the baseline."""

import argparse
import fnmatch
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from reporting import parse  # noqa: E402
from reporting.rows import FIELDS, ReportError, Row, read_rows  # noqa: E402

Key = tuple[str, ...]


class Timed:
    """Our time and the fastest peer's, in us; None if there was no peer."""

    def __init__(self) -> None:
        self.us: float | None = None
        self.peer_us: float | None = None

    def take(self, row: Row) -> None:
        name = "us" if row.library == "OCCL" else "peer_us"
        times = [time for time in (getattr(self, name), *row.numbers()) if time is not None]
        setattr(self, name, min(times))


def rows_of(name: str, ranks: str) -> list[Row]:
    path = pathlib.Path(name)
    text = path.read_text(encoding="utf-8")
    return (
        read_rows(path) if text.startswith(",".join(FIELDS)) else parse.parse(text, name, ranks)[0]
    )


def timed(rows: list[Row]) -> dict[Key, Timed]:
    """What has a time of ours, by key. Plain copying is no peer."""
    found: dict[Key, Timed] = {}
    for row in rows:
        if row.metric == "time" and row.library != "memcpy" and row.numbers():
            found.setdefault((row.case, row.ranks, row.bytes, row.place, row.way), Timed()).take(
                row
            )
    return {key: times for key, times in found.items() if times.us is not None}


def best(tables: list[dict[Key, Timed]]) -> dict[Key, Timed]:
    """By key, the measurement with the lowest time."""
    found: dict[Key, Timed] = {}
    for table in tables:
        for key, times in table.items():
            if key not in found or times.us < found[key].us:
                found[key] = times
    return found


def has_moved(before: Timed, now: Timed, bound: float) -> bool:
    """Whether a row is slower by more than the bound, and not because all that ran then was.
    Times are printed with a tenth of a microsecond: that much is no change."""
    limit = 1 + bound / 100
    if now.us <= before.us * limit + 0.1:
        return False
    if not before.peer_us or not now.peer_us:
        return True
    return now.us / now.peer_us > before.us / before.peer_us * limit


def compare(arguments: argparse.Namespace) -> int:
    baseline = timed(rows_of(arguments.baseline, arguments.ranks))
    now = best([timed(rows_of(name, arguments.ranks)) for name in arguments.now])
    common = sorted(
        set(baseline) & set(now),
        key=lambda key: (key[0], int(key[1] or 0), key[3], key[4], int(key[2] or 0)),
    )
    if not common:
        raise ReportError("no row of the baseline was measured")
    moved, exempt = [], []
    for key in common:
        if has_moved(baseline[key], now[key], arguments.within):
            name = "/".join(key)
            (
                exempt
                if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.exempt)
                else moved
            ).append(key)
    for title, keys in (("slower", moved), ("slower, exempt", exempt)):
        for key in keys:
            print(
                f"{title}: {'/'.join(key)}: {baseline[key].us:g} us -> {now[key].us:g} us "
                f"(peer {baseline[key].peer_us or '-'} -> {now[key].peer_us or '-'})"
            )
    print(
        f"{len(common)} rows compared, {len(moved)} slower by more than {arguments.within:g} %, "
        f"{len(exempt)} of those exempt, "
        f"{len(baseline) - len(common)} of the baseline not measured"
    )
    return 1 if moved else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("baseline")
    parser.add_argument("now", nargs="+")
    parser.add_argument("--within", type=float, required=True, help="percent")
    parser.add_argument("--ranks", default="2", help="of an output about GPUs that does not say it")
    parser.add_argument(
        "--exempt", nargs="*", default=[], help="patterns of case/ranks/bytes/place/way"
    )
    arguments = parser.parse_args()
    try:
        return compare(arguments)
    except (OSError, UnicodeDecodeError, ReportError) as error:
        print(f"gate.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
