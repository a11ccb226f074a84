"""Control-C in the middle of a call that blocks.

Python runs signal handlers between its own instructions, so none runs while its main thread waits
inside liboccl. Such waits cost nothing extra here: Python's own C handler writes the signal's
number to a pipe, from which a thread of this module reads, and if SIGINT would be KeyboardInterrupt
it aborts the communicator that the main thread is blocked with. The call then returns, with its
buffers untouched from there on, and the main thread raises KeyboardInterrupt.

Who has another wakeup descriptor (asyncio, for instance) keeps it; then such a call ends first.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from threading import get_ident
from time import monotonic
from typing import Any

# What ends the call that the main thread is in; None while it is in none.
_end_call: Callable[[], object] | None = None
_main = threading.main_thread().ident
_pipe: tuple[int, int] | None = None
_looked = -1.0
_LOOK_SECONDS = 1.0


def call(end_call: Callable[[], object], function: Callable[..., int], *arguments: Any) -> int:
    """What the function returns, which may block. On SIGINT another thread calls `end_call`, if
    this is the main thread: that is where signals are handled."""
    global _end_call
    if get_ident() != _main:
        return function(*arguments)
    now = monotonic()
    if now > _looked + _LOOK_SECONDS:
        _watch(now)
    _end_call = end_call
    try:
        return function(*arguments)
    finally:
        _end_call = None


def _watch(now: float) -> None:
    """Sees to it that the pipe is Python's wakeup descriptor, if nobody has another one."""
    global _pipe, _looked
    _looked = now
    if _pipe is None:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        _pipe = (reader, writer)
        threading.Thread(target=_read, args=(reader,), name="occl-interrupt", daemon=True).start()
    before = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    if before not in (-1, _pipe[1]):
        signal.set_wakeup_fd(before)


def _read(reader: int) -> None:
    while numbers := os.read(reader, 256):
        end_call = _end_call
        if (signal.SIGINT in numbers and end_call is not None
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            end_call()


def _in_child() -> None:
    """After fork: the thread is not there, and the pipe is the parent's."""
    global _pipe, _looked, _main, _end_call
    if _pipe is not None:
        before = signal.set_wakeup_fd(-1)
        if before not in (-1, _pipe[1]):
            signal.set_wakeup_fd(before)
        for descriptor in _pipe:
            os.close(descriptor)
    _pipe, _looked, _end_call = None, -1.0, None
    _main = get_ident()


os.register_at_fork(after_in_child=_in_child)
