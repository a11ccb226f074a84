#!/usr/bin/env python3
"""Breaks each condition of the passes and of the proofs in turn, and sees the tests fail; or, with --daemon, the daemon's synchronisation, with
--gpu, what only tests on GPUs can find.

The tree is copied, all mutants are compiled into it at once, and each test runs once to see that it passes and which conditions it
asks for. Then, for each mutant, the tests that ask for its condition run with it chosen, the quickest first, until one fails. A mutant
for which none fails survives; then the exit status is 1. A mistake that is put back has to be found by random programs.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import sys
import threading
import time

from mutants import MutantError, mutate, read_all
from runner import Bazel, trace
from staging import is_staged, stage, staged

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PATTERNS = ["//plan/...", "//compiler/analysis/...", "//compiler/export/...", "//compiler/frontend:collectives_test", "//compiler/passes/...", "//test/passes/...",
            "//test/tools/...", "//test/algorithms/...", "//test/random/...", "//test/plans/..."]
RANDOM_PROGRAMS = "//test/random:random_programs"
DAEMON_PATTERNS = ["//test/explore:callbacks_explored_test", "//test/explore:cells_explored_test", "//test/explore:daemon_explored_test",
                   "//test/explore:doorbell_explored_test", "//test/explore:ends_explored_test", "//test/explore:failure_explored_test",
                   "//test/explore:handover_explored_test", "//test/explore:lane_explored_test", "//test/explore:life_explored_test", "//test/explore:queue_explored_test",
                   "//test/explore:pair_ring_explored_test", "//test/explore:shapes_explored_test", "//test/explore:transfers_explored_test",
                   "//runtime/exec/conformance:references_test", "//runtime/rank:late_ring_test", "//runtime/rank:watchdog_test", "//runtime/sched/policy:scheduler_test", "//test/faults:paused_reading_test",
                   "//test/faults:paused_test"]
MOST_PROGRAMS = 2000


def read_mutants(kind):
    return read_all(ROOT, os.path.join(HERE, kind), set()) if kind else read_all(ROOT, HERE)


def copy_tree(bazel, files, is_chosen):
    """The files that git knows, as they are now; those that have mutants to try with all of theirs. Returns the chosen mutants.
    Bazel's own folder for the copy stays, and with it what is built."""
    if os.path.isdir(bazel.folder):
        shutil.rmtree(bazel.folder)
    for name in bazel.known_files(ROOT):
        source, copy = os.path.join(ROOT, name), os.path.join(bazel.folder, name)
        if os.path.exists(source):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(source, copy)
    chosen = [mutant for _, mutants in files.values() for mutant in mutants if is_chosen(mutant)]
    for file in {mutant.file for mutant in chosen}:
        with open(os.path.join(bazel.folder, file), "w", encoding="utf-8") as copy:
            copy.write(mutate(*files[file]))
    return chosen


def killer_of(mutant, tests):
    """The test that fails, or None."""
    asking = [test for test in tests if (test.name in mutant.tests if mutant.tests else test.is_usual and mutant.name in test.asked)]
    # First the tests that often notice what is wrong with this file, for the time that they take.
    for test in sorted(asking, key=lambda test: test.seconds / (1 + test.kills.get(mutant.file, 0))):
        if not test.passes(mutant.name):
            test.kills[mutant.file] = test.kills.get(mutant.file, 0) + 1
            return test
    return None


def programs_to_find(mutant, tests):
    """How many random programs it takes to notice a mistake, or None."""
    random_programs = next(test for test in tests if test.label == RANDOM_PROGRAMS)
    output = random_programs.output(mutant.name, ["--programs", str(MOST_PROGRAMS), "--seed", "1", "--until-failure"])
    found = re.search(r"^---.*--seed (\d+)", output, re.M)
    return int(found.group(1)) if found else None


def find_mistakes(mutants, tests):
    """Prints a line for each mutant; returns those that no random program finds."""
    missed = []
    for mutant in mutants:
        programs = programs_to_find(mutant, tests)
        if programs is None:
            missed.append(mutant)
        print(f"{'missed' if programs is None else 'found'}     {mutant.name} {mutant.what}: " +
              (f"no program of {MOST_PROGRAMS}" if programs is None else f"random program {programs}"), flush=True)
    return missed


def try_all(mutants, tests, jobs):
    """Prints a line for each mutant; returns those that survive."""
    survivors, lock = [], threading.Lock()

    def attempt(mutant):
        killer = killer_of(mutant, tests)
        with lock:
            if not killer:
                survivors.append(mutant)
            print(f"killed    {mutant.name} {mutant.what} by {killer.name}" if killer else f"survives  {mutant.name} {mutant.what}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(attempt, mutants))
    return survivors


def read_arguments():
    parser = argparse.ArgumentParser(description="breaks each condition in turn, and sees the tests fail")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="mutants whose file or description has one of these")
    parser.add_argument("--daemon", dest="kind", action="store_const", const="daemon",
                        help="break the daemon's synchronisation instead, with the tests that are built for exploration")
    parser.add_argument("--gpu", dest="kind", action="store_const", const="gpu", help="break what only tests on GPUs can find")
    parser.add_argument("--tests", nargs="+", metavar="PATTERN", help="with these tests only, as Bazel names them")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--stage", metavar="FOLDER", help="build them into a folder for another machine, run nothing; there, FOLDER/mutate.py")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    parser.add_argument("--quick", type=float, default=600, metavar="SECONDS", help="leave out tests that take longer")
    parser.add_argument("--left-out", action="store_true", help="try those that are left out: none is killed")
    arguments = parser.parse_args()
    if arguments.stage and not arguments.kind:
        parser.error("--stage is for --daemon and --gpu: the compiler's tests need LLVM's tools")
    return arguments


def print_list(kind):
    for file, (text, mutants) in read_mutants(kind).items():
        for mutant in mutants:
            line = text.count("\n", 0, mutant.begin) + 1
            print(f"{file}:{line}: {mutant.what}" + (f" (left out: {mutant.why_left_out})" if mutant.why_left_out else ""))


def build(arguments, is_chosen):
    """The chosen mutants, and the tests with all of them in."""
    if arguments.kind == "daemon":
        os.environ["CUDA_HOME"] = "/nonexistent"  # device code takes nvcc minutes, and has no mutants
    bazel = Bazel(os.path.join(os.environ.get("TMPDIR", "/tmp"), f"occl-mutants-{os.getuid()}"))
    mutants = copy_tree(bazel, read_mutants(arguments.kind), is_chosen)
    print(f"{len(mutants)} mutants; building", flush=True)
    usual = arguments.tests or {"daemon": DAEMON_PATTERNS, "gpu": []}.get(arguments.kind, PATTERNS)
    return mutants, bazel.build(usual if any(not mutant.tests for mutant in mutants) else [], {test for mutant in mutants for test in mutant.tests})


def main():
    arguments = read_arguments()
    if arguments.list:
        print_list(arguments.kind)
        return 0

    def is_chosen(mutant):
        return bool(mutant.why_left_out) == arguments.left_out and (
            not arguments.only or any(text in f"{mutant.name} {mutant.what}" for text in arguments.only))
    if is_staged():
        mutants, tests = staged()
        mutants = [mutant for mutant in mutants if is_chosen(mutant)]
    else:
        mutants, tests = build(arguments, is_chosen)
    if arguments.stage:
        stage(arguments.stage, mutants, tests)
        return 0
    os.environ.setdefault("OCCL_EXPLORE_SCHEDULES", "4")
    print(f"{len(tests)} tests; running them without a mutant", flush=True)
    trace(tests, arguments.jobs)
    tests = [test for test in tests if test.seconds <= arguments.quick]
    begin = time.monotonic()
    by_programs = [mutant for mutant in mutants if mutant.is_mistake and not mutant.tests and RANDOM_PROGRAMS in {test.label for test in tests}]
    missed = find_mistakes(by_programs, tests)
    survivors = try_all([mutant for mutant in mutants if mutant not in by_programs], tests, arguments.jobs)
    bad = [mutant for mutant in mutants if (mutant in survivors) != arguments.left_out]
    print(f"{len(mutants) - len(survivors) - len(missed)} killed or found, {len(survivors)} survive, {len(missed)} missed, "
          f"{time.monotonic() - begin:.0f} s")
    return 1 if bad or missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MutantError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
