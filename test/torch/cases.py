#!/usr/bin/env python3
"""Operations with occl and with gloo, whose results must be equal. cases.py [name ...]"""

from __future__ import annotations

import os
import random
import sys
import time

import torch

import arguments
import harness
import operations
import training
from harness import Ranks, Summary, fresh_place, init

SIZE = 4
LIMIT = 180  # seconds for a case; the machine may be busy


def body(rank: int, names: list[str], place: str, seed: int) -> None:
    init("occl", rank, SIZE, place)
    context = operations.Context(rank, SIZE, seed)
    for name in names:
        context.begin(name)
        CASES[name](context)
        context.meet()  # so that a case is over on all ranks, or on none
        harness.say(passed=name)
    torch.distributed.destroy_process_group()


def run(names: list[str], seed: int, summary: Summary) -> None:
    """Runs cases on one set of ranks; after one that fails the others go on with further ranks."""
    while names:
        place = fresh_place()
        ranks = Ranks(SIZE, lambda rank: body(rank, names, place, seed))
        done, current, began, failed_at = {name: 0 for name in names}, names[0], time.time(), None
        while True:
            for _, message in ranks.messages(0.2):
                name = message["passed"]
                done[name] += 1
                if done[name] == SIZE:
                    summary.note(name, time.time() - began, None)
                    began = time.time()
                    index = names.index(name) + 1
                    current = names[index] if index < len(names) else ""
            for rank, pid in enumerate(ranks.pids):
                if rank not in ranks.statuses:
                    found, status = os.waitpid(pid, os.WNOHANG)
                    if found:
                        ranks.statuses[rank] = os.waitstatus_to_exitcode(status)
                        if ranks.statuses[rank] and failed_at is None:
                            failed_at = time.time()
            if len(ranks.statuses) == SIZE:
                break
            if failed_at and time.time() - failed_at > 5 or time.time() - began > LIMIT:
                ranks.kill()
                break
        if not current:
            if any(ranks.statuses.values()):
                summary.note("leaving", 0, ranks.outputs())
            return
        hung = "" if failed_at else f"not over within {LIMIT} s\n"
        summary.note(current, time.time() - began, hung + ranks.outputs())
        names = names[names.index(current) + 1:]


CASES = {**operations.CASES, **arguments.CASES, **training.CASES}
if torch.__version__.startswith("2.6."):
    # Its FSDP2 takes CUDA for granted, and its pipelines do not average over microbatches.
    for name in ("fsdp2", "fsdp2_and_tensor_parallel", "pipeline"):
        del CASES[name]
if torch.__version__.startswith("2.9."):
    # Its pipelines begin with an int64 that the next stage receives as a float32: with gloo that
    # ends the process, and with occl it is an error that names both. 2.10 sends a float32.
    del CASES["pipeline"]

if __name__ == "__main__":
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"cases: torch {torch.__version__}, {SIZE} ranks, SEED={seed}", flush=True)
    summary = Summary("case")
    run(sys.argv[1:] or list(CASES), seed, summary)
    sys.exit(summary.finish())
