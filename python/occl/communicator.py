"""Communicators: how ranks come together, and what one can be asked and told."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Unpack

from . import _abi, _library
from ._abi import Config
from ._collectives import Collectives
from ._config import Settings, config_of, natural, signed
from ._cuda.driver import driver
from ._errors import Error
from ._transfers import Transfers
from .partitioned.making import Partitions


class Communicator(Collectives, Transfers, Partitions):
    """One rank of a communicator. Made by occl.init, occl.init_all and split and shrink; close it,
    or use it as a context manager. Any thread may use it.

    Collectives return when they have ended on this rank. Calls of one communicator belong together
    in the order in which each rank makes them. Ranks that disagree get MismatchError, those that
    need a rank that is gone PeerFailedError; then the communicator has failed, and every further
    call says why.
    """

    def split(self, colour: int | None, key: int = 0,
              **settings: Unpack[Settings]) -> Communicator | None:
        """Divides the communicator: all ranks call it, and those with the same colour come together
        in a new one, ordered by key, then rank. None is no colour: then it returns None."""
        number = _abi.NO_COLOUR if colour is None else natural(colour, "colour", 1 << 31)
        handle = ctypes.c_void_p()
        config = self._config(settings)
        _library.check(self._block(_library.library().occlCommSplit, self._handle, number,
                                   signed(key, "key"), config, ctypes.byref(handle)))
        if handle.value is None:
            return None
        return Communicator(handle.value, self.device, self._timeout(settings))

    def shrink(self, exclude: Sequence[int] = (), **settings: Unpack[Settings]) -> Communicator:
        """A smaller communicator of the ranks that are left, after a failure or without one: all
        that are to be in it call this. Those in `exclude`, those that are gone, and those that do
        not call within the timeout are left out. Takes up to two timeouts, and two more for each
        rank that is lost meanwhile."""
        ranks = [natural(rank, "a rank of exclude", 1 << 32) for rank in exclude]
        numbers = (ctypes.c_uint32 * max(1, len(ranks)))(*ranks)
        handle = ctypes.c_void_p()
        config = self._config(settings)

        def make() -> int:
            with self._using():
                return int(_library.library().occlCommShrink(
                    self._handle, numbers, len(ranks), config, ctypes.byref(handle)))

        return _made(handle, make, self.device, self._timeout(settings))

    def _config(self, settings: Settings) -> Config | None:
        """Of one that is made of this one: it stays on its device, which the library wants to hear."""
        if settings and self.device is not None:
            settings = {"device": self.device, **settings}
        return config_of(settings) if settings else None

    def _timeout(self, settings: Settings) -> float | None:
        """Of one that is made of this one: without settings it has those of this one."""
        return settings.get("timeout") if settings else self._patience


def init(*, rank: int | None = None, size: int | None = None, name: str | None = None,
         **settings: Unpack[Settings]) -> Communicator:
    """This process's rank of a communicator of processes of this machine. Returns when all ranks
    are there, or raises TimeoutError, which names the missing ones.

    Without rank, size and name they come from the environment: of occl-run, torchrun, mpirun or
    srun. With them, all ranks give the same size and name, which is 1 to 64 of [A-Za-z0-9_-] and
    unique among those of the user. With `device` the rank is on that CUDA device.
    """
    config = config_of(settings)
    library = _library.library()
    handle = ctypes.c_void_p()
    device, timeout = settings.get("device"), settings.get("timeout")
    if rank is None and size is None and name is None:
        return _made(handle, lambda: library.occlCommInitFromEnv(ctypes.byref(handle), config),
                     device, timeout)
    if rank is None or size is None or name is None:
        raise TypeError("init() takes rank, size and name together, or none of them")
    if not isinstance(name, str):
        raise TypeError(f"name is a {type(name).__name__}; it is a str")
    numbers = natural(size, "size", 1 << 32), natural(rank, "rank", 1 << 32)
    return _made(handle, lambda: library.occlCommInitRank(
        ctypes.byref(handle), *numbers, name.encode(), config), device, timeout)


def init_all(size: int, **settings: Unpack[Settings]) -> list[Communicator]:
    """A communicator of `size` ranks in this process, for a thread each; the r-th is rank r's. With
    `device` rank r is on the CUDA device that is r further, going around."""
    config = config_of(settings)
    handles = (ctypes.c_void_p * max(1, natural(size, "size", 1 << 16)))()
    _library.check(_library.library().occlCommInitAll(handles, size, config))
    first = settings.get("device")
    devices = [None] * size if first is None else [
        (first + rank) % driver().device_count() for rank in range(size)]
    return [Communicator(handle, device, settings.get("timeout"))
            for handle, device in zip(handles[:size], devices) if handle is not None]


def _made(handle: ctypes.c_void_p, make: Callable[[], int], device: int | None,
          timeout: float | None) -> Communicator:
    """Makes a communicator in a thread of its own, as nothing but the timeout ends its wait for
    other ranks: so the calling thread can be interrupted. What is made after that is freed."""
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
    return Communicator(handle.value, device, timeout)
