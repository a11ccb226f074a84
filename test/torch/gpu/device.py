"""For programs whose ranks use CUDA tensors, one GPU or several: the device, and failures of groups.
BACKEND: PyTorch's name of theirs (occl); with nccl, the library is NCCL's, or OCCL's libnccl.so.2.

Where there is no GPU, and OCCL_TEST_DEVICE=cpu, the same programs use CPUs: so mistakes of their own
are found without one.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import dist  # noqa: E402

ON_CPU = os.environ.get("OCCL_TEST_DEVICE") == "cpu"
BACKEND = os.environ.get("BACKEND", "occl")
TOO_FEW_GPUS = 77  # the status of a rank


def enter(rank: int, size: int, place: str, seconds: float, bound: bool = False) -> torch.device:
    """Of a rank: its device, which tensors are made on if nothing is said, and its process group.
    `bound`: the group is connected on the device at once, else with the first CUDA tensor."""
    torch.set_num_threads(1)
    device = torch.device("cpu" if ON_CPU else f"cuda:{rank % torch.cuda.device_count()}")
    if not ON_CPU:
        if BACKEND == "nccl" and not os.environ.get("OCCL_NCCL_REPORT") and torch.cuda.device_count() < size:
            sys.exit(TOO_FEW_GPUS)  # NCCL refuses ranks that share one
        torch.cuda.set_device(device)
    harness.init(BACKEND, rank, size, place, seconds, device_id=device if bound and not ON_CPU else None)
    torch.set_default_device(device)
    _in_threads_too(device)
    return device


def _in_threads_too(device: torch.device) -> None:
    """PyTorch's default device is of one thread."""
    run = threading.Thread.run

    def on_device(self) -> None:
        torch.set_default_device(device)
        run(self)
    threading.Thread.run = on_device


def backends(device: torch.device) -> list:
    """Those of all process groups of this rank."""
    return [group._get_backend(device) for group in list(dist.distributed_c10d._world.pg_map)
            if "occl" in str(dist.get_backend(group))]


def failure(device: torch.device, limit: float) -> str:
    """Why a process group of this rank has failed, after at most `limit` seconds; "" if none has."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        for backend in backends(device):
            if text := backend.failure():
                return text
        time.sleep(0.05)
    return ""


def must_fail(device: torch.device, body, wanted: str, limit: float) -> str:
    """body() ends, and this rank is told why, by an exception or by the state of a group. Returns
    the text."""
    try:
        body()
        text = failure(device, limit)  # streams may wait for ever: the host does not for them
    except dist.DistBackendError as error:
        text = str(error)
    if not re.search(wanted, text, re.IGNORECASE | re.DOTALL):
        raise AssertionError(f"no '{wanted}' in the error: '{text}'")
    return text


def is_ended_by_the_library(body, limit: float) -> None:
    """Of PyTorch's own backends: their watchdog ends a process whose communicator has failed, or
    whose collective is late, at any time after body() has called it."""
    body()
    time.sleep(limit)


def said_by_occl(output: str) -> str:
    """Of what a rank wrote: OCCL's texts, without the ranks that PyTorch puts in front of lines."""
    lines = [re.sub(r"\[[^\]]*\]", "", line) for line in output.splitlines()]
    return "\n".join(line for line in lines
                     if re.search("OCCL|waits for|gave up|calls something else|disagree|is gone|destroyed its", line))
