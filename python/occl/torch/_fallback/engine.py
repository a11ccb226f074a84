"""Calls of a communicator, which are started in order, and what is done when they have ended."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

import occl

from ... import _library
from .work import Observer

_LONGEST = 4294966.0  # seconds
_SHORT, _LONG = 50e-6, 1e-3  # seconds between two looks of the helper


def seconds_of(timeout: timedelta) -> float:
    """As OCCL takes them: what it does not count, and 0 and less, are its longest."""
    seconds = timeout.total_seconds()
    return seconds if 0 < seconds < _LONGEST else _LONGEST


def error_of(name: str, error: Exception) -> Exception:
    """As PyTorch's programs expect it; "timeout" is the word that they look for."""
    kind = "timeout of the group: " if isinstance(error, occl.TimeoutError) else ""
    if isinstance(error, occl.Error) and error.result is not None:
        kind += _library.library().occlGetErrorString(error.result).decode() + ": "
    return dist.DistBackendError(f"occl: {name}: {kind}{error}")


class Engine:
    """Of one communicator. Waiting threads and the helper see that a call has ended. All is done,
    and observers are called, under `lock`. Any thread."""

    def __init__(self, comm: occl.Communicator):
        self.comm = comm
        self.lock = threading.RLock()
        self.closed = ""  # why nothing can be called any more
        self._pid = os.getpid()
        self._waiting: deque[tuple[str, Callable[[], occl.Request], Observer]] = deque()
        self._running: list[tuple[str, occl.Request, Observer]] = []
        self._is_starting = False

    def is_of_this_process(self) -> bool:
        return self._pid == os.getpid()

    def check_process(self, name: str) -> None:
        if not self.is_of_this_process():
            raise dist.DistBackendError(
                f"occl: {name}: this process was made by fork() after the process group, which belongs "
                "to its parent; make a process group here, or start workers by 'spawn'")

    def check_usable(self, name: str) -> None:
        """Raises why a call would be in vain."""
        self.check_process(name)
        why = self.closed or (self.comm.failure() or "")
        if why:
            raise dist.DistBackendError(f"occl: {name}: {why}")

    def add(self, name: str, start: Callable[[], occl.Request], ended: Observer) -> None:
        """start() is called when those before it have been, and again as long as there is no room;
        ended(error) once, when its request is over or could not be made."""
        with self.lock:
            self._waiting.append((name, start, ended))
            self._start()
        helper.watch(self)

    def progress(self) -> bool:
        """Goes on with what can go on; whether something is left."""
        with self.lock:
            over, left = [], []
            for call in self._running:
                (over if self._is_over(call[1]) else left).append(call)
            self._running = left
            for name, request, ended in over:
                ended(self._failure(name, request))
            self._start()
            self._look()
            return self.has_running()

    def has_running(self) -> bool:
        """Without the lock: what adds a call tells the helper afterwards."""
        return bool(self._running or self._waiting)

    def _look(self) -> None:
        """For those that have deadlines of their own."""

    def _start(self) -> None:
        """Also of the calls that an observer adds here."""
        if self._is_starting:
            return
        self._is_starting = True
        try:
            while self._waiting and self._has_begun(*self._waiting[0]):
                pass
        finally:
            self._is_starting = False

    def _has_begun(self, name: str, start: Callable[[], occl.Request], ended: Observer) -> bool:
        """The first of those that wait: whether it does no more."""
        try:
            if self.closed:
                raise dist.DistBackendError(f"occl: {name}: {self.closed}")
            request = start()
        except occl.AgainError:
            return False
        except Exception as error:
            self._waiting.popleft()
            ended(error if isinstance(error, dist.DistBackendError) else error_of(name, error))
            return True
        self._waiting.popleft()
        self._running.append((name, request, ended))
        return True

    @staticmethod
    def _is_over(request: occl.Request) -> bool:
        try:
            return request.test()
        except occl.ClosedError:
            return True

    def _failure(self, name: str, request: occl.Request) -> Exception | None:
        try:
            request.wait()
        except Exception as error:
            return error_of(name, Exception(self.closed) if self.closed else error)
        return None


class _Helper:
    """A thread that looks after engines with something in flight: futures, deadlines, and calls that
    nobody waits for. One for the process, begun when it is needed; a child makes its own."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._changed = threading.Condition()
        self._engines: weakref.WeakSet[Engine] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._is_new = False

    def watch(self, engine: Engine) -> None:
        with self._changed:
            self._engines.add(engine)
            self._is_new = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="occl-torch", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        pause = _SHORT
        while True:
            with self._changed:
                while not self._engines:
                    self._changed.wait()
                engines = list(self._engines)
                pause = _SHORT if self._is_new else min(2 * pause, _LONG)
                self._is_new = False
            for engine in engines:
                if not engine.progress():
                    self._leave(engine)
            del engines
            time.sleep(pause)

    def _leave(self, engine: Engine) -> None:
        """Unless something has been added meanwhile."""
        with self._changed:
            if not engine.has_running():
                self._engines.discard(engine)


helper = _Helper()
