"""Sends, receives, groups of them, and the collectives with counts by rank (occl_transfer.h).

A group is remembered here and given to the library at its end, all at once: an exception, also one
of Control-C, leaves nothing half done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import byref, c_uint64
from typing import Any

from . import _buffers, _interrupt, _library
from ._buffers import Buffer
from ._cuda.streams import Place
from ._config import natural
from ._core import Core
from ._errors import InvalidArgumentError, Result
from .request import Request


class _Transfer:
    """A call that waits for its group's end; `keep` is what has to live until that has ended."""

    __slots__ = ("comm", "function", "arguments", "keep", "place")

    def __init__(self, comm: Core, function: Callable[..., int], arguments: tuple[Any, ...],
                 keep: tuple[Any, ...], place: Place | None):
        self.comm, self.function, self.arguments, self.keep = comm, function, arguments, keep
        self.place = place

    @property
    def stream(self) -> int | None:
        return None if self.place is None else self.place.stream

    def has_begun(self) -> None:
        """On devices it is in its stream: what has to happen until it has ended there."""
        if self.place is not None and self.comm._work is not None:
            buffers = [one for one in self.keep if isinstance(one, Buffer)]
            if any(buffer.capsule is not None for buffer in buffers):
                self.comm._starting.append(self)
                self.comm._synchronize(self.place)
                self.comm._starting.remove(self)
            else:
                self.comm._work.keep(self.place.stream, buffers, self)


class _Group(threading.local):
    """Of a thread: what its group has, if it is in one, and whether the library is in one: that is
    so for a moment only, unless an exception has come in it."""

    transfers: list[_Transfer] | None = None
    is_given = False


_group = _Group()


@contextmanager
def group() -> Iterator[None]:
    """Transfers inside, of any number of communicators, are begun at the end of the outermost
    group, progress together, and have ended when it returns. An exception inside means that none
    of them is begun."""
    is_outermost = _group.transfers is None
    with _collected() as transfers:
        yield
    if is_outermost and transfers:
        comms = list(dict.fromkeys(transfer.comm for transfer in transfers))

        def abort() -> None:
            for comm in comms:
                comm.abort()

        with ExitStack() as stack:
            for comm in comms:
                stack.enter_context(comm._using())
            end = _library.library().occlGroupEnd
            _library.check(_give(transfers, lambda: _interrupt.call(abort, end)))
        for transfer in transfers:
            transfer.has_begun()


@contextmanager
def _collected() -> Iterator[list[_Transfer]]:
    """What the thread's group has at the end of the block. An exception forgets what the block has
    added."""
    outer = _group.transfers
    transfers = [] if outer is None else outer
    before = len(transfers)
    _group.transfers = transfers
    try:
        yield transfers
    except BaseException:
        del transfers[before:]
        raise
    finally:
        _group.transfers = outer


def _give(transfers: list[_Transfer], end: Callable[[], int]) -> int:
    """The library's group of these transfers, ended by `end`; its result. If one is refused, none
    is begun."""
    leave_lost_group()
    _group.is_given = True
    result = _library.library().occlGroupStart()
    for transfer in transfers:
        result = result or transfer.function(*transfer.arguments, transfer.comm._handle,
                                             transfer.stream)
    result = end() or result
    _group.is_given = False
    return result


def leave_lost_group() -> bool:
    """If an exception has come while the thread was in a group of the library, that is ended and
    begins nothing. True if so."""
    if not _group.is_given:
        return False
    library = _library.library()
    library.occlSend(None, 1, 0, 0, None, None)  # is refused: so the end begins nothing
    library.occlGroupEnd()
    _group.is_given = False
    return True


class Transfers(Core):
    """Transfers between two ranks. Those of an ordered pair are a sequence of their own: the k-th
    send belongs to the k-th receive, with the same count and type."""

    def send(self, array: Any, dest: int, *, stream: Any = None) -> None:
        """The array becomes what rank `dest` receives. Returns when the array is the caller's
        again: with up to 64 KiB mostly before it is received, else after."""
        place = self._place(stream, array)
        buffer = _buffers.read(array, place=place)
        peer = natural(dest, "dest", self.size)
        self._transfer("occlSend", place, (buffer,), buffer.pointer, buffer.elements, buffer.code,
                       peer)

    def recv(self, array: Any, source: int, *, stream: Any = None) -> Any:
        """Stores what rank `source` sends in the array, and returns it."""
        place = self._place(stream, array)
        buffer = _buffers.write(array, "the array", place)
        peer = natural(source, "source", self.size)
        self._transfer("occlRecv", place, (buffer,), buffer.pointer, buffer.elements, buffer.code,
                       peer)
        return array

    @contextmanager
    def start_group(self) -> Iterator[Request]:
        """Transfers inside, all of this communicator, are begun at the end of the block, and have
        ended when the request is complete; until then their arrays must not be touched.

            with comm.start_group() as request:
                comm.send(a, right)
                comm.recv(b, left)
            ...
            request.wait()
        """
        if _group.transfers is not None:
            raise InvalidArgumentError("start_group inside of a group; those end with the outermost"
                                       " one")
        if self.device is not None:
            raise InvalidArgumentError("start_group is for communicators on CPUs; on CUDA devices "
                                       "occl.group() puts its transfers into streams, and returns")
        request = Request(self, 0, (), None)
        with _collected() as transfers:
            yield request
        number = c_uint64()
        end = _library.library().occlGroupEndAsync
        with self._using():
            self._sweep()
            # An exception may come right behind the call: the arrays have to live all the same.
            self._starting.append(transfers)
            result = _give(transfers, lambda: int(end(self._handle, 0, None, None, byref(number))))
            if result == Result.SUCCESS:
                request._begin(number.value, tuple(transfer.keep for transfer in transfers))
            self._starting.remove(transfers)
            _library.check(result)

    def all_to_all_v(self, array: Any, send_counts: Sequence[int], out: Any,
                     recv_counts: Sequence[int], *, stream: Any = None) -> Any:
        """send_counts[q] elements for each rank q, one after the other, become the recv_counts[r]
        from each rank r in `out`, which is returned."""
        place = self._place(stream, array, out)
        source, target = _pair(array, out, place)
        sends, receives = self._counts(send_counts, source), self._counts(recv_counts, target)
        self._transfer("occlAllToAllv", place, (source, target, sends, receives), source.pointer, *sends,
                       target.pointer, *receives, source.code)
        return out

    def all_gather_v(self, array: Any, out: Any, recv_counts: Sequence[int], *,
                     stream: Any = None) -> Any:
        """The recv_counts[r] elements of each rank r, one after the other in everybody's `out`."""
        place = self._place(stream, array, out)
        source, target = _pair(array, out, place)
        receives = self._counts(recv_counts, target)
        self._transfer("occlAllGatherv", place, (source, target, receives), source.pointer,
                       source.elements, target.pointer, *receives, source.code)
        return out

    def gather_v(self, array: Any, root: int = 0, *, out: Any = None,
                 recv_counts: Sequence[int] | None = None, stream: Any = None) -> Any:
        """The same for the root alone, which gives out and recv_counts; None elsewhere."""
        root = natural(root, "root", self.size)
        place = self._place(stream, array, out)
        if self.rank != root:
            source = _buffers.read(array, place=place)
            self._transfer("occlGatherv", place, (source,), source.pointer, source.elements, None, None,
                           None, source.code, root)
            return None
        source, target = _pair(array, out, place)
        receives = self._counts(recv_counts, target)
        self._transfer("occlGatherv", place, (source, target, receives), source.pointer,
                       source.elements, target.pointer, *receives, source.code, root)
        return out

    def scatter_v(self, array: Any = None, root: int = 0, *, out: Any,
                  send_counts: Sequence[int] | None = None, stream: Any = None) -> Any:
        """send_counts[q] elements of the root's array for each rank q, one after the other, become
        its `out`. On other ranks array and send_counts are None."""
        root = natural(root, "root", self.size)
        place = self._place(stream, array, out)
        if self.rank != root:
            target = _buffers.write(out, place=place)
            self._transfer("occlScatterv", place, (target,), None, None, None, target.pointer,
                           target.elements, target.code, root)
            return out
        source, target = _pair(array, out, place)
        sends = self._counts(send_counts, source)
        self._transfer("occlScatterv", place, (source, target, sends), source.pointer, *sends,
                       target.pointer, target.elements, source.code, root)
        return out

    def _transfer(self, function: str, place: Place | None, keep: tuple[Any, ...],
                  *arguments: Any) -> None:
        call = getattr(_library.library(), function)
        transfer = _Transfer(self, call, arguments, keep, place)
        if _group.transfers is not None:
            with self._using():
                _group.transfers.append(transfer)
            return
        leave_lost_group()
        _library.check(self._block(call, *arguments, self._handle, transfer.stream))
        transfer.has_begun()

    def _counts(self, counts: Sequence[int] | None, buffer: Buffer) -> tuple[Any, Any]:
        """Arrays of counts and of displacements, of parts one after the other."""
        if counts is None or len(counts) != self.size:
            raise InvalidArgumentError(f"there are {0 if counts is None else len(counts)} counts; "
                                       f"it takes one for each of the {self.size} ranks")
        numbers = [natural(count, "a count") for count in counts]
        if sum(numbers) != buffer.elements:
            raise InvalidArgumentError(f"the counts are {sum(numbers)} elements together, and the "
                                       f"array has {buffer.elements}")
        displacements, at = [], 0
        for number in numbers:
            displacements.append(at)
            at += number
        array = c_uint64 * self.size
        return array(*numbers), array(*displacements)


def _pair(array: Any, out: Any, place: Place | None) -> tuple[Buffer, Buffer]:
    source, target = _buffers.read(array, place=place), _buffers.write(out, place=place)
    if source.code != target.code:
        raise InvalidArgumentError(f"out has elements of {target.dtype}, the array of "
                                   f"{source.dtype}")
    return source, target
