"""CUDA's driver, as far as arrays and streams need it. Loaded at its first use; liboccl has its own."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_uint, c_uint64, c_void_p

from .._errors import LibraryError, SystemError

_MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL = 2, 8, 9  # of CUpointer_attribute
_ON_DEVICE = 2  # of CUmemorytype
_NOT_READY = 600  # of CUresult
_NON_BLOCKING, _NO_TIMING = 1, 2  # of CUstream_flags, CUevent_flags

_PROTOTYPES: dict[str, list[object]] = {
    "cuInit": [c_uint],
    "cuGetErrorName": [c_int, ctypes.POINTER(c_char_p)],
    "cuDeviceGetCount": [ctypes.POINTER(c_int)],
    "cuDeviceGet": [ctypes.POINTER(c_int), c_int],
    "cuDevicePrimaryCtxRetain": [ctypes.POINTER(c_void_p), c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [ctypes.POINTER(c_void_p)],
    "cuPointerGetAttribute": [c_void_p, c_int, c_uint64],
    "cuEventCreate": [ctypes.POINTER(c_void_p), c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventQuery": [c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuStreamCreate": [ctypes.POINTER(c_void_p), c_uint],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
    "cuStreamIsCapturing": [c_void_p, ctypes.POINTER(c_int)],
    "cuStreamSynchronize": [c_void_p],
}


class Driver:
    """The driver's functions; devices by their numbers, streams and events by their handles. Any
    thread. SystemError, which names CUDA's error, if one fails."""

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
            for name, arguments in _PROTOTYPES.items():
                function = getattr(self._cuda, name)
                function.argtypes, function.restype = arguments, c_int
        except (OSError, AttributeError) as error:
            raise LibraryError(f"arrays on CUDA devices need NVIDIA's driver: {error}") from None
        self._contexts: dict[int, c_void_p] = {}
        self._check("cuInit", 0)

    def device_count(self) -> int:
        number = c_int()
        self._check("cuDeviceGetCount", byref(number))
        return number.value

    def device_of(self, pointer: int) -> int | None:
        """The device of which it is memory; None of other memory, also managed and pinned one."""
        kind, device, is_managed = c_uint(), c_int(), c_uint()
        for attribute, value in ((_MEMORY_TYPE, kind), (_DEVICE_ORDINAL, device),
                                 (_IS_MANAGED, is_managed)):
            if self._cuda.cuPointerGetAttribute(ctypes.addressof(value), attribute, pointer):
                return None
        return device.value if kind.value == _ON_DEVICE and not is_managed.value else None

    def order(self, device: int, before: int, after: int) -> None:
        """What follows in stream `after` begins behind what stream `before` has so far."""
        with self._on(device):
            event = self._event(before)
            try:
                self._check("cuStreamWaitEvent", after, event, 0)
            finally:
                self._check("cuEventDestroy_v2", event)

    def mark(self, device: int, stream: int) -> int | None:
        """An event behind what the stream has so far, to be asked about and forgotten; None while
        the stream is captured."""
        with self._on(device):
            return None if self._is_captured(stream) else self._event(stream).value

    def is_captured(self, device: int, stream: int) -> bool:
        """Whether the stream is captured, or, of the legacy default stream, another one."""
        with self._on(device):
            return self._is_captured(stream)

    def has_ended(self, device: int, event: int) -> bool:
        """Whether what is in front of the event has ended, also by an error."""
        with self._on(device):
            return int(self._cuda.cuEventQuery(event)) != _NOT_READY

    def forget(self, device: int, event: int) -> None:
        with self._on(device):
            self._cuda.cuEventDestroy_v2(event)

    def synchronize(self, device: int, stream: int) -> int:
        """Waits for the stream. Returns CUDA's error, for check()."""
        with self._on(device):
            return int(self._cuda.cuStreamSynchronize(stream))

    def make_stream(self, device: int) -> int:
        """One that waits for no default stream."""
        stream = c_void_p()
        with self._on(device):
            self._check("cuStreamCreate", byref(stream), _NON_BLOCKING)
        assert stream.value is not None
        return stream.value

    def end_stream(self, device: int, stream: int) -> None:
        with self._on(device):
            self._cuda.cuStreamDestroy_v2(stream)

    def check(self, name: str, result: int) -> None:
        if result:
            text = c_char_p()
            self._cuda.cuGetErrorName(result, byref(text))
            raise SystemError(f"{name}: {(text.value or b'error').decode()} ({result})")

    def _is_captured(self, stream: int) -> bool:
        status = c_int()
        # Of the legacy default stream it is an error while another one is captured.
        return bool(self._cuda.cuStreamIsCapturing(stream, byref(status)) or status.value)

    def _event(self, stream: int) -> c_void_p:
        event = c_void_p()
        self._check("cuEventCreate", byref(event), _NO_TIMING)
        try:
            self._check("cuEventRecord", event, stream)
        except SystemError:
            self._cuda.cuEventDestroy_v2(event)
            raise
        return event

    @contextmanager
    def _on(self, device: int) -> Iterator[None]:
        """With the device's primary context, which is CUDA's runtime's, as the current one."""
        context = self._contexts.get(device)
        if context is None:
            number, context = c_int(), c_void_p()
            self._check("cuDeviceGet", byref(number), device)
            self._check("cuDevicePrimaryCtxRetain", byref(context), number)
            self._contexts[device] = context
        self._check("cuCtxPushCurrent_v2", context)
        try:
            yield
        finally:
            self._cuda.cuCtxPopCurrent_v2(byref(c_void_p()))

    def _check(self, name: str, *arguments: object) -> None:
        self.check(name, getattr(self._cuda, name)(*arguments))


_driver: Driver | None = None
_lock = threading.Lock()


def driver() -> Driver:
    """Thread-safe. LibraryError where there is none, SystemError where it does not start."""
    global _driver
    if _driver is None:
        with _lock:
            if _driver is None:
                _driver = Driver()
    return _driver
