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


# 40 that gloo passes on CPUs, of every operation.
TESTS = ["test_" + name for name in """
    DistributedDataParallelCPU DistributedDataParallel_requires_grad all_gather
    all_gather_complex all_gather_coalesced_simple all_gather_coalesced_with_empty
    all_gather_object_subgroup all_reduce_sum all_reduce_product all_reduce_min
    all_reduce_max all_reduce_sum_async all_reduce_sum_complex
    all_reduce_complex_unsupported_ops all_reduce_full_group_sum all_reduce_coalesced_sum
    all_reduce_coalesced_full_group_max all_to_all_single_equal_split
    all_to_all_single_unequal_split all_to_all_single_unequal_split_complex
    all_to_all_single_unequal_split_full_group barrier_full_group batch_isend_irecv_gloo
    batch_isend_irecv_gloo_tags broadcast broadcast_full_group destroy_group gather
    gather_object get_future grads_same_across_ranks_with_no_sync irecv isend_torch_profiler
    reduce_sum_twice reduce_full_group_max scatter scatter_object_list send_recv
    send_recv_any_source send_recv_with_tag
""".split()]

if __name__ == "__main__":
    sys.exit(main())
