"""What the tests share: ranks as threads, ranks as processes, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import occl

PATIENCE = 120  # seconds; machines that run tests are slow


def hear_interrupts() -> None:
    """In a new process: what a shell starts in the background ignores SIGINT, and so would ranks."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Job:
    """Ranks that are threads of this process."""

    def __init__(self, size: int, **settings: Any):
        self.size = size
        self.comms = occl.init_all(size, **settings)

    def outcomes(self, body: Callable[[occl.Communicator], Any]) -> list[Any]:
        """Of each rank what body returns, or the exception that it raises."""
        outcomes: list[Any] = [None] * self.size

        def rank(number: int) -> None:
            try:
                outcomes[number] = body(self.comms[number])
            except BaseException as error:
                outcomes[number] = error

        threads = [threading.Thread(target=rank, args=(r,), daemon=True) for r in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), self.comms[0].report()
        return outcomes

    def __call__(self, body: Callable[[occl.Communicator], Any]) -> list[Any]:
        """The same; the first exception is raised."""
        outcomes = self.outcomes(body)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return outcomes

    def close(self) -> None:
        for comm in self.comms:
            comm.close()


@pytest.fixture
def job(nothing_left: None) -> Iterator[Callable[..., Job]]:
    jobs: list[Job] = []

    def make(size: int, **settings: Any) -> Job:
        jobs.append(Job(size, **settings))
        return jobs[-1]

    yield make
    for made in jobs:
        made.close()


class Ranks:
    """Ranks that are processes, which run a program with `comm` and `np` at hand."""

    HEAD = """
        import os, signal, sys, threading, time
        import numpy as np
        import occl
        comm = occl.init(rank=int(sys.argv[1]), size=int(sys.argv[2]), name=sys.argv[3])
        print("ready", flush=True)
        """

    def __init__(self, size: int, body: str, head: str = HEAD):
        name = f"pytest-{uuid.uuid4().hex}"
        program = textwrap.dedent(head) + textwrap.dedent(body)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(Path(occl.__file__).parent.parent),
                                           os.environ.get("PYTHONPATH", "")])}
        self.processes = [
            subprocess.Popen([sys.executable, "-c", program, str(rank), str(size), name],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment, preexec_fn=hear_interrupts)
            for rank in range(size)]

    def wait_until_ready(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line == "ready\n", line + process.communicate(timeout=PATIENCE)[1]

    def end(self) -> list[tuple[int, str, str]]:
        """Exit status, output and errors of each."""
        results = []
        for process in self.processes:
            out, err = process.communicate(timeout=PATIENCE)
            results.append((process.returncode, out, err))
        return results

    def kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()


@pytest.fixture
def ranks(nothing_left: None) -> Iterator[Callable[..., Ranks]]:
    started: list[Ranks] = []

    def start(size: int, body: str, **more: Any) -> Ranks:
        started.append(Ranks(size, body, **more))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test leaves a temporary file, a descriptor, or a thread, once the first has loaded the
    library and made what stays."""
    occl.run(occl.compile(STAR), count=1)
    with occl.init_all(1)[0] as comm:
        comm.barrier()
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    before = len(os.listdir("/proc/self/fd")), threads()
    yield
    assert not list(folder.iterdir())
    deadline = time.monotonic() + PATIENCE
    while len(os.listdir("/proc/self/fd")) > before[0] or threads() > before[1]:
        assert time.monotonic() < deadline, "descriptors or threads are left"
        time.sleep(0.01)


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


STAR = """
algorithm star(ranks: int = 4) implements allreduce(ranks, chunks = 1) {
  let sum = reduce(r in 0..ranks: input[r][0]).into(output[0][0]);
  for r in 1..ranks {
    sum.copy(output[r][0]);
  }
}
"""
