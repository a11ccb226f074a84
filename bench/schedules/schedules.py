#!/usr/bin/env python3
"""Compiles the counterparts of MSCCLang's example programs and prints their schedules beside MSCCLang's figures.

    bench/schedules/schedules.py [PLANS] [--measure] [--only TEXT] [--options "OPTIONS OF occlc compile"]

Channels, thread blocks and steps are those of rows.tsv and of the plans compiled here. Each program is compiled for no more thread blocks and
channels than MSCCLang's has, with and without multicast and with several numbers of instances; the plan that is predicted to be the
fastest counts. With PLANS, a folder of MSCCL XML plans named as in rows.tsv, it imports them, all with the protocol Simple, and compares the
predicted times at several sizes of a part; with --measure also the times on the runtime, the ranks threads of one process."""

import argparse
import collections
import csv
import itertools
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = ["64KiB", "1MiB", "64MiB"]
MICROSECONDS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
TOLERANCE = 1.01  # predicted times are printed with three digits
Schedule = collections.namedtuple("Schedule", "channels blocks steps max_steps relays times path")


def read_rows(path):
    with open(path, encoding="utf-8") as lines:
        return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def unfused_relays(rank):
    """Receipts into scratch that a send of exactly the same range hands on: what fusion is there to avoid."""
    instructions = [i for block in rank["threadBlocks"] for i in block]
    sent = {(tuple(i["src"][0]), i["count"]) for i in instructions if i["op"] == "send"}
    return sum(i["op"] == "recv" and (tuple(i["dst"][0]), i["count"]) in sent and i["dst"][0][0] == "scratch"
               for i in instructions)


def schedule_of(path, times):
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    blocks = [rank["threadBlocks"] for rank in plan["ranks"]]
    return Schedule(
        channels=len({connection[1] for connection in plan["connections"]}),
        blocks=max(map(len, blocks)),
        steps=sum(len(block) for rank in blocks for block in rank),
        max_steps=max(len(block) for rank in blocks for block in rank),
        relays=sum(map(unfused_relays, plan["ranks"])),
        times=times,
        path=path,
    )


class Tools:
    """The programs that make, judge and run plans; `folder` holds what they write."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def make(self, command, row, name):
        """Runs occlc; the schedule that it wrote, or why there is none."""
        path = os.path.join(self.folder, name + ".plan.json")
        done = subprocess.run([self.options.occlc, *command, "-o", path], capture_output=True, text=True, check=False)
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or ["exit status %d" % done.returncode])[0]
        return schedule_of(path, self.predict(path, row)), ""

    def compile(self, row):
        """The fastest of the plans within the budget, the options that it took, and why there is none."""
        budget, instances = [], [1]
        if row["blocks"] != "-":
            budget = ["--max-thread-blocks", row["blocks"], "--max-channels", row["channels"]]
            instances = [n for n in (1, 2, 4, 8, 16, 32) if n <= min(int(row["channels"]), int(row["blocks"]))]
        best, chosen, reason = None, [], ""
        for variant in itertools.product([[], ["--no-multicast"]], [["--instances", str(n)] for n in instances]):
            words = variant[0] + (variant[1] if variant[1][1] != "1" else [])
            command = ["compile", os.path.join(ROOT, row["file"]), *shlex.split(row["options"]), *budget, *words]
            found, why = self.make(command + shlex.split(self.options.options), row, "_".join(["ours", *words]))
            if found and (best is None or total(found) < total(best)):
                best, chosen = found, words
            reason = reason or why
        return best, " ".join(chosen), reason

    def import_xml(self, row):
        path = os.path.join(self.options.plans, row["plan"] + ".xml")
        if not os.path.exists(path):
            return None, "no XML"
        simple = os.path.join(self.folder, "theirs.xml")
        with open(path, encoding="utf-8") as source, open(simple, "w", encoding="utf-8") as copy:
            copy.write(re.sub(r'proto="\w+"', 'proto="Simple"', source.read()))
        return self.make(["import", simple], row, "theirs")

    def predict(self, path, row):
        """Microseconds at each of SIZES, on nodes of GPUs."""
        nodes = int(row["nodes"])
        command = [self.options.occlc, "stats", path, "--topology", self.options.topology, "-D", "nodes=%d" % nodes,
                   "-D", "gpus=%d" % (int(row["ranks"]) // nodes)]
        for size in SIZES:
            command += ["--bytes", size]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.findall(r"^ +[0-9.]+ [KMG]?i?B +([0-9.]+) (ns|us|ms|s)  ", done.stdout, re.MULTILINE)
        return [float(number) * MICROSECONDS[unit] for number, unit in found[: len(SIZES)]]

    def measure(self, schedule):
        """Median microseconds of an iteration on the runtime; None if it fails."""
        done = subprocess.run([self.options.occl_run, "--plan", schedule.path, "--threads", "--count",
                               str(self.options.count), "--iterations", "20"],
                              capture_output=True, text=True, check=False, timeout=300)
        found = re.search(r"median ([0-9.]+) us", done.stdout)
        return float(found.group(1)) if done.returncode == 0 and found else None


def total(schedule):
    """What a schedule costs, each size counted alike."""
    return sum(map(math.log, schedule.times))


def text(value):
    return "-" if value is None else "%.1f" % value


def behind(row, ours, theirs):
    """In what the schedule is behind MSCCLang's."""
    found = [what for what in ("channels", "blocks") if row[what] != "-" and getattr(ours, what) > int(row[what])]
    if ours.relays:
        found.append("relays")
    for size, mine, other in zip(SIZES, ours.times, theirs.times if theirs else []):
        if mine > other * TOLERANCE:
            found.append("time at %s by %.0f %%" % (size, 100 * (mine / other - 1)))
    return found


def print_row(row, tools, options):
    ours, chosen, reason = tools.compile(row)
    if not ours:
        print("| %s | %s |" % (row["name"], reason))
        return False
    theirs, reason = tools.import_xml(row) if options.plans else (None, "")
    cells = [row["name"]]
    cells += ["%s / %d" % (row[field], getattr(ours, field)) for field in ("channels", "blocks", "steps", "max_steps")]
    cells += ["%d" % ours.relays, chosen or "-"]
    for i in range(len(SIZES)):
        cells.append(" / ".join(text(s.times[i] if s and s.times else None) for s in (theirs, ours)))
    if options.measure:
        cells.append(" / ".join(text(tools.measure(s) if s else None) for s in (theirs, ours)))
    found = behind(row, ours, theirs)
    print("| %s | %s |" % (" | ".join(cells), ", ".join(found) or reason), flush=True)
    return not found


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plans", nargs="?", help="a folder of MSCCL XML plans")
    parser.add_argument("--occlc", default=os.path.join(ROOT, "bazel-bin/tools/occlc/occlc"))
    parser.add_argument("--occl-run", default=os.path.join(ROOT, "bazel-bin/tools/occl-run/occl-run"))
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--options", default="", help="further options of occlc compile")
    parser.add_argument("--topology", default=os.path.join(ROOT, "topologies/h200.topo"),
                        help="what the prediction is for; has parameters nodes and gpus")
    parser.add_argument("--measure", action="store_true", help="run the plans")
    parser.add_argument("--count", type=int, default=1 << 16, help="elements of a part, with --measure")
    return parser.parse_args()


def main():
    options = parse_arguments()
    good = True
    columns = ["program", "channels", "blocks of a rank", "steps", "steps of a block", "relays left", "options"]
    columns += ["predicted us, " + size for size in SIZES]
    columns += ["measured us"] if options.measure else []
    print("MSCCLang / occlc in each column.\n")
    print("| %s | behind in |" % " | ".join(columns))
    print("|" + "---|" * (len(columns) + 1))
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(options, folder)
        for row in read_rows(os.path.join(ROOT, "bench/schedules/rows.tsv")):
            if options.only in row["name"]:
                good &= print_row(row, tools, options)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
