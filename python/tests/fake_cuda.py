"""CUDA without a GPU: a driver that writes down what it is told, frameworks whose arrays say that they
are on a device, and ranks on hosts that hold themselves for ranks on devices. Memory is the host's, so
that collectives have results. What real frameworks do is tested by gpu/arrays.py."""

from __future__ import annotations

import ctypes
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from occl import _library
from occl._cuda.work import Work


class Driver:
    """Of _cuda.driver; memory of which it has not been told is none of a device."""

    def __init__(self):
        self.said = []
        self.memory = {}
        self.running = set()
        self.events = 0

    def device_count(self):
        return 2

    def device_of(self, pointer):
        return self.memory.get(pointer)

    def order(self, device, before, after):
        self.said.append(("order", device, before, after))

    def mark(self, device, stream):
        self.events += 1
        self.running.add(self.events)
        self.said.append(("mark", device, stream))
        return self.events

    def is_captured(self, device, stream):
        return False

    def has_ended(self, device, event):
        return event not in self.running

    def forget(self, device, event):
        self.said.append(("forget", event))

    def synchronize(self, device, stream):
        self.said.append(("synchronize", device, stream))
        return 0

    def check(self, name, result):
        assert result == 0

    def make_stream(self, device):
        return 0x5000 + device

    def end_stream(self, device, stream):
        self.said.append(("end", device, stream))


class Library:
    """The library, with NULL as every stream; it remembers which they were. Partitioned requests do
    at once what they would do in the stream."""

    PARTS = {"occlPstartOn": "occlPstart", "occlPreadyOn": "occlPreadyRange",
             "occlPprepareOn": "occlPprepare", "occlPwaitOn": "occlPwait"}

    def __init__(self, library):
        self._library = library
        self.streams = []

    def __getattr__(self, name):
        function = getattr(self._library, name)
        if name == "occlStart":
            def start(handle, call, *more):
                if call.after:
                    self.streams.append(ctypes.c_void_p.from_address(call.after).value or 0)
                call.after = None
                return function(handle, call, *more)
            return start
        if name == "occlStreamWait":
            def wait(handle, number, stream):
                self.streams.append(("wait", stream))
                return 0
            return wait
        if name in self.PARTS:
            def in_stream(handle, *given):
                self.streams.append((name, given[-1]))
                return getattr(self._library, self.PARTS[name])(handle, *given[:-1])
            return in_stream
        arguments = _library._PROTOTYPES.get(name, [])
        if name == "occlCall" or name in ("occlSend", "occlRecv") or name.endswith("v"):
            def call_in_stream(*given):
                assert len(given) == len(arguments)
                self.streams.append(given[-1])
                return function(*given[:-1], None)
            return call_in_stream
        return function


class Array:
    """With __cuda_array_interface__."""

    def __init__(self, cuda: Driver, array: Any, device: int = 0, stream: int | None = None,
                 **changes: Any):
        self.array = np.ascontiguousarray(array)
        self.dtype = self.array.dtype
        self.stream, self.changes = stream, changes
        cuda.memory[self.array.ctypes.data] = device

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.array.shape, "typestr": self.array.dtype.str,
                "data": (self.array.ctypes.data, False), "version": 3, "strides": None,
                "stream": self.stream} | self.changes


class Dlpack:
    """With DLPack, which is what counts."""

    def __init__(self, array: Any, device: int = 0, kind: int = 2):
        self.array = np.ascontiguousarray(array)
        self.dtype = self.array.dtype
        self.where, self.asked = (kind, device), []

    @property
    def __cuda_array_interface__(self):  # as JAX has it: it says nothing of streams
        return {"shape": self.array.shape, "typestr": self.array.dtype.str,
                "data": (self.array.ctypes.data, True), "version": 2}

    def __dlpack_device__(self):
        return self.where

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        return self.array.__dlpack__()


class Tensor:
    """Of torch, on a device."""

    def __init__(self, array: Any, device: int = 0):
        self.array = np.asarray(array)
        self.dtype, self.shape = self.array.dtype, self.array.shape
        self.device = SimpleNamespace(type="cuda", index=device)
        self.layout = "torch.strided"

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def stride(self):
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def is_conj(self):
        return False

    is_neg = is_conj

    def data_ptr(self):
        return self.array.ctypes.data

    def numel(self):
        return self.array.size

    def new_empty(self, shape):
        return type(self)(np.empty(shape, self.array.dtype), self.device.index)


def frameworks(cuda: Driver, monkeypatch: Any) -> SimpleNamespace:
    """Types of CuPy, JAX and torch; the current stream of the last two is 0x700."""
    @contextmanager
    def on(device):
        yield

    cupy = type("ndarray", (Array,), {"__module__": "cupy"})
    jax = type("ArrayImpl", (Dlpack,), {"__module__": "jaxlib._jax",
                                        "device": property(lambda self: self.where[1])})
    torch = type("Tensor", (Tensor,), {"__module__": "torch"})
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(
        cuda=SimpleNamespace(Device=on),
        empty=lambda shape, dtype: cupy(cuda, np.empty(shape, dtype), stream=0x700)))
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(numpy=SimpleNamespace(
        empty=lambda shape, dtype, device: jax(np.empty(shape, dtype), device))))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(
        current_stream=lambda index: SimpleNamespace(cuda_stream=0x700))))
    return SimpleNamespace(cupy=cupy, jax=jax, torch=torch)


def on_devices(comms: list[Any], devices: list[int]) -> None:
    for comm, device in zip(comms, devices):
        comm._work = Work(device)
