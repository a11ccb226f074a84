"""Sends, receives, groups of them, and the collectives with counts by rank (occl_transfer.h)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_uint64
from typing import Any

from . import _buffers, _interrupt, _library
from ._buffers import Buffer
from ._config import natural
from ._core import Core
from ._errors import InvalidArgumentError
from .request import Request


class _Group(threading.local):
    """What the thread's group has: the communicators, entered, and the buffers, kept alive."""

    def __init__(self) -> None:
        self.depth = 0
        self.uses: set[Core] = set()
        self.kept: list[Any] = []


_group = _Group()


@contextmanager
def group() -> Iterator[None]:
    """Transfers inside, of any number of communicators, are begun at the end of the outermost
    group, progress together, and have ended when it returns. An exception inside means that none
    of them is begun."""
    _begin()
    try:
        yield
    except BaseException:
        _end(_library.library().occlGroupEnd, is_abandoned=True)
        raise
    _library.check(_end(_library.library().occlGroupEnd, is_abandoned=False))


def _begin() -> None:
    _library.check(_library.library().occlGroupStart())
    _group.depth += 1


def _end(end: Callable[..., int], *arguments: Any, is_abandoned: bool) -> int:
    """Ends the thread's innermost group by `end`, and returns its result. If that was the outermost
    one, its communicators may be closed and its buffers may go after this."""
    _group.depth -= 1
    if is_abandoned:
        # A call that is refused: then the end begins nothing.
        _library.library().occlSend(None, 1, 0, 0, None, None)
    if _group.depth:
        return end(*arguments)
    comms = list(_group.uses)

    def abort() -> None:
        for comm in comms:
            comm.abort()

    try:
        return _interrupt.call(abort, end, *arguments)
    finally:
        for comm in comms:
            comm._leave()
        _group.uses.clear()
        _group.kept = []


class Transfers(Core):
    """Transfers between two ranks. Those of an ordered pair are a sequence of their own: the k-th
    send belongs to the k-th receive, with the same count and type."""

    def send(self, array: Any, dest: int) -> None:
        """The array becomes what rank `dest` receives. Returns when the array is the caller's
        again: with up to 64 KiB mostly before it is received, else after."""
        buffer = _buffers.read(array)
        peer = natural(dest, "dest", self.size)
        self._transfer("occlSend", (buffer,), buffer.pointer, buffer.elements, buffer.code, peer)

    def recv(self, array: Any, source: int) -> Any:
        """Stores what rank `source` sends in the array, and returns it."""
        buffer = _buffers.write(array, "the array")
        peer = natural(source, "source", self.size)
        self._transfer("occlRecv", (buffer,), buffer.pointer, buffer.elements, buffer.code, peer)
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
        request = Request(self, 0, (), None)
        number = c_uint64()
        end, arguments = _library.library().occlGroupEndAsync, (self._handle, 0, None, None,
                                                                byref(number))
        with self._using():
            _begin()
            try:
                yield request
            except BaseException:
                _end(end, *arguments, is_abandoned=True)
                raise
            kept = _group.kept
            self._starting.append(kept)
            _library.check(_end(end, *arguments, is_abandoned=False))
            request._begin(number.value, tuple(kept))
            self._starting.remove(kept)

    def all_to_all_v(self, array: Any, send_counts: Sequence[int], out: Any,
                     recv_counts: Sequence[int]) -> Any:
        """send_counts[q] elements for each rank q, one after the other, become the recv_counts[r]
        from each rank r in `out`, which is returned."""
        source, target = _pair(array, out)
        sends, receives = self._counts(send_counts, source), self._counts(recv_counts, target)
        self._transfer("occlAllToAllv", (source, target, sends, receives), source.pointer, *sends,
                       target.pointer, *receives, source.code)
        return out

    def all_gather_v(self, array: Any, out: Any, recv_counts: Sequence[int]) -> Any:
        """The recv_counts[r] elements of each rank r, one after the other in everybody's `out`."""
        source, target = _pair(array, out)
        receives = self._counts(recv_counts, target)
        self._transfer("occlAllGatherv", (source, target, receives), source.pointer,
                       source.elements, target.pointer, *receives, source.code)
        return out

    def gather_v(self, array: Any, root: int = 0, *, out: Any = None,
                 recv_counts: Sequence[int] | None = None) -> Any:
        """The same for the root alone, which gives out and recv_counts; None elsewhere."""
        natural(root, "root", self.size)
        if self.rank != root:
            source = _buffers.read(array)
            self._transfer("occlGatherv", (source,), source.pointer, source.elements, None, None,
                           None, source.code, root)
            return None
        source, target = _pair(array, out)
        receives = self._counts(recv_counts, target)
        self._transfer("occlGatherv", (source, target, receives), source.pointer, source.elements,
                       target.pointer, *receives, source.code, root)
        return out

    def scatter_v(self, array: Any = None, root: int = 0, *, out: Any,
                  send_counts: Sequence[int] | None = None) -> Any:
        """send_counts[q] elements of the root's array for each rank q, one after the other, become
        its `out`. On other ranks array and send_counts are None."""
        natural(root, "root", self.size)
        if self.rank != root:
            target = _buffers.write(out)
            self._transfer("occlScatterv", (target,), None, None, None, target.pointer,
                           target.elements, target.code, root)
            return out
        source, target = _pair(array, out)
        sends = self._counts(send_counts, source)
        self._transfer("occlScatterv", (source, target, sends), source.pointer, *sends,
                       target.pointer, target.elements, source.code, root)
        return out

    def _transfer(self, function: str, keep: tuple[Any, ...], *arguments: Any) -> None:
        call = getattr(_library.library(), function)
        if not _group.depth:
            _library.check(self._block(call, *arguments, self._handle, None))
            return
        if self not in _group.uses:
            self._enter()
            _group.uses.add(self)
        _group.kept.append(keep)
        _library.check(call(*arguments, self._handle, None))

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


def _pair(array: Any, out: Any) -> tuple[Buffer, Buffer]:
    source, target = _buffers.read(array), _buffers.write(out)
    if source.code != target.code:
        raise InvalidArgumentError(f"out has elements of {target.dtype}, the array of "
                                   f"{source.dtype}")
    return source, target
