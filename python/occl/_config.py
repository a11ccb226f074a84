"""The settings of a communicator, as keywords."""

from __future__ import annotations

from typing import Any, TypedDict

from . import _abi
from ._errors import InvalidArgumentError


class Settings(TypedDict, total=False):
    """occlConfig_t of occl_types.h, which says more. What is left out has its default."""

    timeout: float | None
    """Seconds: deadline of set-up (30 if left out) and of every collective (none if left out)."""
    workers: int
    """Executor threads of a rank; default 1."""
    preemption: bool
    arena_bytes: int
    heap_bytes: int
    max_in_flight: int
    device: int | None
    """The rank's CUDA device; None, or left out: on CPUs. What follows is for devices alone."""
    streams: int
    """In how many streams of a device the process has calls at a time."""
    max_thread_blocks: int
    """Of a call in a stream, 16 or more, if kernels run beside it."""
    strict: bool
    registered_buffers: bool
    """All arrays are of Communicator.empty."""
    as_needed: bool
    """On all ranks: memory for larger calls is taken when they come; none for what is started."""
    spin_microseconds: int


_NAMES = {"workers": "workers", "arena_bytes": "arenaBytes", "heap_bytes": "heapBytes",
          "max_in_flight": "maxInFlight", "spin_microseconds": "spinMicroseconds",
          "streams": "streams", "max_thread_blocks": "maxThreadBlocks"}

_CUDA = 1  # of occlDeviceKind_t


def timeout_ms(seconds: float | None, what: str = "timeout") -> int:
    """None is 0, the default; infinity is no deadline."""
    if seconds is None:
        return 0
    if not isinstance(seconds, int | float):
        raise TypeError(f"{what} is a {type(seconds).__name__}; it is a number of seconds")
    if seconds == float("inf"):
        return _abi.NO_TIMEOUT
    if not 0 < seconds < _abi.NO_TIMEOUT / 1000:
        raise InvalidArgumentError(f"{what} is {seconds} seconds; it can be above 0 and below "
                                   f"{_abi.NO_TIMEOUT // 1000}, or float('inf') for none")
    return max(1, round(seconds * 1000))


def natural(value: Any, what: str, below: int = 1 << 64) -> int:
    """An int that is not negative, for the library. TypeError, InvalidArgumentError."""
    try:
        number = int(value.__index__())
    except AttributeError:
        raise TypeError(f"{what} is a {type(value).__name__}; it is an int") from None
    if not 0 <= number < below:
        raise InvalidArgumentError(f"{what} is {number}; it can be 0 to {below - 1}")
    return number


def signed(value: Any, what: str) -> int:
    """An int of 32 bits with a sign, for the library. TypeError, InvalidArgumentError."""
    try:
        number = int(value.__index__())
    except AttributeError:
        raise TypeError(f"{what} is a {type(value).__name__}; it is an int") from None
    if not -(1 << 31) <= number < 1 << 31:
        raise InvalidArgumentError(f"{what} is {number}; it can be {-(1 << 31)} to {(1 << 31) - 1}")
    return number


def config_of(settings: Settings) -> _abi.Config:
    config = _abi.sized(_abi.Config)
    for name, value in settings.items():
        if name == "timeout":
            config.timeoutMs = timeout_ms(value)  # type: ignore[arg-type]
        elif name == "preemption":
            config.preemption = 1 if value else 2
        elif name == "strict":
            config.strict = 1 if value else 2
        elif name == "registered_buffers":
            config.registeredBuffers = 1 if value else 0
        elif name == "as_needed":
            config.asNeeded = 1 if value else 0
        elif name == "device":
            if value is not None:
                config.deviceKind, config.device = _CUDA, natural(value, name, 1 << 31)
        elif name in _NAMES:
            bits = 64 if name.endswith("bytes") else 32
            setattr(config, _NAMES[name], natural(value, name, 1 << bits))
        else:
            known = ", ".join(Settings.__annotations__)
            raise TypeError(f"a communicator has no setting '{name}'; it has {known}")
    return config
