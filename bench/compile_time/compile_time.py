#!/usr/bin/env python3
"""Measures whole processes of occlc, plan written and verified, and prints a table beside what MSCCLang takes.

    bench/compile_time/compile_time.py [--only TEXT]... [--runs 5] [--csv ROWS]

Seconds, by the clock and of processors, are the least of --runs runs (of one, where a run takes more than 5 s), memory is the largest resident set of them. --csv: the figures as rows for bench/report.py."""

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from reporting.parse import write_own_rows  # noqa: E402
from reporting.rows import NUMBER, Row  # noqa: E402

LONG_RUN = 5.0


def read_cases(path):
    with open(path, encoding="utf-8") as lines:
        return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def run_once(command):
    """Seconds by the clock and of processors, and largest resident set in MB of one process; None if it fails. What it prints is not shown."""
    begin = time.monotonic()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.monotonic() - begin
    return (seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024) if status == 0 else None


def defines_of(case):
    """The values of -D; @permuted stands for the ranks in some order, always the same."""
    defines = dict(define.split("=", 1) for define in case["defines"].split())
    if defines.get("order") == "@permuted":
        order = list(range(int(defines["ranks"])))
        random.Random(1).shuffle(order)
        defines["order"] = str(order)
    return ["%s=%s" % define for define in defines.items()]


def command_of(case, options, folder):
    """A file "chain.ENCODING" is what make_plan writes of the two numbers in the place of defines; one of "-" is none, and occlc does nothing but begin."""
    output = os.path.join(folder, "x.plan." + options.encoding)
    if case["file"] == "-":
        return [options.occlc, "--version"]
    if case["file"].startswith("chain."):
        chain = os.path.join(folder, "chain.plan." + case["file"].removeprefix("chain."))
        subprocess.run([options.make_plan, *case["defines"].split(), chain], check=True)
        return [options.occlc, "verify", chain]
    command = [options.occlc, "compile", os.path.join(ROOT, case["file"]), "-o", output]
    if case["name"].endswith("--verify-each"):
        command.append("--verify-each")
    for define in defines_of(case):
        command += ["-D", define]
    return command


def measure(command, runs):
    results = []
    while len(results) < runs:
        result = run_once(command)
        if result is None:
            return None
        results.append(result)
        if result[0] > LONG_RUN:
            break
    seconds, processor, megabytes = zip(*results)
    return min(seconds), min(processor), max(megabytes)


def text_of(seconds):
    return "%.3f" % seconds if seconds < 0.1 else "%.2f" % seconds


def row(case, result):
    ours = "fails | - | -" if result is None else "%s | %s | %.0f" % (text_of(result[0]), text_of(result[1]), result[2])
    goal = case["goal_s"]
    verdict = "" if goal == "-" else "yes" if result and result[0] <= float(goal) else "**no**"
    return "| %s | %s | %s | %s | %s | %s |" % (case["name"], case["peer_s"], case["peer_mb"], ours, goal, verdict)


def figures(case, result):
    """The rows for bench/report.py."""
    name = case["name"]
    yield Row(name, "time", "s", "fails" if result is None else text_of(result[0]))
    if result is not None:
        yield Row(name, "processor time", "s", text_of(result[1]))
        yield Row(name, "memory", "MB", "%.0f" % result[2])
    for library, metric, unit, field in (("OCCL", "goal", "s", "goal_s"), ("MSCCLang", "processor time", "s", "peer_s"),
                                         ("MSCCLang", "memory", "MB", "peer_mb")):
        value = case[field].replace("> ", ">")
        if value == "fails" or NUMBER.fullmatch(value):
            yield Row(name, metric, unit, value, library=library)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--occlc", default=os.path.join(ROOT, "bazel-bin/tools/occlc/occlc"))
    parser.add_argument("--make-plan", default=os.path.join(ROOT, "bazel-bin/bench/verify_time/make_plan"))
    parser.add_argument("--only", action="append", help="only cases whose name contains this, or another --only")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--encoding", choices=["cbor", "json"], default="cbor", help="of the plans that are written")
    parser.add_argument("--csv", help="writes the figures here, as rows for bench/report.py --add compile_time")
    options = parser.parse_args()
    print("Load at the start: %.1f. Plans are written as %s." % (os.getloadavg()[0], options.encoding.upper()))
    print()
    print("| program | MSCCLang, s | MB | occlc, s | processor, s | MB | goal, s | reached |")
    print("|---|---|---|---|---|---|---|---|")
    failed, rows = False, []
    with tempfile.TemporaryDirectory() as folder:
        for case in read_cases(os.path.join(ROOT, "bench/compile_time/cases.tsv")):
            if not any(text in case["name"] for text in options.only or [""]):
                continue
            result = measure(command_of(case, options, folder), options.runs)
            failed |= result is None
            print(row(case, result), flush=True)
            rows += figures(case, result)
    if options.csv:
        write_own_rows(options.csv, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
