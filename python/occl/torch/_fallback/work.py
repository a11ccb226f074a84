"""Works of PyTorch: what has been called, and whether it has ended."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import Work
from torch.futures import Future

if TYPE_CHECKING:
    from .engine import Engine

_SPIN = 500e-6  # seconds; that is the whole time of a small collective
_SLICE = 1e-3
Observer = Callable[[Exception | None], None]


class OcclWork(Work):
    """Ends with the last of its parts. Any thread may wait for it."""

    def __init__(self, engine: Engine, name: str, outputs: Sequence[Tensor] = (), parts: int = 1):
        super().__init__()
        self.name = name
        self.source: int | None = None
        self._engine = engine
        self._outputs = list(outputs)
        self._parts = parts
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._observers: list[Observer] = []
        self._end: Future[None] = Future()  # with _future, once that was asked for
        self._future: Future[list[Tensor]] | None = None

    # --- Of the backend.

    def part_ended(self, error: Exception | None = None) -> None:
        """The error of the first part that has one is the work's."""
        with self._lock:
            if self._ended.is_set():
                return
            self._error = self._error or error
            self._parts -= 1
            if self._parts:
                return
            observers, self._observers = self._observers, []
            is_awaited = self._future is not None
            self._ended.set()
        for observer in observers:
            observer(self._error)
        if is_awaited:  # its hooks may wait for other works
            threading.Thread(target=self._end.set_result, args=(None,), name="occl-future",
                             daemon=True).start()

    def when_ended(self, observer: Observer) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._observers.append(observer)
                return
        observer(self._error)

    def _value(self, _: object) -> list[Tensor]:
        if self._error is not None:
            raise self._error
        return self._outputs

    # --- Of PyTorch.

    def is_completed(self) -> bool:
        if not self._ended.is_set() and self._engine.is_of_this_process():
            self._engine.progress()
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error if self._ended.is_set() else None

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Raises why it has failed. With a timeout it only stops waiting when that is over."""
        seconds = timeout.total_seconds()
        if not self._ended.is_set():
            self._engine.check_process(self.name)
        began = time.monotonic()
        while not self._ended.is_set():
            self._engine.progress()
            waited = time.monotonic() - began
            if 0 < seconds <= waited and not self._ended.is_set():
                raise dist.DistBackendError(
                    f"occl: {self.name}: not complete after wait(timeout={round(seconds * 1000)} "
                    f"ms); it goes on. {self._engine.comm.report()}")
            if waited < _SPIN:
                os.sched_yield()
            else:
                self._ended.wait(_SLICE)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[Tensor]:
        return self._outputs

    def source_rank(self) -> int:
        if self.source is None:
            raise RuntimeError(f"occl: {self.name} has no source, or none yet")
        return self.source

    _source_rank = source_rank

    def get_future(self) -> Future[list[Tensor]]:
        """Of what a callback returns: an error that one raises is an error in C++, too, as it is not
        where Future.set_exception has set it. DDP would take that for tensors."""
        with self._lock:
            is_late = self._ended.is_set()
            if self._future is not None:
                return self._future
            self._future = self._end.then(self._value)
        if is_late:
            self._end.set_result(None)
        return self._future
