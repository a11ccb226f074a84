#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed (torch.testing._internal.distributed.distributed_test, as
they are in its wheel), with BACKEND=occl or BACKEND=gloo.

    BACKEND=occl suite.py [name ...]     those of TESTS, or the named ones
    BACKEND=occl suite.py --all          whatever there is; skipped ones are counted
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time

os.environ.setdefault("BACKEND", "occl")
os.environ["WORLD_SIZE"] = "3"
os.environ["TEMP_DIR"] = tempfile.mkdtemp(prefix="occl-suite-")

import harness  # noqa: E402
import torch.testing._internal.distributed.distributed_test as suite  # noqa: E402
from harness import Ranks, Summary  # noqa: E402
from torch.testing._internal.common_distributed import TEST_SKIPS  # noqa: E402

LIMIT = 120  # seconds; the machine may be busy
BACKEND = os.environ["BACKEND"]


class TestDistBackend(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
    """As PyTorch's test files make it."""


def run(name: str) -> tuple[str | None, bool]:
    """(why it failed or None, whether it was skipped)."""
    size = int(os.environ["WORLD_SIZE"])
    suite.initialize_temp_directories()
    suite.Barrier.init()
    file = tempfile.mktemp(dir=os.environ["TEMP_DIR"])
    reading, writing = multiprocessing.Pipe(duplex=False)
    ranks = Ranks(size, lambda rank: TestDistBackend._run(rank, name, file, writing))
    over = ranks.wait(LIMIT)
    suite.cleanup_temp_dir()
    skips = {skip.exit_code for skip in TEST_SKIPS.values()}
    if over and all(status in skips for status in ranks.statuses.values()):
        return None, True
    if not over:
        return f"hangs: not over within {LIMIT} s\n{ranks.outputs()}", False
    if any(ranks.statuses.values()):
        text = f"exit statuses {ranks.statuses}\n"
        while reading.poll(0):
            text += str(reading.recv()) + "\n"
        return text + ranks.outputs(), False
    return None, False


def main() -> int:
    names = sys.argv[1:] or TESTS
    if names == ["--all"]:
        names = sorted(n for n in dir(TestDistBackend) if n.startswith("test_"))
    print(f"suite: {len(names)} tests of torch {harness.torch.__version__} with {BACKEND}",
          flush=True)
    summary, skipped = Summary(f"suite {BACKEND}"), []
    for name in names:
        began = time.time()
        error, skip = run(name)
        if skip and sys.argv[1:] == ["--all"]:
            skipped.append(name)
            continue
        summary.note(name, time.time() - began, "it was skipped" if skip else error)
    if skipped:
        print(f"{len(skipped)} skipped")
    return summary.finish()


TESTS: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
