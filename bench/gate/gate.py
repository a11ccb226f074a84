#!/usr/bin/env python3
"""Compares what was measured now with committed figures, row by row.

    gate.py rows REPORT.md [--place inplace]     rows of a table of bench/host_collectives or bench/gpu/processes, as CSV
    gate.py compare BASELINE.csv NOW [NOW...] --within 5 [--exempt PATTERN...]

A row is (collective, ranks, bytes, place, way). Machines differ from day to day, and so does what runs beside: so a row has moved only if
its time grew by more than the bound *and* the peer that was timed in the same run did not grow with it, that is if our time divided by
the peer's grew by more than the bound, too. Of several measurements of a row the best counts. NOW may be CSV or a report.
Exit status: 0 if no row has moved, 1 if some have, 2 for a file that cannot be read or has no row of the baseline.
"""
import argparse
import csv
import fnmatch
import re
import sys

KEY = ["collective", "ranks", "bytes", "place", "way"]
FIELDS = KEY + ["us", "peer_us"]


class ReportError(Exception):
    """A report is not what its name says."""


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def is_row(line):
    return line.startswith("|") and not set(line.strip()) <= set("|-: ")


def host_rows(header, values, place):
    """A row of bench/host_collectives: the peer is Open MPI. Older tables have two times of ours; the later one counts."""
    if place == "outofplace" and values[0] == "broadcast":
        place = "inplace"
    ours = [i for i, name in enumerate(header) if re.fullmatch(r"(after: )?OCCL us|after us", name)][-1]
    peers = [i for i, name in enumerate(header) if name == "Open MPI us"][-1]
    yield dict(zip(FIELDS, [values[0], values[1], values[2], place, "run", values[ours], values[peers]]))


def gpu_rows(header, values, ranks, place):
    """A row of bench/gpu/processes: three ways; the peer is the faster one of NCCL plain and symmetric."""
    collective, *_ = header[0].split(",")[0].split()
    if "in place" in header[0]:
        place = "inplace"
    for way, column in (("stream", 1), ("graph", 2), ("blocking", 3)):
        peers = [float(values[column + 3 * k]) for k in (1, 2) if re.fullmatch(r"[\d.]+", values[column + 3 * k])]
        if re.fullmatch(r"[\d.]+", values[column]):
            yield dict(zip(FIELDS, [collective, ranks, values[0], place, way, values[column], str(min(peers)) if peers else ""]))


def rows_of_report(name, ranks, place):
    header = None
    with open(name, encoding="utf-8") as report:
        for line in report:
            if not is_row(line):
                header = header if line.startswith("|") else None
                continue
            values = cells(line)
            if header is None or values[0].endswith(", bytes") or values[0] == "collective":
                header = values
            elif header[:3] == ["collective", "ranks", "bytes"] and any(name.endswith("us") for name in header[3:]) and "Open MPI us" in header:
                yield from host_rows(header, values, place)
            elif header[0].endswith(", bytes") and len(header) >= 10:
                yield from gpu_rows(header, values, ranks, place)


def rows_of(name, ranks="2", place="outofplace"):
    if name.endswith(".csv"):
        with open(name, encoding="utf-8", newline="") as table:
            return list(csv.DictReader(table))
    return list(rows_of_report(name, ranks, place))


def best(rows):
    """By key, the measurement with the lowest time."""
    found = {}
    for row in rows:
        if not all(row.get(field) is not None for field in FIELDS):
            raise ReportError(f"a row lacks one of {', '.join(FIELDS)}: {row}")
        key = tuple(row[field] for field in KEY)
        if key not in found or float(row["us"]) < float(found[key]["us"]):
            found[key] = row
    return found


def has_moved(before, now, bound):
    """Whether a row is slower by more than the bound, and not because all that ran then was. Times are printed with a tenth of a
    microsecond: that much is no change."""
    limit = 1 + bound / 100
    if float(now["us"]) <= float(before["us"]) * limit + 0.1:
        return False
    if not before["peer_us"] or not now["peer_us"]:
        return True
    ratio = float(now["us"]) / float(now["peer_us"])
    return ratio > float(before["us"]) / float(before["peer_us"]) * limit


def compare(arguments):
    baseline = best(rows_of(arguments.baseline))
    now = best([row for name in arguments.now for row in rows_of(name, arguments.ranks, arguments.place)])
    common = sorted(set(baseline) & set(now), key=lambda key: (key[0], int(key[1]), key[3], key[4], int(key[2])))
    if not common:
        raise ReportError("no row of the baseline was measured")
    moved, exempt = [], []
    for key in common:
        if has_moved(baseline[key], now[key], arguments.within):
            name = "/".join(key)
            (exempt if any(fnmatch.fnmatch(name, pattern) for pattern in arguments.exempt) else moved).append(key)
    for title, keys in (("slower", moved), ("slower, exempt", exempt)):
        for key in keys:
            print(f"{title}: {'/'.join(key)}: {baseline[key]['us']} us -> {now[key]['us']} us "
                  f"(peer {baseline[key]['peer_us'] or '-'} -> {now[key]['peer_us'] or '-'})")
    print(f"{len(common)} rows compared, {len(moved)} slower by more than {arguments.within:g} %, {len(exempt)} of those exempt, "
          f"{len(baseline) - len(common)} of the baseline not measured")
    return 1 if moved else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("rows", "compare"):
        command = commands.add_parser(name)
        command.add_argument("--ranks", default="2", help="of a report about GPUs, which does not say it in its rows")
        command.add_argument("--place", default="outofplace", choices=["outofplace", "inplace"])
    commands.choices["rows"].add_argument("report", nargs="+")
    commands.choices["compare"].add_argument("baseline")
    commands.choices["compare"].add_argument("now", nargs="+")
    commands.choices["compare"].add_argument("--within", type=float, required=True, help="percent")
    commands.choices["compare"].add_argument("--exempt", nargs="*", default=[], help="patterns of collective/ranks/bytes/place/way")
    arguments = parser.parse_args()
    try:
        if arguments.command == "compare":
            return compare(arguments)
        table = csv.DictWriter(sys.stdout, FIELDS, lineterminator="\n")
        table.writeheader()
        for name in arguments.report:
            table.writerows(rows_of(name, arguments.ranks, arguments.place))
        return 0
    except (OSError, ReportError, ValueError, IndexError) as error:
        print(f"gate.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
