"""The structures of OCCL's C interface. A test compares them with the headers."""

from __future__ import annotations

from ctypes import (Structure, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_uint64,
                    c_void_p, sizeof)
from typing import NamedTuple, TypeVar

_Sized = TypeVar("_Sized", bound=Structure)

NO_TIMEOUT = 0xFFFFFFFF
NO_COLOUR = -1
CALLS = 0xFFFFFFFFFFFFFFFF
ALL_BLOCKS = 0xFFFFFFFF



class Definition(NamedTuple):
    """What a collective is: plan/collectives/collectives.def, with the same words."""

    input: str
    input_of: str
    output: str
    output_of: str
    result: str
    promise: str


# By the names of methods; plans call them so without underscores. A test compares with the list.
STANDARD = {
    "all_reduce": Definition("Part", "All", "Part", "All", "Reduced", "Named"),
    "all_gather": Definition("Part", "All", "Whole", "All", "Copied", "Named"),
    "reduce_scatter": Definition("Whole", "All", "Part", "All", "Reduced", "Named"),
    "broadcast": Definition("Part", "Root", "Part", "All", "Copied", "Named"),
    "reduce": Definition("Part", "All", "Part", "Root", "Reduced", "Named"),
    "all_to_all": Definition("Whole", "All", "Whole", "All", "Copied", "Named"),
    "gather": Definition("Part", "All", "Whole", "Root", "Copied", "Listed"),
    "scatter": Definition("Whole", "Root", "Part", "All", "Copied", "Listed"),
}
DEFINITIONS = {name.replace("_", ""): definition for name, definition in STANDARD.items()}
KINDS = {"plan": 0} | {name: 1 + i for i, name in enumerate(DEFINITIONS)}
OPS = {"sum": 0, "prod": 1, "min": 2, "max": 3, "avg": 4}
WAIT_REASONS = ("announce", "data", "credit", "dependency", "signal", "begin")


class Call(Structure):
    """occlCall_t."""

    _fields_ = [
        ("size", c_size_t), ("kind", c_int), ("plan", c_void_p), ("sendBuffer", c_void_p),
        ("recvBuffer", c_void_p), ("count", c_uint64), ("dataType", c_int), ("op", c_int),
        ("root", c_uint32), ("id", c_uint64), ("priority", c_int32), ("timeoutMs", c_uint32),
        ("name", c_char_p), ("callbacksNeverBlock", c_uint32), ("scalar", c_void_p),
        ("after", c_void_p), ("deviceScalar", c_void_p),
    ]


class Config(Structure):
    """occlConfig_t."""

    _fields_ = [
        ("size", c_size_t), ("timeoutMs", c_uint32), ("preemption", c_uint32),
        ("workers", c_uint32), ("spinMicroseconds", c_uint32), ("arenaBytes", c_uint64),
        ("maxInFlight", c_uint32), ("orderPolicy", c_uint32), ("budgetPolicy", c_uint32),
        ("heapBytes", c_uint64), ("deviceKind", c_uint32), ("device", c_uint32),
        ("strict", c_uint32), ("streams", c_uint32), ("registeredBuffers", c_uint32),
        ("maxThreadBlocks", c_uint32), ("asNeeded", c_uint32),
    ]


class PartConfig(Structure):
    """occlPartConfig_t."""

    _fields_ = [("size", c_size_t), ("partitionsPerMessage", c_uint64), ("rounds", c_uint64)]


class PartInfo(Structure):
    """occlPartInfo_t."""

    _fields_ = [("size", c_size_t), ("rounds", c_uint64), ("messages", c_uint64),
                ("arrivesEarly", c_int32)]


class Stats(Structure):
    """occlStats_t."""

    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in (
        "submitted", "completed", "failed", "preemptions", "contextLoads", "contextSaves", "quits",
        "restarts", "bytesSent", "bytesReceived", "maxQueueLength")] + [
            ("meanQueueLength", c_double)]


class CollectiveStats(Structure):
    """occlCollectiveStats_t."""

    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in (
        "submitted", "completed", "failed", "startNs", "announceNs", "finishNs", "longestFinishNs",
        "queueLengths", "longestQueue")] + [("numBlocks", c_uint32)]


class BlockStats(Structure):
    """occlBlockStats_t."""

    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in (
        "contextLoads", "contextSaves", "preemptions", "slices", "bytesSent", "bytesReceived",
        "runningNs", "queueLengths", "longestQueue")] + [
            ("waits", c_uint64 * 8), ("waitNs", c_uint64 * 8)]


def sized(structure: type[_Sized]) -> _Sized:
    """A structure with zeros but its size, which the library wants to know."""
    made = structure()
    made.size = sizeof(structure)
    return made
