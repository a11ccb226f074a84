"""Communicators: how ranks come together, and what one can be asked and told."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Unpack

from . import _abi, _interrupt, _library
from ._collectives import Collectives
from ._config import Settings, config_of, natural
from ._errors import ClosedError, Error
from ._insight import Insight
from ._transfers import Transfers
from .request import Request

_open: weakref.WeakSet[Communicator] = weakref.WeakSet()


class Communicator(Collectives, Transfers, Insight):
    """One rank of a communicator. Made by occl.init, occl.init_all and split and shrink; close it,
    or use it as a context manager. Any thread may use it.

    Collectives return when they have ended on this rank. Calls of one communicator belong together
    in the order in which each rank makes them. Ranks that disagree get MismatchError, those that
    need a rank that is gone PeerFailedError; then the communicator has failed, and every further
    call says why.
    """

    def __init__(self, handle: int):
        """For occl.init and its like, which own the handle until here."""
        self._handle: int | None = handle
        self._pid = os.getpid()
        self._users: list[int] = []  # threads that are inside of calls
        self._is_closing = False
        self._changed = threading.Condition(threading.Lock())
        self._requests: dict[int, Request] = {}
        number = ctypes.c_uint32()
        library = _library.library()
        _library.check(library.occlCommRank(handle, ctypes.byref(number)))
        self.rank = number.value
        """This rank's number, from 0."""
        _library.check(library.occlCommSize(handle, ctypes.byref(number)))
        self.size = number.value
        """The number of ranks."""
        _open.add(self)

    # --- Groups of ranks.

    def split(self, colour: int | None, key: int = 0,
              **settings: Unpack[Settings]) -> Communicator | None:
        """Divides the communicator: all ranks call it, and those with the same colour come together
        in a new one, ordered by key, then rank. None is no colour: then it returns None."""
        number = _abi.NO_COLOUR if colour is None else natural(colour, "colour", 1 << 31)
        handle = ctypes.c_void_p()
        config = config_of(settings) if settings else None
        with self._using(), _interrupt.ended_by(self.abort):
            _library.check(_library.library().occlCommSplit(
                self._handle, number, key, config, ctypes.byref(handle)))
        return None if handle.value is None else Communicator(handle.value)

    def shrink(self, exclude: Sequence[int] = (), **settings: Unpack[Settings]) -> Communicator:
        """A smaller communicator of the ranks that are left, after a failure or without one: all
        that are to be in it call this. Those in `exclude`, those that are gone, and those that do
        not call within the timeout are left out."""
        ranks = [natural(rank, "a rank of exclude", 1 << 32) for rank in exclude]
        numbers = (ctypes.c_uint32 * max(1, len(ranks)))(*ranks)
        handle = ctypes.c_void_p()
        config = config_of(settings) if settings else None
        with self._using(), _interrupt.ended_by(self.abort):
            _library.check(_library.library().occlCommShrink(
                self._handle, numbers, len(ranks), config, ctypes.byref(handle)))
        assert handle.value is not None
        return Communicator(handle.value)

    # --- The end.

    def abort(self) -> None:
        """Ends everything in flight on all ranks with AbortedError. Any thread, at any time."""
        handle = self._handle
        if handle is not None and self._pid == os.getpid():
            _library.library().occlCommAbort(handle)

    def close(self) -> None:
        """Waits for what is in flight, up to 30 seconds or the timeout, whichever is more, and
        gives everything back. Ranks that still need this one get PeerFailedError. Twice is
        nothing, and so is a communicator of the parent process."""
        self._close(is_abort=False)

    def _close(self, is_abort: bool) -> None:
        with self._changed:
            if self._is_closing or self._handle is None:
                return
            self._is_closing = True
        if is_abort:
            self.abort()
        try:
            with self._changed:
                # An exception of this thread may have come between a call and its end here.
                while any(user != threading.get_ident() for user in self._users):
                    self._changed.wait(0.1)
            with _interrupt.ended_by(self.abort):
                result = _library.library().occlCommDestroy(self._handle)
        except BaseException:
            self._is_closing = False
            raise
        # Buffers of requests are nobody's but the caller's from here on.
        self._handle = None
        self._requests.clear()
        _open.discard(self)
        _library.check(result)

    @property
    def is_closed(self) -> bool:
        return self._handle is None or self._is_closing

    def __enter__(self) -> Communicator:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an exception nothing in flight is waited for: it is aborted, on all ranks."""
        self._close(is_abort=kind is not None)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is None or self._pid != os.getpid():
            return
        warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
        self._close(is_abort=bool(self._requests))

    # --- For the parts of this class, and requests.

    def _using(self) -> _Use:
        """A context in which the handle stays valid. ClosedError if it is not."""
        return _Use(self)

    def _forget(self, number: int) -> None:
        self._requests.pop(number, None)

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed else ""
        return f"<occl.Communicator rank {self.rank} of {self.size}{state}>"


class _Use:
    """One thread is inside of a call with the communicator, which is not freed meanwhile."""

    __slots__ = ("comm",)

    def __init__(self, comm: Communicator):
        self.comm = comm

    def __enter__(self) -> None:
        comm = self.comm
        with comm._changed:
            if comm._handle is None or comm._is_closing:
                raise ClosedError(f"{comm!r} has been closed")
            comm._users.append(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        comm = self.comm
        with comm._changed:
            comm._users.remove(threading.get_ident())
            if comm._is_closing:
                comm._changed.notify_all()


def init(*, rank: int | None = None, size: int | None = None, name: str | None = None,
         **settings: Unpack[Settings]) -> Communicator:
    """This process's rank of a communicator of processes of this machine. Returns when all ranks
    are there, or raises TimeoutError, which names the missing ones.

    Without rank, size and name they come from the environment: of occl-run, torchrun, mpirun or
    srun. With them, all ranks give the same size and name, which is 1 to 64 of [A-Za-z0-9_-] and
    unique among those of the user.
    """
    config = config_of(settings)
    library = _library.library()
    handle = ctypes.c_void_p()
    if rank is None and size is None and name is None:
        return _made(handle, lambda: library.occlCommInitFromEnv(ctypes.byref(handle), config))
    if rank is None or size is None or name is None:
        raise TypeError("init() takes rank, size and name together, or none of them")
    if not isinstance(name, str):
        raise TypeError(f"name is a {type(name).__name__}; it is a str")
    numbers = natural(size, "size", 1 << 32), natural(rank, "rank", 1 << 32)
    return _made(handle, lambda: library.occlCommInitRank(
        ctypes.byref(handle), *numbers, name.encode(), config))


def init_all(size: int, **settings: Unpack[Settings]) -> list[Communicator]:
    """A communicator of `size` ranks in this process, for a thread each; the r-th is rank r's."""
    config = config_of(settings)
    handles = (ctypes.c_void_p * max(1, natural(size, "size", 1 << 16)))()
    _library.check(_library.library().occlCommInitAll(handles, size, config))
    return [Communicator(handle) for handle in handles[:size] if handle is not None]


def _made(handle: ctypes.c_void_p, make: Callable[[], int]) -> Communicator:
    """Makes a communicator in a thread of its own, as nothing but the timeout ends the wait for
    other ranks: the calling thread can be interrupted. What is made after that is freed."""
    outcome: list[Error | None] = []
    lock = threading.Lock()
    is_given_up = False

    def body() -> None:
        try:
            _library.check(make())
            failure = None
        except Error as error:
            failure = error
        with lock:
            outcome.append(failure)
            if is_given_up and failure is None:
                _library.library().occlCommDestroy(handle)

    thread = threading.Thread(target=body, name="occl-init", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        with lock:
            is_given_up = True
            if outcome and outcome[0] is None:
                _library.library().occlCommDestroy(handle)
        raise
    if outcome[0] is not None:
        raise outcome[0]
    assert handle.value is not None
    return Communicator(handle.value)


def _at_exit() -> None:
    """Frees what the program has left open: waiting for nothing if something is in flight."""
    for comm in list(_open):
        try:
            comm._close(is_abort=bool(comm._requests or comm._users))
        except Error:
            pass  # nobody is there to be told


def _in_child() -> None:
    """After fork: threads that were inside of calls are not there, and locks may be held."""
    for comm in list(_open):
        comm._changed = threading.Condition(threading.Lock())
        comm._users.clear()
        comm._requests.clear()


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_child)
