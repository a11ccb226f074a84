#!/usr/bin/env python3
"""The backend occl with CUDA tensors: operations, models, programs that hang with other libraries
(h*, s24), and wrong ones that must end with a report (u*). Each in ranks of its own, with a limit.

    run.py [name ...]        a word that is no name chooses all that begin with it: case, model, hang, hang/u

OCCL_TEST_RANKS: how many (2); they share the GPUs that there are. LIMIT: seconds for one (60). TOTAL:
what does not begin within so many seconds is not run (3000). OCCL_TEST_DEVICE=cpu: on CPUs, what can
be. BACKEND=nccl: hang/... with PyTorch's backend of that name, and NCCL, or what LD_PRELOAD has in
its place. Ends with a table and a line "N passed, N failed, N not run"; the status is 1 if one failed.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import sys
import time
from dataclasses import dataclass
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
# Seconds until PyTorch ends what is late. libnccl.so.2 says after 30 for whom it waits.
PATIENCE = 35 if device.BACKEND == "nccl" else 10


@dataclass
class Program:
    size: int
    body: Callable[[int], None]
    reports: list[str | None] | None = None  # by rank, what OCCL says; PyTorch then ends the ranks


def case(function, name: str) -> Program:
    place = fresh_place()

    def body(rank: int) -> None:
        on = device.enter(rank, RANKS, place, LIMIT * 0.8, bound="ddp" in name)
        context = operations.Context(rank, RANKS, SEED)
        context.device = on
        context.begin(name)
        function(context)
        context.meet()
        dist.destroy_process_group()
    return Program(RANKS, body)


def hang(path: Path) -> Program:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    program = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(program)
    place = fresh_place()
    errors = getattr(program, "ERROR", None)
    if path.parent.parent != HERE and not (device.ON_CPU and path.stem == "u1"):
        errors = NAMED.get(path.stem, errors)
    if hasattr(program, "SECONDS"):
        program.SECONDS = max(program.SECONDS, PATIENCE)  # making a communicator on a device is in it
    # A hang is to be seen as one: with NCCL nothing but the limit ends it.
    seconds = LIMIT * (2 if device.BACKEND == "nccl" and not errors else 0.8)

    def body(rank: int) -> None:
        on = device.enter(rank, program.RANKS, place, getattr(program, "SECONDS", seconds))
        wanted = errors[rank % len(errors)] if errors else None
        if wanted is None:
            program.body(rank)
            dist.destroy_process_group()
            return
        if device.BACKEND != "occl":
            device.is_ended_by_the_library(lambda: program.body(rank), LIMIT)
            return
        text = device.must_fail(on, lambda: program.body(rank), wanted, LIMIT * 0.6)
        harness.say(note=" ".join(text.split())[:300])
    return Program(program.RANKS, body, errors if device.BACKEND != "occl" else None)


def everything() -> dict[str, Callable[[], Program]]:
    programs = {f"case/{name}": lambda f=f, n=name: case(f, n) for name, f in collectives.CASES.items()}
    programs |= {f"model/{name}": lambda f=f, n=name: case(f, n)
                 for name, f in models.CASES.items()}
    files = {p.stem: p for p in [*HERE.parent.glob("hangs/*.py"), *HERE.glob("hangs/*.py")]}
    for name in sorted(files, key=lambda n: (n[0], int(n[1:]))):
        if not device.ON_CPU or name not in ONLY_ON_DEVICES:
            programs[f"hang/{name}"] = lambda p=files[name]: hang(p)
    return programs


def unsaid(ranks: Ranks, wanted: list[str | None]) -> str:
    """What OCCL says on no rank though it should, "" if nothing."""
    text = "\n".join(device.said_by_occl(ranks.output(rank)) for rank in range(len(ranks.pids)))
    return "; ".join(f"no '{pattern}' in what OCCL says" for pattern in wanted
                     if pattern and not re.search(pattern, text, re.IGNORECASE | re.DOTALL))


def execute(program: Program) -> tuple[str, str, list[str]]:
    """The outcome, what is wrong, "" if nothing is, and what ranks said."""
    size = program.size
    ranks = Ranks(size, program.body)
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
    if set(failed.values()) == {device.TOO_FEW_GPUS}:
        return "not run", f"needs {size} GPUs", []
    if program.reports and failed:  # the end of one is that of all: PyTorch's job is over
        said = unsaid(ranks, program.reports)
        return ("FAILED", f"{said}\n{ranks.outputs()}", notes) if said else ("passed", "", notes)
    if not waiting and not failed:
        return "passed", "", notes
    wrong = [f"exit statuses {failed}"] if failed else []
    wrong += [f"ranks {waiting} are not over within {LIMIT:g} s"] if waiting else []
    return "FAILED", "; ".join(wrong) + "\n" + ranks.outputs(), notes


def main(words: list[str]) -> int:
    there = everything()
    programs = {name: p for name, p in there.items()
                if (not words or any(name == w or (w not in there and name.startswith(w)) for w in words))
                and (device.BACKEND == "occl" or name.startswith("hang/"))}
    where = "CPUs" if device.ON_CPU else "GPUs"
    print(f"torch {harness.torch.__version__}, {RANKS} ranks on {where}, SEED={SEED}", flush=True)
    began, table, left = time.monotonic(), [], 0
    for name, program in programs.items():
        start = time.monotonic()
        if start - began > TOTAL:
            left += 1
            continue
        outcome, wrong, notes = execute(program())
        seconds = time.monotonic() - start
        table.append((name, outcome, seconds))
        print(f"{outcome} {name}, {seconds:.1f} s", flush=True)
        lines = wrong.strip().splitlines()
        for line in [*lines[:1], *lines[1:][-40:], *notes]:
            print("     " + line[:400], flush=True)
    print(f"\n{'program':32} outcome  seconds")
    for name, outcome, seconds in table:
        print(f"{name:32} {outcome:8} {seconds:7.1f}")
    passed, failed, unable = (sum(outcome == each for _, outcome, _ in table)
                              for each in ("passed", "FAILED", "not run"))
    print(f"{passed} passed, {failed} failed, {left + unable} not run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
