#!/usr/bin/env python3
"""The backend occl with CUDA tensors: operations, models, programs that hang with other libraries
(h*, s24), and wrong ones that must end with a report (u*). Each in ranks of its own, with a limit.

    run.py [name ...]        a word chooses all whose name begins with it: case, model, hang, hang/h4

OCCL_TEST_RANKS: how many (2); they share the GPUs that there are. LIMIT: seconds for one (60). TOTAL:
what does not begin within so many seconds is not run (3000). OCCL_TEST_DEVICE=cpu: on CPUs, what can
be. Ends with a table and a line "N passed, N failed, N not run"; the status is 1 if one failed.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import time
from pathlib import Path
from typing import Callable

os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
import device
import harness
from harness import Ranks, dist, fresh_place

import collectives
import models
import operations

HERE = Path(__file__).resolve().parent
RANKS = int(os.environ.get("OCCL_TEST_RANKS", "2"))
LIMIT = float(os.environ.get("LIMIT", "60"))
TOTAL = float(os.environ.get("TOTAL", "3000"))
SEED = int(os.environ.setdefault("SEED", str(random.randrange(1 << 30))))
# Whom an error names. Texts of devices differ from those of CPUs in what is beside that.
NAMED = {"u1": [r"rank 0.*rank 1|rank 1.*rank 0"], "u2": ["rank 1", "rank 0"],
         "u4": ["rank 2", "rank 2", None], "u5": ["rank 1", "rank 0"]}
ONLY_ON_DEVICES = {"h11"}
Body = Callable[[int], None]


def case(function, name: str) -> tuple[int, Body]:
    place = fresh_place()

    def body(rank: int) -> None:
        on = device.enter(rank, RANKS, place, LIMIT * 0.8, bound="ddp" in name)
        context = operations.Context(rank, RANKS, SEED)
        context.device = on
        context.begin(name)
        function(context)
        context.meet()
        dist.destroy_process_group()
    return RANKS, body


def hang(path: Path) -> tuple[int, Body]:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    program = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(program)
    place = fresh_place()
    errors = getattr(program, "ERROR", None)
    if path.parent.parent != HERE and not (device.ON_CPU and path.stem == "u1"):
        errors = NAMED.get(path.stem, errors)
    if hasattr(program, "SECONDS"):
        program.SECONDS = max(program.SECONDS, 10)  # making a communicator on a device is in it

    def body(rank: int) -> None:
        on = device.enter(rank, program.RANKS, place, getattr(program, "SECONDS", LIMIT * 0.8))
        wanted = errors[rank % len(errors)] if errors else None
        if wanted is None:
            program.body(rank)
            dist.destroy_process_group()
            return
        text = device.must_fail(on, lambda: program.body(rank), wanted, LIMIT * 0.6)
        harness.say(note=" ".join(text.split())[:300])
    return program.RANKS, body


def everything() -> dict[str, Callable[[], tuple[int, Body]]]:
    programs = {f"case/{name}": lambda f=f, n=name: case(f, n) for name, f in collectives.CASES.items()}
    programs |= {f"model/{name}": lambda f=f, n=name: case(f, n)
                 for name, f in models.CASES.items()}
    files = {p.stem: p for p in [*HERE.parent.glob("hangs/*.py"), *HERE.glob("hangs/*.py")]}
    for name in sorted(files, key=lambda n: (n[0], int(n[1:]))):
        if not device.ON_CPU or name not in ONLY_ON_DEVICES:
            programs[f"hang/{name}"] = lambda p=files[name]: hang(p)
    return programs


def execute(program: Callable[[], tuple[int, Body]]) -> tuple[str, list[str]]:
    """What is wrong, "" if nothing is, and what ranks said."""
    size, body = program()
    ranks = Ranks(size, body)
    until, notes = time.monotonic() + LIMIT, []
    while len(ranks.statuses) < size and time.monotonic() < until:
        notes += [f"rank {rank}: {m['note']}" for rank, m in ranks.messages(0.05) if "note" in m]
        ranks.wait(0.05, kill=False)
        if any(ranks.statuses.values()):
            until = min(until, time.monotonic() + 10)  # for the others to say what they know
    waiting = [rank for rank in range(size) if rank not in ranks.statuses]
    failed = {rank: status for rank, status in ranks.statuses.items() if status}
    ranks.kill()
    notes += [f"rank {rank}: {m['note']}" for rank, m in ranks.messages(0.1) if "note" in m]
    if not waiting and not failed:
        return "", notes
    wrong = [f"exit statuses {failed}"] if failed else []
    wrong += [f"ranks {waiting} are not over within {LIMIT:g} s"] if waiting else []
    return "; ".join(wrong) + "\n" + ranks.outputs(), notes


def main(words: list[str]) -> int:
    programs = {name: p for name, p in everything().items()
                if not words or any(name.startswith(w) for w in words)}
    where = "CPUs" if device.ON_CPU else "GPUs"
    print(f"torch {harness.torch.__version__}, {RANKS} ranks on {where}, SEED={SEED}", flush=True)
    began, table, left = time.monotonic(), [], 0
    for name, program in programs.items():
        start = time.monotonic()
        if start - began > TOTAL:
            left += 1
            continue
        wrong, notes = execute(program)
        seconds = time.monotonic() - start
        table.append((name, "FAILED" if wrong else "passed", seconds))
        print(f"{table[-1][1]} {name}, {seconds:.1f} s", flush=True)
        for line in [*wrong.strip().splitlines()[-40:], *notes]:
            print("     " + line[:400], flush=True)
    print(f"\n{'program':32} outcome  seconds")
    for name, outcome, seconds in table:
        print(f"{name:32} {outcome:8} {seconds:7.1f}")
    failed = sum(outcome == "FAILED" for _, outcome, _ in table)
    print(f"{len(table) - failed} passed, {failed} failed, {left} not run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
