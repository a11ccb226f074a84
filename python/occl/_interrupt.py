"""Control-C in the middle of a call that blocks.

Python runs signal handlers between its own instructions, so none runs while its main thread waits
inside liboccl. So Python's own C handler writes the signal's number to a pipe, for which a thread of
this module waits, and if SIGINT would be KeyboardInterrupt it aborts the communicator that the main
thread is blocked with. The call then returns, with its buffers untouched from there on, and the main
thread raises KeyboardInterrupt.

That thread may come late, when the program has handled the signal already and is in its next call.
So calls begin by taking what is in the pipe, and what the thread finds there is of this call alone.

Who has another wakeup descriptor (asyncio, for instance) keeps it; then such a call ends first.
"""

from __future__ import annotations

import os
import select
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
_arrived = select.poll()  # whether there is something in the pipe, for the main thread
_lock = threading.RLock()  # of taking it out; a handler of signals may be inside of call() again
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
    try:
        with _lock:
            try:
                has_come = bool(_arrived.poll(0))
            except RuntimeError:  # a handler of signals that has interrupted this very poll
                has_come = _pipe is not None
            if has_come:
                _take()
            _end_call = end_call
        return function(*arguments)
    finally:
        _end_call = None


def _watch(now: float) -> None:
    """Sees to it that the pipe is Python's wakeup descriptor, if nobody has another one."""
    global _pipe, _looked
    _looked = now
    if _pipe is None:
        _pipe = os.pipe()
        for descriptor in _pipe:
            os.set_blocking(descriptor, False)
        _arrived.register(_pipe[0], select.POLLIN)
        threading.Thread(target=_read, args=(_pipe[0],), name="occl-interrupt", daemon=True).start()
    before = signal.set_wakeup_fd(_pipe[1], warn_on_full_buffer=False)
    if before not in (-1, _pipe[1]):
        signal.set_wakeup_fd(before)


def _read(reader: int) -> None:
    arrived = select.poll()
    arrived.register(reader, select.POLLIN)
    while True:
        arrived.poll()  # takes nothing out
        with _lock:
            numbers, end_call = _take(), _end_call
            if (signal.SIGINT in numbers and end_call is not None
                    and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
                end_call()


def _take() -> bytes:
    """What is in the pipe, which may be nothing any more."""
    assert _pipe is not None
    try:
        return os.read(_pipe[0], 256)
    except BlockingIOError:
        return b""


def _in_child() -> None:
    """After fork: the thread is not there, and the pipe is the parent's."""
    global _pipe, _looked, _main, _end_call, _arrived, _lock
    if _pipe is not None:
        before = signal.set_wakeup_fd(-1)
        if before not in (-1, _pipe[1]):
            signal.set_wakeup_fd(before)
        for descriptor in _pipe:
            os.close(descriptor)
    _pipe, _looked, _end_call = None, -1.0, None
    _main = get_ident()
    _arrived, _lock = select.poll(), threading.RLock()


os.register_at_fork(after_in_child=_in_child)
