#!/usr/bin/env python3
"""Breaks each rewrite condition and each proof rule in turn, and sees the tests fail.

usage: mutate.py [--only NAME ...] [--list]

The tree is copied, all mutants are compiled into it at once, and the tests named by each mutant run with that mutant
chosen. A mutant for which no test fails survives; then the exit status is 1.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

from mutants import MutantError, mutated_files, read_mutants

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TESTS_FAILED = 3  # Bazel's exit status


def copy_tree(target):
    """The files that git knows, as they are now; what is equal keeps its time, so that Bazel stays warm."""
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True).stdout
    for name in names.decode().rstrip("\0").split("\0"):
        source, copy = os.path.join(ROOT, name), os.path.join(target, name)
        if os.path.exists(source):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(source, copy)


def bazel(folder, *arguments, output=None):
    return subprocess.run([os.path.join(folder, "tools/dev/bazel.sh"), *arguments], cwd=folder, stdout=output,
                          stderr=subprocess.STDOUT if output else None, check=False).returncode


def run_tests(folder, mutant, targets, env, log):
    options = [f"--test_env=OCCL_MUTANT={mutant}", *(f"--test_env={key}={value}" for key, value in env.items())]
    return bazel(folder, "test", "--notest_keep_going", "--test_output=errors", *options, *targets, output=log)


def try_mutant(folder, mutant):
    """Whether a test noticed; the log of the run is kept beside the copy."""
    begin = time.monotonic()
    with open(f"{folder}.{mutant.name}.log", "w", encoding="utf-8") as log:
        status = run_tests(folder, mutant.name, mutant.tests, mutant.env, log)
    if status not in (0, TESTS_FAILED):
        raise MutantError(f"mutant {mutant.name}: bazel ended with {status}, see {log.name}")
    verdict = "survives" if status == 0 else "killed"
    print(f"{verdict:9} {mutant.name}: {mutant.what} ({time.monotonic() - begin:.0f} s)", flush=True)
    return status != 0


def check_unbroken(folder, mutants):
    targets = sorted({test for mutant in mutants for test in mutant.tests})
    print(f"{len(mutants)} mutants; building and testing the unbroken tree: {' '.join(targets)}", flush=True)
    if bazel(folder, "test", "--test_output=errors", "--test_env=OCCL_MUTANT=none", *targets):
        raise MutantError("the tests fail without any mutant")


def main():
    parser = argparse.ArgumentParser(description="breaks each rule in turn, and sees the tests fail")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants only")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    arguments = parser.parse_args()
    mutants = read_mutants(HERE)
    unknown = set(arguments.only or []) - {mutant.name for mutant in mutants}
    if unknown:
        raise MutantError(f"there is no mutant {', '.join(sorted(unknown))}")
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.what} ({mutant.file})")
        return 0
    folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"occl-mutants-{os.getuid()}")
    copy_tree(folder)
    for path, text in mutated_files(ROOT, mutants):
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text)
    wanted = [mutant for mutant in mutants if not arguments.only or mutant.name in arguments.only]
    check_unbroken(folder, wanted)
    survivors = [mutant.name for mutant in wanted if not try_mutant(folder, mutant)]
    print(f"{len(wanted) - len(survivors)} killed, {len(survivors)} survive {' '.join(survivors)}")
    return 1 if survivors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MutantError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
