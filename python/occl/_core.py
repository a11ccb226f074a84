"""The life of a communicator: its handle stays valid while a thread is inside of a call."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

from . import _interrupt, _library
from ._cuda import streams
from ._cuda.driver import driver
from ._cuda.streams import Place
from ._cuda.work import Work
from ._errors import ClosedError, Error, InvalidArgumentError

if TYPE_CHECKING:
    from typing import Self

    from .partitioned import Partitioned
    from .request import Request

_open: weakref.WeakSet[Core] = weakref.WeakSet()
_LEAST_PATIENCE = 30.0  # seconds, as occlCommDestroy has them


class Core:
    """What collectives, transfers and insight are built on."""

    def __init__(self, handle: int, device: int | None = None, timeout: float | None = None):
        """For occl.init and its like, which own the handle until here. `timeout`: its setting."""
        # Seconds, of close().
        self._patience = max(_LEAST_PATIENCE, timeout if timeout and timeout != inf else 0)
        self._work = None if device is None else Work(device)
        self._handle: int | None = handle
        self._pid = os.getpid()
        self._users: list[int] = []  # threads that are inside of calls
        self._is_closing = False
        self._closing = threading.Lock()
        self._requests: dict[int, Request] = {}
        self._to_sweep: Iterator[int] = iter(())
        self._parts: set[Partitioned] = set()  # those that have not been closed
        self._starting: list[Any] = []  # what has to live while a call starts
        number = ctypes.c_uint32()
        library = _library.library()
        _library.check(library.occlCommRank(handle, ctypes.byref(number)))
        self.rank = number.value
        """This rank's number, from 0."""
        _library.check(library.occlCommSize(handle, ctypes.byref(number)))
        self.size = number.value
        """The number of ranks."""
        _open.add(self)

    @property
    def device(self) -> int | None:
        """The number of this rank's CUDA device; None: ranks are on CPUs."""
        return None if self._work is None else self._work.device

    # --- The end.

    def abort(self) -> None:
        """Ends everything in flight on all ranks with AbortedError. Any thread, at any time."""
        handle = self._handle
        if handle is not None and self._pid == os.getpid():
            _library.library().occlCommAbort(handle)

    def close(self) -> None:
        """Waits for what is in flight, up to 30 seconds or the timeout, whichever is more, and
        gives everything back. Before that it waits as long for other threads that are inside of
        calls, and aborts those then. Ranks that still need this one get PeerFailedError. Twice is
        nothing, and so is a communicator of the parent process."""
        self._close(is_abort=False)

    def _close(self, is_abort: bool) -> None:
        with self._closing:
            if self._is_closing or self._handle is None:
                return
            self._is_closing = True
        try:
            if is_abort:
                self.abort()
            self._wait_for_users(is_abort)
        except BaseException:
            self._is_closing = False
            raise
        # An exception may come behind the next call: from here on the handle is nobody's.
        handle, self._handle = self._handle, None
        abort = _library.library().occlCommAbort  # of what has ended it does nothing
        try:
            result = _interrupt.call(lambda: abort(handle), _library.library().occlCommDestroy,
                                     handle)
        finally:
            self._requests.clear()
            self._parts.clear()
            self._starting.clear()
            _open.discard(self)
            if self._work is not None:
                self._work.end()
        _library.check(result)

    def _wait_for_users(self, is_aborted: bool) -> None:
        """Until no other thread is inside of a call. An exception of this thread may have come
        between a call and its end here."""
        until = time.monotonic() + self._patience
        while any(user != threading.get_ident() for user in self._users):
            if not is_aborted and time.monotonic() > until:
                self.abort()
                is_aborted = True
            time.sleep(0.001)

    @property
    def is_closed(self) -> bool:
        """Whether close() has been called, on this rank."""
        return self._handle is None or self._is_closing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an exception nothing in flight is waited for: it is aborted, on all ranks."""
        self._close(is_abort=kind is not None)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is None or self._pid != os.getpid():
            return
        warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
        self._close(is_abort=self._has_in_flight())

    # --- For the parts of this class, and requests.

    def _enter(self) -> None:
        """The handle stays valid until _leave(), as close() waits for that. ClosedError if it is
        not. Either this sees that the communicator closes, or close() sees this user."""
        self._users.append(threading.get_ident())
        if self._is_closing or self._handle is None:
            self._leave()
            raise ClosedError(f"{self!r} has been closed")

    def _leave(self) -> None:
        self._users.remove(threading.get_ident())

    def _using(self) -> _Use:
        """A context between _enter() and _leave()."""
        return _Use(self)

    def _block(self, function: Callable[..., int], *arguments: Any) -> int:
        """What a function of the library returns that may block; Control-C aborts."""
        self._enter()
        try:
            return _interrupt.call(self.abort, function, *arguments)
        finally:
            self._leave()

    def _place(self, stream: Any, *arrays: Any) -> Place | None:
        """Where a call with these arrays is; None on hosts. Without a stream it is in the one in
        which the first array's framework works now, or in one of the communicator's own if that
        learns of no stream, as JAX; else in the legacy default stream."""
        work = self._work
        if work is None:
            if stream is not None:
                raise InvalidArgumentError("stream is for communicators on CUDA devices; this one's "
                                           "ranks are on CPUs, where calls return when they have "
                                           "ended")
            return None
        if stream is not None:
            return Place(work.device, streams.handle_of(stream))
        for array in arrays:
            current = streams.current_of(array)
            if current is not None:
                return Place(work.device, streams.usable(current))
            if streams.learns_of_none(array):
                return Place(work.device, work.own_stream())
        return Place(work.device, 0)

    def _own_place(self) -> Place | None:
        """In a stream of the communicator's own, for calls that the host waits for."""
        work = self._work
        return None if work is None else Place(work.device, work.own_stream())

    def _synchronize(self, place: Place) -> None:
        """Waits for the stream; Control-C aborts. SystemError of CUDA's."""
        self._enter()
        try:
            driver().check("cuStreamSynchronize", _interrupt.call(
                self.abort, driver().synchronize, place.device, place.stream))
        finally:
            self._leave()

    def _sweep(self) -> None:
        """Requests that the program has dropped end some time; then their arrays may go. A few are
        asked each time, going around."""
        if len(self._requests) <= 16:
            return
        numbers = list(islice(self._to_sweep, 4))
        if len(numbers) < 4:
            self._to_sweep = iter(list(self._requests))
        for number in numbers:
            request = self._requests.get(number)
            if request is not None:
                request.test()

    def _has_in_flight(self) -> bool:
        return bool(self._requests) or any(part._is_in_flight() for part in list(self._parts))

    def _forget(self, number: int) -> None:
        self._requests.pop(number, None)

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed else ""
        return f"<occl.Communicator rank {self.rank} of {self.size}{state}>"


class _Use:
    """One thread is inside of a call with the communicator, which is not freed meanwhile."""

    __slots__ = ("comm",)

    def __init__(self, comm: Core):
        self.comm = comm

    def __enter__(self) -> None:
        self.comm._enter()

    def __exit__(self, *_: object) -> None:
        self.comm._leave()


def _at_exit() -> None:
    """Frees what the program has left open, and waits for nothing: what is in flight is aborted,
    and where a thread is inside of a call that does not end by that, the system frees it."""
    for comm in list(_open):
        is_busy = comm._has_in_flight() or bool(comm._users)
        if is_busy:
            comm.abort()
        if not comm._users:
            try:
                comm._close(is_abort=is_busy)
            except Error:
                pass  # nobody is there to be told


def _in_child() -> None:
    """After fork: threads that were inside of calls are not there, and locks may be held."""
    for comm in list(_open):
        comm._closing = threading.Lock()
        comm._users.clear()
        comm._requests.clear()
        for part in list(comm._parts):
            part._forget()
        comm._parts.clear()
        if comm._work is not None:
            comm._work.forget()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
