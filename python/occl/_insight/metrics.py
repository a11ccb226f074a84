"""Counters as Prometheus reads them: its text exposition format, version 0.0.4."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .._errors import InvalidArgumentError

if TYPE_CHECKING:
    from . import CollectiveStats, Stats

_NAME = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_OWN_LABELS = ("rank", "size", "id", "reason")

_Value = int | float
# Name, type, what it is, value.
_OF_RANK: list[tuple[str, str, str, Callable[[Stats], _Value]]] = [
    ("quits_total", "counter", "Voluntary quits of executors with nothing to do.",
     lambda stats: stats.quits),
    ("restarts_total", "counter", "Restarts of executors.", lambda stats: stats.restarts),
    ("queue_length_max", "gauge", "Longest task queue since the start.",
     lambda stats: stats.max_queue_length),
    ("rank_bytes_sent_total", "counter", "Bytes that the rank has sent, by transfers, too.",
     lambda stats: stats.bytes_sent),
    ("rank_bytes_received_total", "counter",
     "Bytes that the rank has received, by transfers, too.", lambda stats: stats.bytes_received),
]
_OF_SEQUENCE: list[tuple[str, str, str, Callable[[CollectiveStats], _Value]]] = [
    ("submitted_total", "counter", "Invocations that this rank has submitted.",
     lambda stats: stats.submitted),
    ("completed_total", "counter", "Invocations that have completed.",
     lambda stats: stats.completed),
    ("failed_total", "counter", "Invocations that have failed.", lambda stats: stats.failed),
    ("start_seconds_total", "counter", "From submission to the task queue.",
     lambda stats: stats.start_seconds),
    ("announce_seconds_total", "counter", "From submission until all others were seen to have "
     "submitted.", lambda stats: stats.announce_seconds),
    ("finish_seconds_total", "counter", "From submission to the end.",
     lambda stats: stats.finish_seconds),
    ("finish_seconds_max", "gauge", "Longest time from submission to the end.",
     lambda stats: stats.longest_finish_seconds),
    ("running_seconds_total", "counter", "Time that slices took.",
     lambda stats: stats.running_seconds),
    ("preemptions_total", "counter", "Visits that ended with a thread block waiting.",
     lambda stats: stats.preemptions),
    ("slices_total", "counter", "Slices that were executed.", lambda stats: stats.slices),
    ("bytes_sent_total", "counter", "Bytes sent by completed invocations.",
     lambda stats: stats.bytes_sent),
    ("bytes_received_total", "counter", "Bytes received by completed invocations.",
     lambda stats: stats.bytes_received),
]


def check_labels(labels: Mapping[str, Any]) -> None:
    """InvalidArgumentError for names that Prometheus refuses or that have a meaning here."""
    for name in labels:
        if name in _OWN_LABELS or not _NAME.fullmatch(name):
            raise InvalidArgumentError(f"'{name}' is no name for a label: letters, digits and _, "
                                       f"and none of {', '.join(_OWN_LABELS)}")


def exposition(stats: Stats, sequences: Mapping[str, CollectiveStats],
               labels: Mapping[str, Any]) -> str:
    """Counters with these labels; those of a sequence also with its `id`."""
    lines: list[str] = []

    def head(name: str, kind: str, what: str) -> None:
        lines.extend((f"# HELP occl_{name} {what}", f"# TYPE occl_{name} {kind}"))

    def sample(name: str, value: _Value, **more: str) -> None:
        text = ",".join(f'{key}="{_escaped(str(of))}"' for key, of in {**labels, **more}.items())
        lines.append(f"occl_{name}{{{text}}} {value}")

    for name, kind, what, value_of in _OF_RANK:
        head(name, kind, what)
        sample(name, value_of(stats))
    for name, kind, what, value_in in _OF_SEQUENCE:
        head(name, kind, what)
        for id, sequence in sequences.items():
            sample(name, value_in(sequence), id=id)
    head("wait_seconds_total", "counter", "Time that thread blocks have waited, by reason.")
    for id, sequence in sequences.items():
        for reason, seconds in sequence.wait_seconds.items():
            sample("wait_seconds_total", seconds, id=id, reason=reason)
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
