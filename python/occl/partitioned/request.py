"""Partitioned requests, once they are made."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .. import _abi, _interrupt, _library
from .._config import natural
from .._cuda.driver import driver
from .._errors import ClosedError, Error, InvalidArgumentError, Result

if TYPE_CHECKING:
    from typing import Self

    from .._core import Core
    from .._cuda.streams import Place

MOST = 1 << 63  # partitions are int64_t in the library


class Partitioned:
    """A persistent send, receive or collective of Communicator.psend, precv and pcall.

        with comm.psend(field, 64, dest=1) as send:
            for epoch in range(10):
                send.start()
                for p in range(64):
                    compute(field, p)
                    send.ready(p)      # by any thread, in any order
                send.wait()            # the field may be changed again

    On CUDA devices epochs are work of streams, start_on(), ready_on() and wait_on(), and kernels mark
    and ask by device_pointer() (occl.triton); the methods without `_on` are for hosts. stream: one of
    the array's framework, or its cudaStream_t; None: in which the framework of the request's array
    works when the call is made. Launch kernels once before an epoch of a collective is started.

    Close it, or use it as a context manager; those that are left end with the communicator. Its
    arrays are kept alive until then. Any thread may call ready() and arrived(), also beside wait();
    the rest is for one thread at a time.
    """

    __slots__ = ("_comm", "_handle", "_keep", "_output", "_users", "_is_active", "_place", "_streams",
                 "__weakref__")

    def __init__(self, comm: Core, handle: int, keep: tuple[Any, ...], output: Any,
                 place: Place | None):
        """For the methods of Communicator that make one."""
        self._comm = comm
        self._handle: int | None = handle
        self._keep = keep
        self._output = output
        self._users: list[int] = []  # threads that are inside of calls
        self._is_active = False
        self._place = place  # of its array, on devices
        # Streams that have its waits, and an event behind each one's last; None while captured.
        self._streams: dict[int, tuple[Any, int | None]] = {}

    def start(self) -> None:
        """Begins the next epoch. Never waits."""
        was_active = self._is_active
        self._is_active = True  # before: KeyboardInterrupt may come behind the call
        try:
            _library.check(self._call(_library.library().occlPstart))
        except Error:
            self._is_active = was_active
            raise

    def ready(self, partitions: int | Iterable[int]) -> None:
        """Marks a partition, or each of a range or another iterable, as ready. Never waits. Of what
        is ready already the first is named, and all others are marked."""
        library = _library.library()
        if isinstance(partitions, range) and partitions.step == 1 and len(partitions) > 1:
            result = self._call(library.occlPreadyRange, _number(partitions[0]),
                                _number(partitions[-1]))
        elif isinstance(partitions, Iterable):
            numbers = [_number(partition) for partition in partitions]
            result = self._call(library.occlPreadyList, len(numbers),
                                (ctypes.c_int64 * len(numbers))(*numbers))
        else:
            result = self._call(library.occlPready, _number(partitions))
        _library.check(result)

    def arrived(self, partition: int) -> bool:
        """Whether a partition has arrived in this epoch, so that it may be read; also without an
        epoch. A loop of this alone ends."""
        flag = ctypes.c_int32()
        _library.check(self._call(_library.library().occlParrived, _number(partition),
                                  ctypes.byref(flag)))
        return bool(flag.value)

    def arrives_early(self) -> bool:
        """Whether something may arrive before all partitions are marked, on all ranks that mark: a
        collective has several rounds, a send several messages (a receive knows once it is
        prepared). If not, no mark may wait for an arrival."""
        info = _abi.sized(_abi.PartInfo)
        _library.check(self._call(_library.library().occlPquery, ctypes.byref(info)))
        return bool(info.arrivesEarly)

    def prepare(self) -> None:
        """Returns when the other side has started this epoch, too. Not needed for anything, and not
        there for collectives."""
        _library.check(self._call(_library.library().occlPprepare, blocks=True))

    def test(self) -> bool:
        """Whether the epoch is over; executes what can go on now, and never blocks. Raises why it
        failed, if it did. True without an epoch."""
        result = self._call(_library.library().occlPtest)
        if result == Result.IN_PROGRESS:
            return False
        self._is_active = False
        _library.check(result)
        return True

    def wait(self) -> Any:
        """Returns the output when the epoch is over, and the arrays are the caller's again; raises
        why it failed, if it did. Control-C aborts the communicator."""
        result = self._call(_library.library().occlPwait, blocks=True)
        self._is_active = False
        _library.check(result)
        return self._output

    # --- As work of streams, on devices.

    def start_on(self, stream: Any = None) -> None:
        """Begins the next epoch as the stream's next work. Of a collective that is the host's: not
        while the stream is captured."""
        was_active = self._is_active
        self._is_active = True
        try:
            self._on("occlPstartOn", stream)
        except Error:
            self._is_active = was_active
            raise

    def ready_on(self, partitions: int | range, stream: Any = None) -> None:
        """Marks a partition, or those of a range with step 1: what the stream has done before is
        sent. Never waits."""
        if isinstance(partitions, range):
            if partitions.step != 1:
                raise InvalidArgumentError(f"the partitions are {partitions}; ready_on takes a range "
                                           "with step 1")
            if not partitions:
                return
            first, last = _number(partitions[0]), _number(partitions[-1])
        else:
            first = last = _number(partitions)
        self._on("occlPreadyOn", stream, first, last)

    def prepare_on(self, stream: Any = None) -> None:
        """Of a send with an epoch: what follows in the stream finds it begun by the receiver. Not
        needed for anything, and not there for collectives."""
        self._on("occlPprepareOn", stream)

    def wait_on(self, stream: Any = None) -> Any:
        """The end of the epoch, as the stream's next work; returns the output, which what follows in
        the stream may read."""
        handle = self._on("occlPwaitOn", stream)
        self._is_active = False
        if self._place is not None:
            self._forget_event(handle)
            self._streams[handle] = stream, driver().mark(self._place.device, handle)
        return self._output

    def device_pointer(self) -> int:
        """What kernels have of it, an address of device memory (occl.triton). Valid until close()."""
        pointer = ctypes.c_void_p()
        _library.check(self._call(_library.library().occlPdevicePointer, ctypes.byref(pointer)))
        return pointer.value or 0

    def _on(self, function: str, stream: Any, *arguments: int) -> int:
        """Makes a call in the stream, whose handle it returns; on hosts the library refuses it."""
        place = self._place and self._comm._place(stream, *self._arrays())
        handle = place.stream if place else 0
        _library.check(self._call(getattr(_library.library(), function), *arguments, handle or None))
        return handle

    def _arrays(self) -> list[Any]:
        return [buffer.array for one in self._keep
                for buffer in getattr(one, "buffers", [one])]

    @property
    def output(self) -> Any:
        """The array that is stored to; None if there is none on this rank."""
        return self._output

    @property
    def is_closed(self) -> bool:
        """Whether close() has been called, for it or for the communicator."""
        return self._handle is None or self._comm.is_closed

    def close(self) -> None:
        """Waits for the epoch, if there is one, and frees the request. Twice is nothing. All
        partitions have been marked, or this waits until they are, or for the timeout. On devices it
        waits for the streams of its waits; InvalidArgumentError if an epoch has none. Other work with
        the request has ended before, and graphs with such work are gone."""
        if self.is_closed:
            return
        try:
            if self._place is not None:
                self._wait_for_streams(self._place)
            elif self._is_active:
                self.wait()
        finally:
            self._free()

    def _wait_for_streams(self, place: Place) -> None:
        while self._streams:
            handle = next(iter(self._streams))
            # Of what has ended the stream may be gone.
            if not self._has_ended(handle):
                self._comm._synchronize(place._replace(stream=handle))
            self._forget_event(handle)

    def _has_ended(self, handle: int) -> bool:
        """Whether the last wait in the stream has; of captured ones nobody knows."""
        event = self._streams[handle][1]
        return (event is not None and self._place is not None
                and driver().has_ended(self._place.device, event))

    def _forget_event(self, handle: int) -> None:
        _, event = self._streams.pop(handle, (None, None))
        if event is not None and self._place is not None:
            driver().forget(self._place.device, event)

    def _is_in_flight(self) -> bool:
        """Whether an epoch may not have ended: its partitions may have to be marked still."""
        return self._is_active or any(
            event is not None and not self._has_ended(handle)
            for handle, (_, event) in list(self._streams.items()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an exception nobody may mark the rest: the communicator is aborted, on all ranks."""
        if kind is None:
            self.close()
            return
        if self._is_in_flight():
            self._comm.abort()
        try:
            self.close()
        except Error:
            pass  # the exception that has come first says more

    def _call(self, function: Callable[..., int], *arguments: Any, blocks: bool = False) -> int:
        """What a function of the library returns for the request, which is not freed meanwhile."""
        comm = self._comm
        with comm._using():
            self._users.append(get_ident())
            try:
                handle = self._handle
                if handle is None:
                    raise ClosedError(f"{self!r} has been closed")
                if blocks:
                    return _interrupt.call(comm.abort, function, handle, *arguments)
                return function(handle, *arguments)
            finally:
                self._users.remove(get_ident())

    def _free(self) -> None:
        handle, self._handle = self._handle, None
        # Those that have seen the handle. An exception of this thread may have come between a call
        # and its end here.
        while any(user != get_ident() for user in self._users):
            time.sleep(0.001)
        if not self._comm.is_closed:
            with self._comm._using():
                result = _library.library().occlPfree(handle)
                if result != Result.SUCCESS and self._place is not None:
                    self._handle = handle  # it lives on, as its epoch has not ended
                _library.check(result)
        self._comm._parts.discard(self)
        self._keep = ()

    def _forget(self) -> None:
        """In a child made by fork: the request is the parent's, and its threads are not there."""
        self._handle = None
        self._users.clear()
        self._is_active = False

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "started" if self._is_active else "not started"
        return f"<occl.Partitioned of {self._comm!r}: {state}>"


def _number(partition: Any) -> int:
    return natural(partition, "partition", MOST)
