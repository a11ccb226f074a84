"""Runs functions on ranks: processes forked from one that has imported torch, with time limits.

Importing torch takes seconds, forking milliseconds; so a test is a function, and ranks are made for
each. What a rank prints is shown if the test fails.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Callable

import torch
import torch.distributed as dist

import occl.torch
import torch.distributed._functional_collectives  # noqa: F401  slow to import: once, for all ranks
import torch.distributed.checkpoint  # noqa: F401
import torch.distributed.fsdp  # noqa: F401
import torch.distributed.pipelining  # noqa: F401
import torch.distributed.tensor.parallel  # noqa: F401

torch.set_num_threads(1)
# Programs with PyTorch's own backends do without OCCL's in the process.
WITH_OCCL = os.environ.get("BACKEND") not in ("nccl", "gloo")
if WITH_OCCL:
    occl.torch.Backend  # builds and loads the extension: once, for all ranks


@dataclass
class Summary:
    """Results by name, shown as they come."""

    title: str
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def note(self, name: str, seconds: float, error: str | None) -> None:
        (self.failed if error else self.passed).append(name)
        print(f"{'FAIL' if error else 'PASS'} {self.title} {name} ({seconds:.1f} s)", flush=True)
        if error:
            print("     " + error.strip().replace("\n", "\n     "), flush=True)

    def finish(self) -> int:
        print(f"{self.title}: {len(self.passed)} passed, {len(self.failed)} failed"
              + "".join(f"\n  failed: {name}" for name in self.failed), flush=True)
        return 1 if self.failed else 0


class Ranks:
    """`size` forked processes that execute body(rank); `say` of a rank comes to the parent."""

    def __init__(self, size: int, body: Callable[[int], None]):
        self.log = [tempfile.TemporaryFile() for _ in range(size)]
        self.pids, self.pipes = [], []
        sys.stdout.flush()
        for rank in range(size):
            reading, writing = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(reading)
                self._child(rank, body, writing)
            os.close(writing)
            self.pids.append(pid)
            self.pipes.append(reading)
        self.statuses: dict[int, int] = {}
        self._partial = [b""] * size

    def _child(self, rank: int, body: Callable[[int], None], pipe: int) -> None:
        status = 1
        try:
            for stream in (1, 2):
                os.dup2(self.log[rank].fileno(), stream)
            global say
            say = lambda **message: os.write(pipe, json.dumps(message).encode() + b"\n")  # noqa
            body(rank)
            status = 0
        except SystemExit as leaving:
            status = leaving.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            if WITH_OCCL:
                occl.torch.close_all()  # which _exit() leaves out
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def messages(self, timeout: float) -> list[tuple[int, dict]]:
        """What ranks have said, as (rank, message), after at most `timeout` seconds."""
        result = []
        open_pipes = [p for p in self.pipes if p >= 0]
        if not open_pipes:
            return result
        for pipe in select.select(open_pipes, [], [], timeout)[0]:
            rank = self.pipes.index(pipe)
            data = os.read(pipe, 65536)
            if not data:
                os.close(pipe)
                self.pipes[rank] = -1
                continue
            *lines, self._partial[rank] = (self._partial[rank] + data).split(b"\n")
            result += [(rank, json.loads(line)) for line in lines]
        return result

    def wait(self, limit: float, kill: bool = True) -> bool:
        """Until all have ended; after `limit` seconds they are killed, if so said, and it is False."""
        until = time.monotonic() + limit
        while len(self.statuses) < len(self.pids):
            for rank, pid in enumerate(self.pids):
                if rank in self.statuses:
                    continue
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    self.statuses[rank] = os.waitstatus_to_exitcode(status)
            if time.monotonic() > until:
                if kill:
                    self.kill()
                return False
            time.sleep(0.005)
        return True

    def kill(self) -> None:
        for rank, pid in enumerate(self.pids):
            if rank not in self.statuses:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                self.statuses[rank] = -signal.SIGKILL

    def output(self, rank: int) -> str:
        self.log[rank].seek(0)
        return self.log[rank].read().decode(errors="replace")

    def outputs(self) -> str:
        texts: dict[str, list[int]] = {}  # ranks that say the same are shown once
        for rank in range(len(self.pids)):
            texts.setdefault(self.output(rank)[-6000:], []).append(rank)
        return "".join(f"--- rank {', '.join(map(str, ranks))}\n{text}"
                       for text, ranks in texts.items() if text.strip())


def say(**message) -> None:
    """Of a rank: tells the parent."""


def go_to_machine(rank: int, size: int) -> None:
    """With ISLANDS=2 the first half of the ranks is on one machine, the second on another: network
    namespaces within tools/dev/namespaces.sh, else host ids."""
    islands = int(os.environ.get("ISLANDS", "1"))
    if islands == 1:
        return
    number = rank * islands // size
    if not (namespaces := os.environ.get("OCCL_NAMESPACES")):
        os.environ["OCCL_HOSTID"] = f"island {number}"
        return
    holder = namespaces.split()[number].partition("=")[2]
    with open(f"/proc/{holder}/ns/net") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    os.environ["GLOO_SOCKET_IFNAME"] = "eth0"


def init(backend: str, rank: int, size: int, place: str, seconds: float = 120,
         device_id: torch.device | None = None) -> None:
    """init_process_group through a file."""
    go_to_machine(rank, size)
    dist.init_process_group(backend, init_method=f"file://{place}", rank=rank, world_size=size,
                            timeout=timedelta(seconds=seconds), device_id=device_id)


def fresh_place() -> str:
    """A file for init(), of one group of ranks; as long as the process that asks for it."""
    folder = tempfile.mkdtemp(prefix="occl-torch-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(Path(folder) / "store")
