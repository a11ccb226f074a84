#!/usr/bin/env python3
"""Compiles the counterparts of MSCCLang's example programs and prints their schedules beside MSCCLang's figures.

    bench/schedules/schedules.py [PLANS] [--measure] [--only TEXT] [--options "OPTIONS OF occlc compile"]

Channels, thread blocks and steps are those of rows.tsv and of the plans compiled here. Each program is compiled for no more thread blocks and
channels than MSCCLang's has, for the alias modes that it has (options in rows.tsv); the cost model chooses the rest: one plan for all
sizes, and one for each size at which that is predicted to be slower than MSCCLang's. With PLANS, a folder of MSCCL XML plans named as in rows.tsv, it imports them, all with the protocol Simple, and compares the
predicted times at several sizes of a part; with --measure also the times on the runtime, the ranks threads of one process, of MSCCLang's plan and of
one that is chosen for that: both in turns, so that they share what else the machine does; the median of the runs' medians, and
the median and the quartiles of ours / theirs, of runs that follow each other. --csv: the figures as rows for bench/report.py."""

import argparse
import collections
import csv
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from reporting.parse import write_own_rows  # noqa: E402
from reporting.rows import Row  # noqa: E402

SIZES = ["64KiB", "1MiB", "64MiB"]
MICROSECONDS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
TOLERANCE = 1.01  # predicted times are printed with three digits
MEASURED_TOLERANCE = 1.05
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
        """Runs occlc; the schedule that it wrote, or nothing, and what it said."""
        path = os.path.join(self.folder, name + ".plan.json")
        done = subprocess.run([self.options.occlc, *command, "-o", path], capture_output=True, text=True, check=False)
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or ["exit status %d" % done.returncode])[0]
        return schedule_of(path, self.predict(path, row)), done.stderr

    def compile(self, row, sizes, name, on_host=False):
        """The plan that the cost model chooses for these sizes within the budget, for GPUs or for threads of a host; the options that it
        stands for; why there is none."""
        command = ["compile", os.path.join(ROOT, row["file"]), *shlex.split(row["options"]), "--stats", "--tune", "on"]
        if on_host:
            command += ["--topology", os.path.join(ROOT, "topologies/host.topo"), "-D", "cores=%d" % os.cpu_count()]
            command += [] if "-D ranks=" in row["options"] else ["-D", "ranks=" + row["ranks"]]
        else:
            command += ["--topology", self.options.topology, *self.machine(row, row["options"])]
        for size in sizes:
            command += ["--bytes", size]
        if row["blocks"] != "-":
            command += ["--max-thread-blocks", row["blocks"], "--max-channels", row["channels"], "--instances", "auto"]
        found, output = self.make(command + shlex.split(self.options.options), row, name)
        chosen = re.search(r"chosen by prediction: protocol of the source, (.*(?:\n {4}.*)*)", output)
        return found, " ".join(chosen.group(1).split()).replace("1 instance, ", "") if chosen else "", output

    @staticmethod
    def machine(row, said=""):
        """-D for the parameters of the topology that `said` does not have already."""
        nodes = int(row["nodes"])
        sizes = {"nodes": nodes, "gpus": int(row["ranks"]) // nodes}
        return [word for name, value in sizes.items() if "-D %s=" % name not in said
                for word in ("-D", "%s=%d" % (name, value))]

    def import_xml(self, row):
        path = os.path.join(self.options.plans, row["plan"] + ".xml")
        if not os.path.exists(path):
            return None, "no XML"
        simple = os.path.join(self.folder, "theirs.xml")
        with open(path, encoding="utf-8") as source, open(simple, "w", encoding="utf-8") as copy:
            copy.write(re.sub(r'proto="\w+"', 'proto="Simple"', source.read()))
        promise = []
        if row["implements"] != "-":
            file = os.path.join(ROOT, row["implements"])
            promise = ["--implements", file if os.path.exists(file.split(":")[0]) else row["implements"]]
        found, output = self.make(["import", simple, *promise], row, "theirs")
        return found, "" if found else output

    def predict(self, path, row):
        """Microseconds at each of SIZES, on nodes of GPUs."""
        command = [self.options.occlc, "stats", path, "--topology", self.options.topology, *self.machine(row)]
        for size in SIZES:
            command += ["--bytes", size]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.findall(r"^ +[0-9.]+ [KMG]?i?B +([0-9.]+) (ns|us|ms|s)  ", done.stdout, re.MULTILINE)
        return [float(number) * MICROSECONDS[unit] for number, unit in found[: len(SIZES)]]

    def measure(self, theirs, ours):
        """Pairs of microseconds on the runtime, one of each schedule from runs that follow each other; None if one fails."""
        pairs = []
        for i in range(self.options.rounds):
            order = [theirs, ours] if i % 2 == 0 else [ours, theirs]
            times = [schedule and self.run(schedule.path) for schedule in order]
            if None in times:
                return None
            pairs.append(times if i % 2 == 0 else times[::-1])
        return pairs

    def run(self, path):
        """Microseconds of an iteration, the median; None if it fails."""
        with open(path, encoding="utf-8") as file:
            is_in_place = json.load(file)["inPlace"]
        done = subprocess.run([self.options.occl_run, "--plan", path, "--threads", "--count", str(self.options.count),
                               "--iterations", "20", *(["--in-place"] if is_in_place else [])],
                              capture_output=True, text=True, check=False, timeout=300)
        found = re.search(r"median ([0-9.]+) us", done.stdout)
        return float(found.group(1)) if done.returncode == 0 and found else None


def text(value):
    return "-" if value is None else "%.1f" % value


def slower_at(ours, theirs):
    """The sizes at which the schedule is predicted to be slower than MSCCLang's, by their position."""
    return [i for i in range(len(SIZES)) if theirs and ours.times[i] > theirs.times[i] * TOLERANCE]


def behind(row, ours, theirs):
    """In what the schedule is behind MSCCLang's."""
    found = [what for what in ("channels", "blocks") if row[what] != "-" and getattr(ours, what) > int(row[what])]
    if ours.relays:
        found.append("relays")
    for i in slower_at(ours, theirs):
        found.append("time at %s by %.0f %%" % (SIZES[i], 100 * (ours.times[i] / theirs.times[i] - 1)))
    return found


def with_own_plans(row, tools, ours, theirs, chosen):
    """`ours` with the times of plans for single sizes where one for all of them is behind."""
    for i in slower_at(ours, theirs):
        found, options, _ = tools.compile(row, [SIZES[i]], "ours_" + SIZES[i])
        if found and found.times[i] < ours.times[i]:
            times = [*ours.times[:i], found.times[i], *ours.times[i + 1 :]]
            ours = ours._replace(times=times, channels=max(ours.channels, found.channels),
                                 blocks=max(ours.blocks, found.blocks), relays=max(ours.relays, found.relays))
            chosen += "; for %s: %s" % (SIZES[i], options)
    return ours, chosen


def measured(pairs):
    """What to print of pairs of times, and whether ours is behind."""
    ratios = [ours / theirs for theirs, ours in pairs]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    medians = [statistics.median(column) for column in zip(*pairs)]
    return "%.0f / %.0f: %.2f (%.2f to %.2f)" % (*medians, middle, low, high), middle > MEASURED_TOLERANCE


def figures(row, ours, theirs, pairs):
    """The rows for bench/report.py."""
    name = row["name"]
    for field in ("channels", "blocks"):
        yield Row(name, field, "", str(getattr(ours, field)))
        if row[field] != "-":
            yield Row(name, field, "", row[field], library="MSCCLang")
    for schedule, library in ((ours, "OCCL"), (theirs, "MSCCLang")):
        for size, time in zip(SIZES, schedule.times if schedule else []):
            yield Row(name, "predicted, " + size, "us", text(time), way="predicted", library=library)
    if pairs:
        for library, times in zip(("MSCCLang", "OCCL"), zip(*pairs)):
            yield Row(name, "time", "us", "%.0f" % statistics.median(times), way="measured", library=library)
        yield Row(name, "ratio", "", "%.2f" % statistics.median(ours / theirs for theirs, ours in pairs), way="measured")


def print_row(row, tools, options, rows):
    """Whether the schedule is behind in nothing; its figures are added to `rows`."""
    ours, chosen, reason = tools.compile(row, SIZES, "ours")
    if not ours:
        print("| %s | %s |" % (row["name"], reason))
        return False
    theirs, reason = tools.import_xml(row) if options.plans else (None, "")
    ours, chosen = with_own_plans(row, tools, ours, theirs, chosen)
    cells = [row["name"]]
    cells += ["%s / %d" % (row[field], getattr(ours, field)) for field in ("channels", "blocks", "steps", "max_steps")]
    cells += ["%d" % ours.relays, chosen]
    for i in range(len(SIZES)):
        cells.append(" / ".join(text(s.times[i] if s and s.times else None) for s in (theirs, ours)))
    found, pairs = behind(row, ours, theirs), None
    if options.measure:
        on_host, _, _ = tools.compile(row, ["%dB" % (4 * options.count)], "on_host", on_host=True)
        pairs = tools.measure(theirs, on_host)
        said, is_behind = measured(pairs) if pairs else ("-", False)
        cells.append(said)
        found += ["measured time"] if is_behind else []
    print("| %s | %s |" % (" | ".join(cells), ", ".join(found) or reason), flush=True)
    rows += figures(row, ours, theirs, pairs)
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
    parser.add_argument("--rounds", type=int, default=9, help="runs of each plan, with --measure")
    parser.add_argument("--count", type=int, default=1 << 16, help="elements of a part, with --measure")
    parser.add_argument("--csv", help="writes the figures here, as rows for bench/report.py --add programs")
    return parser.parse_args()


def main():
    options = parse_arguments()
    good, rows = True, []
    columns = ["program", "channels", "blocks of a rank", "steps", "steps of a block", "relays left", "options"]
    columns += ["predicted us, " + size for size in SIZES]
    columns += ["measured us: ours / theirs (quartiles)"] if options.measure else []
    print("MSCCLang / occlc in each column.\n")
    print("| %s | behind in |" % " | ".join(columns))
    print("|" + "---|" * (len(columns) + 1))
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(options, folder)
        for row in read_rows(os.path.join(ROOT, "bench/schedules/rows.tsv")):
            if options.only in row["name"]:
                good &= print_row(row, tools, options, rows)
    if options.csv:
        write_own_rows(options.csv, rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
