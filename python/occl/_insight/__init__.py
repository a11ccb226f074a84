"""What a communicator can be asked about (occl_insight.h, docs/insight.md)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _abi, _library
from .._core import Core
from . import metrics


@dataclass(frozen=True)
class Stats:
    """Counters of a rank since its start: occlStats_t."""

    submitted: int
    completed: int
    failed: int
    preemptions: int
    context_loads: int
    context_saves: int
    quits: int
    restarts: int
    bytes_sent: int
    bytes_received: int
    max_queue_length: int
    mean_queue_length: float


@dataclass(frozen=True)
class CollectiveStats:
    """Counters of a sequence of collectives on one rank: occlCollectiveStats_t, and of all its
    thread blocks. Times are seconds, sums over what has completed."""

    submitted: int
    completed: int
    failed: int
    start_seconds: float
    announce_seconds: float
    finish_seconds: float
    longest_finish_seconds: float
    running_seconds: float
    wait_seconds: dict[str, float]
    """By what was waited for: announce, data, credit, dependency, signal, begin."""
    preemptions: int
    slices: int
    bytes_sent: int
    bytes_received: int
    thread_blocks: int


class Insight(Core):
    """Counters, who waits for whom, and traces."""

    def report(self) -> str:
        """Who waits for whom, now, down to the source line. Asks the other ranks, and gives those
        that do not answer up to 50 ms, those of other machines up to 200 ms."""
        library = _library.library()
        return self._text(lambda *room: library.occlCommReport(self._handle, *room))

    def stats(self) -> Stats:
        """This rank's counters since its start."""
        found = _abi.sized(_abi.Stats)
        with self._using():
            _library.check(_library.library().occlCommGetStats(self._handle, found))
        return Stats(*(getattr(found, name) for name, *_ in found._fields_[1:]))

    def collective_stats(self, id: int | None = None) -> CollectiveStats:
        """The same of the sequence of an id, or of the calls that have none. InvalidArgumentError
        if nothing of it was ever called, or not for so long that it was forgotten."""
        number = _abi.CALLS if id is None else id
        whole, blocks = _abi.sized(_abi.CollectiveStats), _abi.sized(_abi.BlockStats)
        library = _library.library()
        with self._using():
            _library.check(library.occlCollectiveGetStats(self._handle, number, whole))
            _library.check(library.occlCollectiveGetBlockStats(
                self._handle, number, _abi.ALL_BLOCKS, blocks))
        waits = {why: blocks.waitNs[i] / 1e9 for i, why in enumerate(_abi.WAIT_REASONS)}
        return CollectiveStats(
            whole.submitted, whole.completed, whole.failed, whole.startNs / 1e9,
            whole.announceNs / 1e9, whole.finishNs / 1e9, whole.longestFinishNs / 1e9,
            blocks.runningNs / 1e9, waits, blocks.preemptions, blocks.slices, blocks.bytesSent,
            blocks.bytesReceived, whole.numBlocks)

    def metrics(self, **labels: Any) -> str:
        """Counters in Prometheus' text format, for an HTTP handler or a file of
        node_exporter's: names begin with `occl_`, and labels are `rank`, `size`, these, and of a
        sequence its `id`, which is 'calls' for those that have none."""
        library, wanted = _library.library(), metrics.label_list(labels).encode()
        return self._text(lambda *room: library.occlCommGetMetrics(self._handle, wanted, *room))

    def _text(self, call: Callable[..., int]) -> str:
        """What a function writes into a buffer of a capacity, both of which it gets, beside where
        the length of the whole goes."""
        length = ctypes.c_size_t(4096)
        with self._using():
            while True:
                text = ctypes.create_string_buffer(length.value + 1)
                _library.check(call(text, len(text), ctypes.byref(length)))
                if length.value < len(text):
                    return text.value.decode(errors="replace")

    def failure(self) -> str:
        """Why the communicator has failed: collective, rank, instruction and source line. '' if it
        has not."""
        with self._using():
            text: bytes = _library.library().occlCommGetLastError(self._handle)
        return text.decode(errors="replace")

    def trace_start(self, path: str | os.PathLike[str]) -> None:
        """Records from now on what this rank does, for `path`: %r in it is the rank, %p the
        process."""
        with self._using():
            _library.check(_library.library().occlTraceStart(self._handle, os.fsencode(path)))

    def trace_stop(self) -> None:
        """Writes what was recorded, for ui.perfetto.dev."""
        with self._using():
            _library.check(_library.library().occlTraceStop(self._handle))
