"""How a communicator makes partitioned requests."""

from __future__ import annotations

import ctypes
from typing import Any

from .. import _abi, _buffers, _calls, _library
from .._calls import Options
from .._config import natural
from .._core import Core
from .._cuda.streams import Place
from .._errors import InvalidArgumentError, Result
from ..plan import Plan
from .request import MOST, Partitioned


class Partitions(Core):
    """What makes partitioned requests of a communicator on one machine. Making one never waits for
    other ranks."""

    def psend(self, array: Any, partitions: int, dest: int, tag: int = 0, *,
              partitions_per_message: int = 0) -> Partitioned:
        """A send of the array, in so many partitions of as many elements each, to rank `dest`. The
        k-th one of a tag belongs to the k-th precv there, which may divide the same elements as it
        likes. With more partitions per message marks cost less, and partitions arrive later."""
        place = self._place(None, array)
        buffer = _buffers.read(array, place=place)
        count = _of_partition(buffer.elements, partitions)
        config = _config(natural(partitions_per_message, "partitions_per_message"), 0)
        return self._make("occlPsendInit", (buffer,), None, place, buffer.pointer, partitions, count,
                          buffer.code, natural(dest, "dest", self.size), natural(tag, "tag", MOST),
                          config)

    def precv(self, array: Any, partitions: int, source: int, tag: int = 0) -> Partitioned:
        """A receive of what rank `source` sends, into the array; partitions are of the array. On CUDA
        devices its memory is that of empty(), of which torch.as_tensor and cupy.asarray give views."""
        place = self._place(None, array)
        buffer = _buffers.write(array, "the array", place)
        count = _of_partition(buffer.elements, partitions)
        return self._make("occlPrecvInit", (buffer,), array, place, buffer.pointer, partitions, count,
                          buffer.code, natural(source, "source", self.size),
                          natural(tag, "tag", MOST), None)

    def pcall(self, what: Plan | str, array: Any = None, partitions: int = 1, *, out: Any = None,
              out_partitions: int | None = None, op: str = "sum", root: int = 0,
              count: int | None = None, scale: float | None = None, timeout: float | None = None,
              name: str | None = None, rounds: int = 0) -> Partitioned:
        """A collective as Communicator.call has it: 'all_reduce', or a plan. The array, all parts
        one behind the other, is in so many partitions, and `out` in out_partitions (as many if that
        is left out); ranks may divide theirs differently. The k-th one that a rank makes belongs to
        the k-th of the others; they are started in any order. rounds: in how many pieces of each
        part it is executed; 0: by size."""
        place = self._place(None, array, out)
        options = Options(op, root, count, scale, timeout, name)
        prepared = _calls.prepare(what, self.rank, self.size, array, out, options, place=place)
        outputs = partitions if out_partitions is None else out_partitions
        return self._make("occlPcollInit", (prepared,), prepared.value, place, prepared.call,
                          natural(partitions, "partitions", MOST),
                          natural(outputs, "out_partitions", MOST),
                          _config(0, natural(rounds, "rounds")))

    def _make(self, function: str, keep: tuple[Any, ...], output: Any, place: Place | None,
              *arguments: Any) -> Partitioned:
        handle = ctypes.c_void_p()
        with self._using():
            # An exception may come right behind the call: the arrays have to live all the same.
            self._starting.append(keep)
            result = getattr(_library.library(), function)(self._handle, *arguments,
                                                           ctypes.byref(handle))
            if result == Result.SUCCESS:
                assert handle.value is not None
                made = Partitioned(self, handle.value, keep, output, place)
                self._parts.add(made)
            self._starting.remove(keep)
            _library.check(result)
        return made


def _config(partitions_per_message: int, rounds: int) -> _abi.PartConfig:
    config = _abi.sized(_abi.PartConfig)
    config.partitionsPerMessage, config.rounds = partitions_per_message, rounds
    return config


def _of_partition(elements: int, partitions: Any) -> int:
    """Elements of a partition, all of which have as many."""
    number = natural(partitions, "partitions", MOST)
    if elements % max(number, 1) or (not number and elements):
        raise InvalidArgumentError(f"{elements} elements are no {number} partitions of as many each")
    return elements // max(number, 1)
