#!/usr/bin/env python3
"""Compiles random programs with random options, verifies the plans, and executes them against a reference.

usage: random_programs.py <occlc>
OCCL_TEST_SEED is the first program, OCCL_TEST_PROGRAMS how many there are.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

from generator import Generator
from interpreter import Execution, Stuck

SCHEDULES = 3  # random orders in which each plan is executed, in each alias mode


class Failure(Exception):
    pass


def random_options(choice):
    options = [flag for flag in ("--no-fuse", "--no-multicast", "--no-aggregate") if choice.random() < 0.2]
    return options + ["--max-thread-blocks", str(choice.choice([1, 1, 2, 4])), "--depth",
                      str(choice.choice([1, 1, 2, 3]))]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(command)} exits with {done.returncode}:\n{done.stderr}")


def check_execution(plan, program, in_place, choice):
    execution = Execution(plan, in_place, choice)
    try:
        execution.run()
    except (AssertionError, KeyError, Stuck) as error:
        raise Failure(f"executing the plan, in place: {in_place}: {type(error).__name__}: {error}") from error
    for rank, chunk, value in program.required():
        result = execution.memory[execution.address(rank, "output", chunk)]
        if result.expression != value.expression:
            raise Failure(f"output[{chunk}] of rank {rank} is {result.expression}, expected {value.expression}"
                          f" (in place: {in_place})")
        if result.finals != (value.reduction is not None):
            raise Failure(f"output[{chunk}] of rank {rank} has passed {result.finals} final reductions")


def check_program(occlc, program, text, options, folder, choice):
    source, target = os.path.join(folder, "random.mlir"), os.path.join(folder, "random.plan.json")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    run(occlc, "compile", source, "-o", target, *options)
    run(occlc, "verify", target)
    with open(target, encoding="utf-8") as file:
        plan = json.load(file)
    claimed = [mode for mode, name in ((False, "outOfPlace"), (True, "inPlace")) if plan[name]]
    if claimed != program.shape.modes:
        raise Failure(f"the plan claims in place: {claimed}, the program {program.shape.modes}")
    if plan["uniformChunks"] and not program.uniform:
        raise Failure("the plan asks for chunks of one size without need")
    for in_place in claimed:
        for _ in range(SCHEDULES):
            check_execution(plan, program, in_place, choice)


def main():
    occlc = sys.argv[1]
    first = int(os.environ.get("OCCL_TEST_SEED", "1"))
    count = int(os.environ.get("OCCL_TEST_PROGRAMS", "150"))
    print(f"seed {first}, {count} programs (OCCL_TEST_SEED, OCCL_TEST_PROGRAMS)", flush=True)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            choice = random.Random(seed)
            program = Generator(choice).run()
            text, options = program.text(), random_options(choice)
            if text is None:
                continue
            try:
                check_program(occlc, program, text, options, folder, choice)
            except Failure as failure:
                failures += 1
                print(f"--- OCCL_TEST_SEED={seed} OCCL_TEST_PROGRAMS=1\n{text}options: {' '.join(options)}\n{failure}")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
