#!/usr/bin/env python3
"""Programs that hang with other libraries (h*, s24) end, and wrong ones (u*) end with a report.

    hangs.py [name ...]             those of hangs/, with occl, and with gloo beside
    BACKEND=occl hangs.py h5        with one backend
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import sys
import time
from pathlib import Path

import harness
from harness import Ranks, Summary, fresh_place, init

LIMIT = 120  # seconds; the machine may be busy


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"hangs/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, backend: str) -> str | None:
    """Why it failed, or None."""
    program = load(name)
    place = fresh_place()
    expected = getattr(program, "ERROR", None)

    def body(rank: int) -> None:
        init(backend, rank, program.RANKS, place, getattr(program, "SECONDS", 100))
        if expected is None or expected[rank % len(expected)] is None:
            program.body(rank)
            harness.dist.destroy_process_group()
            return
        try:
            program.body(rank)
        except harness.dist.DistBackendError as error:
            wanted = expected[rank % len(expected)]
            if re.search(wanted, str(error), re.IGNORECASE | re.DOTALL):
                return
            raise AssertionError(f"no '{wanted}' in the error") from error
        raise AssertionError("it ended without an error")

    ranks = Ranks(program.RANKS, body)
    if not ranks.wait(LIMIT):
        return f"hangs: not over within {LIMIT} s\n{ranks.outputs()}"
    if any(ranks.statuses.values()):
        return f"exit statuses {ranks.statuses}\n{ranks.outputs()}"
    return None


if __name__ == "__main__":
    os.environ.setdefault("SEED", str(random.randrange(1 << 30)))
    names = sys.argv[1:] or sorted(p.stem for p in Path(__file__).parent.glob("hangs/*.py"))
    backends = [os.environ["BACKEND"]] if "BACKEND" in os.environ else ["occl", "gloo"]
    print(f"hangs: {len(names)} programs, SEED={os.environ['SEED']}", flush=True)
    summary = Summary("hang")
    for name in names:
        for backend in backends:
            if backend == "gloo" and name.startswith("u"):
                continue  # those end when gloo's deadline does, with texts of its own
            began = time.time()
            error = run(name, backend)
            summary.note(f"{name} {backend}", time.time() - began, error)
    sys.exit(summary.finish())
