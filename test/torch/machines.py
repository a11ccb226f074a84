#!/usr/bin/env python3
"""Ranks in two network namespaces that stand for machines. machines.py [name ...]

Starts itself again within tools/dev/namespaces.sh. Where the system lets nobody make namespaces it
says so, and succeeds; with OCCL_REQUIRE_NAMESPACES=1 it fails.
"""

from __future__ import annotations

import functools
import os
import random
import re
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = ROOT / "tools/dev/namespaces.sh"
ADDRESSES = {"a": "10.77.0.1", "b": "10.77.0.2"}
LIMIT = 120  # seconds; the machine may be busy

if __name__ == "__main__" and "OCCL_NAMESPACES" not in os.environ:
    status = subprocess.run([NAMESPACES, sys.executable, *sys.argv]).returncode
    if status == 77 and not os.environ.get("OCCL_REQUIRE_NAMESPACES"):
        print("==== SKIPPED: no namespaces here, so NOTHING of PyTorch was tested across machines")
        status = 0
    sys.exit(status)

os.environ["ISLANDS"] = "2"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import cases  # noqa: E402
import harness  # noqa: E402
import training  # noqa: E402
from harness import Ranks, Summary  # noqa: E402
from operations import raises  # noqa: E402

Error = dist.DistBackendError


def bytes_received(machine: str) -> int:
    text = subprocess.run([NAMESPACES, "--in", machine, "cat", "/proc/net/dev"], check=True,
                          capture_output=True, text=True).stdout
    return int(re.search(r"eth0:\s*(\d+)", text)[1])


# --- Programs that launchers start.

EXAMPLE = str(ROOT / "examples/torch/ddp.py")
# Gradients of a step, of which each machine gets the other's.
LEAST_BYTES = 10 * 8 * (64 * 256 + 256 + 256 + 1)


@functools.cache
def losses_of_one_process() -> list[str]:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True, timeout=LIMIT,
                          env={**os.environ, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
                               "MASTER_PORT": "29500"})
    return done.stdout.splitlines()


def check_training(*commands: list[str]) -> None:
    """What they print together is what one process prints, and gradients have crossed."""
    before = {machine: bytes_received(machine) for machine in ADDRESSES}
    jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for command in commands]
    outputs = [job.communicate(timeout=LIMIT) for job in jobs]
    assert not any(job.returncode for job in jobs), outputs
    printed = "".join(out for out, _ in outputs).splitlines()
    assert printed == losses_of_one_process(), printed
    assert len(printed) == 11, printed
    for machine, count in before.items():
        assert bytes_received(machine) - count > LEAST_BYTES, (machine, bytes_received(machine) - count)


def start_by_occl_run() -> None:
    occl_run = os.environ.get("OCCL_RUN", str(ROOT / "bazel-bin/tools/occl-run/occl-run"))
    check_training([occl_run, "--hosts", "a,b", "-n", "4", sys.executable, EXAMPLE])


def start_by_torchrun() -> None:
    check_training(*([str(NAMESPACES), "--in", machine, sys.executable, "-m", "torch.distributed.run",
                      "--nnodes", "2", "--node-rank", str(number), "--master-addr", ADDRESSES["a"],
                      "--nproc-per-node", "1", EXAMPLE] for number, machine in enumerate(ADDRESSES)))


# --- Functions on four ranks, two on each machine.

def case_ddp_is_that_of_one_rank(rank: int) -> None:
    reference = training.model()
    expected = training.train(reference, batch)
    net = torch.nn.parallel.DistributedDataParallel(training.model(), bucket_cap_mb=0.001)
    losses = torch.tensor(training.train(net, lambda step: batch(step).chunk(4)[rank]))
    dist.all_reduce(losses, dist.ReduceOp.AVG)
    training.close(losses, torch.tensor(expected), 1e-6)
    for got, wanted in zip(net.parameters(), reference.parameters()):
        training.close(got, wanted)


def batch(step: int) -> torch.Tensor:
    return torch.randn(16, 8, generator=torch.Generator().manual_seed(step), dtype=torch.float64)


def case_killed_rank_is_named(rank: int) -> None:
    """In the middle of training; by those of its machine and of the other."""
    net = torch.nn.parallel.DistributedDataParallel(training.model())

    def inputs(step: int) -> torch.Tensor:
        if rank == 3 and step == 50:
            os.kill(os.getpid(), 9)
        return batch(step).chunk(4)[rank]
    raises(Error, "rank 3", training.train, net, inputs, 1000)


def case_rank_that_never_comes_is_named(rank: int) -> None:
    import occl.torch
    store = dist.PrefixStore("three", dist.distributed_c10d._get_default_store())
    if rank != 2:
        raises(Error, "rank 2 has not come", occl.torch.Backend, store, rank, 4, timedelta(seconds=1))


def case_groups(rank: int) -> None:
    """On one machine, across both, and made by splitting."""
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    across = [dist.new_group([0, 3]), dist.new_group([1, 2])]
    for groups, number, peer in ((pairs, rank // 2, rank ^ 1), (across, rank in (1, 2), 3 - rank)):
        x = torch.full((1000,), float(rank))
        dist.all_reduce(x, group=groups[number])
        assert (x == rank + peer).all()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend.monitored_barrier(timedelta(seconds=LIMIT), True)
    if rank != 1 and hasattr(dist.group.WORLD, "split_group"):  # PyTorch is not older
        part = dist.group.WORLD.split_group([0, 2, 3], timedelta(seconds=LIMIT), None, "three", "")
        x = torch.ones(10)
        part.allreduce([x]).wait()
        assert (x == 3).all()


def case_cuda_tensors_are_refused(rank: int) -> None:
    """Before anything is asked of a device; a group of one machine would ask."""
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    text = raises(Error, "several machines", backend.eager_connect_single_device, torch.device("cuda:0"))
    assert "cuda:nccl" in text
    dist.barrier()  # the group goes on


def case_end_without_destroying(rank: int) -> None:
    """What a rank has sent arrives, though its program ends as programs do."""
    count = 1 << 20
    dist.barrier()  # who is gone while others still make the group fails it
    if rank == 3:
        time.sleep(0.3)  # so that rank 0 waits
        dist.send(torch.full((count,), 7.), 0)
        sys.exit()
    if rank == 0:
        x = torch.empty(count)
        dist.recv(x, 3)
        assert (x == 7).all()


STATUSES = {"killed_rank_is_named": {3: -9}}
CASES = {name[5:]: function for name, function in list(globals().items()) if name.startswith("case_")}
PROGRAMS = {name: globals()[name] for name in ("start_by_occl_run", "start_by_torchrun")}


def run(name: str) -> str | None:
    """Why it failed, or None. Ranks meet at a store of rank 0's machine, as programs do."""
    def body(rank: int) -> None:
        harness.go_to_machine(rank, 4)
        host = "fd77::1" if name == "groups" else ADDRESSES["a"]
        store = dist.TCPStore(host, 29500, 4, rank == 0, timedelta(seconds=LIMIT), wait_for_workers=False)
        dist.init_process_group("occl", store=store, rank=rank, world_size=4, timeout=timedelta(seconds=60))
        CASES[name](rank)
        store.add("done", 1)
        if rank == 0:  # whose store goes with it
            expected = 4 - len(STATUSES.get(name, {})) - (name == "end_without_destroying")
            while store.add("done", 0) < expected:
                time.sleep(0.01)
    ranks = Ranks(4, body)
    if not ranks.wait(LIMIT):
        return f"hangs: not over within {LIMIT} s\n{ranks.outputs()}"
    expected = {rank: STATUSES.get(name, {}).get(rank, 0) for rank in range(4)}
    return None if ranks.statuses == expected else f"exit statuses {ranks.statuses}\n{ranks.outputs()}"


def run_program(name: str) -> str | None:
    try:
        return PROGRAMS[name]()
    except (AssertionError, subprocess.SubprocessError) as error:
        return f"{error}\n{getattr(error, 'stderr', None) or ''}"


def main() -> int:
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    summary = Summary("machines")
    print(f"machines: torch {torch.__version__}, SEED={seed}", flush=True)
    for name in sys.argv[1:] or [*CASES, *PROGRAMS]:
        began = time.time()
        error = run(name) if name in CASES else run_program(name)
        summary.note(name, time.time() - began, error)
    if not sys.argv[1:]:
        cases.run(list(cases.CASES), seed, summary)
    return summary.finish()


if __name__ == "__main__":
    sys.exit(main())
