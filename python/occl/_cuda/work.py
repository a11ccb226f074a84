"""What a communicator on a CUDA device has put into streams: arrays that have to live until it has
ended there, and waits of the host for it."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from .driver import driver
from .memory import DeviceArray

if TYPE_CHECKING:
    from .._buffers import Buffer


class Work:
    """Of one communicator. Any thread."""

    def __init__(self, device: int):
        self.device = device
        self.memories: weakref.WeakValueDictionary[int, DeviceArray] = weakref.WeakValueDictionary()
        self._held: deque[tuple[int, Any]] = deque()
        self._stream: int | None = None
        self._lock = threading.Lock()

    def own_stream(self) -> int:
        """A stream for calls that the host waits for."""
        with self._lock:
            if self._stream is None:
                self._stream = driver().make_stream(self.device)
            return self._stream

    def keep(self, stream: int, buffers: list[Buffer], owner: Any) -> None:
        """Behind a call in the stream: keeps the owner of the buffers as long as it has to live. What
        earlier streams have ended goes."""
        if self.is_to_hold(buffers, stream):
            self.hold(stream, owner)
        elif self._held and not driver().is_captured(self.device, stream):
            self._sweep()

    def is_to_hold(self, buffers: list[Buffer], stream: int) -> bool:
        """Whether memory of the buffers could be used anew before the stream has come so far: their
        frameworks see to it in their own current stream alone."""
        return any(buffer.current != stream or self._is_in_memory(buffer) for buffer in buffers)

    def hold(self, stream: int, keep: Any) -> None:
        """Keeps it until the stream has ended what it has so far. While the stream is captured the
        graph's buffers are the program's to keep, and events must not be asked."""
        event = driver().mark(self.device, stream)
        if event is not None:
            self._sweep()
            self._held.append((event, keep))

    def end(self) -> None:
        """When the communicator has ended, and with it what it has in streams."""
        while self._held:
            driver().forget(self.device, self._held.popleft()[0])
        if self._stream is not None:
            driver().end_stream(self.device, self._stream)
            self._stream = None

    def forget(self) -> None:
        """In a forked child, where CUDA does not work."""
        self._held.clear()
        self._stream = None
        self._lock = threading.Lock()

    def _sweep(self) -> None:
        for _ in range(2):  # two for each that comes
            try:
                event, keep = self._held.popleft()
            except IndexError:
                return
            if driver().has_ended(self.device, event):
                driver().forget(self.device, event)
            else:
                self._held.appendleft((event, keep))
                return

    def _is_in_memory(self, buffer: Buffer) -> bool:
        return any(pointer <= buffer.pointer < pointer + memory.bytes
                   for pointer, memory in list(self.memories.items()))
