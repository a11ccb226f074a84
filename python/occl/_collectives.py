"""The collectives of a communicator, on arrays."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _calls, _dtypes, _library
from ._calls import Options, Prepared
from ._config import natural, signed
from ._cuda.memory import DeviceArray, shape_of
from ._cuda.streams import Place
from ._errors import InvalidArgumentError, Result
from ._insight import Insight
from ._transfers import leave_lost_group
from .plan import Plan
from .request import Request


class Collectives(Insight):
    """Arrays are those of numpy, CPU tensors of torch, and whatever has the buffer protocol or
    __array_interface__; of communicators on CUDA devices tensors there, and whatever has
    __cuda_array_interface__ or DLPack, in memory of this rank's device. Contiguous, and used where
    they lie. All ranks give the same number of elements and type.

    On devices a call is the next work of a stream, and returns: `stream` is a cudaStream_t as an
    int, or an object with __cuda_stream__, cuda_stream or ptr; without one it is that in which the
    array's framework works now, else the legacy default stream. It begins behind what that framework
    has in its own stream so far. With arrays that are DLPack's alone, as JAX's, a call returns when
    it has ended.

    Where there is an `out`, it is stored to and returned, and may be the array itself where the
    sizes agree (in place); without one a new array is returned, of numpy or torch as the input is.
    Collectives with a part for each rank have the parts one after the other along the first
    dimension. `op` is 'sum', 'prod', 'min', 'max' or 'avg'.
    """

    def all_reduce(self, array: Any, op: str = "sum", *, out: Any = None,
                   stream: Any = None) -> Any:
        """The reduction of all ranks' arrays."""
        return self._standard("allreduce", array, out, stream, op)

    def all_gather(self, array: Any, *, out: Any = None, stream: Any = None) -> Any:
        """All ranks' arrays, one after the other."""
        return self._standard("allgather", array, out, stream)

    def reduce_scatter(self, array: Any, op: str = "sum", *, out: Any = None,
                       stream: Any = None) -> Any:
        """This rank's part of the reduction of all ranks' arrays."""
        return self._standard("reducescatter", array, out, stream, op)

    def all_to_all(self, array: Any, *, out: Any = None, stream: Any = None) -> Any:
        """Part q of this rank's array becomes part `rank` of what rank q gets. Not in place."""
        return self._standard("alltoall", array, out, stream)

    def broadcast(self, array: Any, root: int = 0, *, stream: Any = None) -> Any:
        """Stores the root's array in everybody's, and returns it. Arrays of JAX, which are constant,
        stay as they are, and a new one is returned."""
        return self._standard("broadcast", array, None, stream, root=root)

    def reduce(self, array: Any, root: int = 0, op: str = "sum", *, out: Any = None,
               stream: Any = None) -> Any:
        """On the root the reduction of all ranks' arrays; None elsewhere."""
        return self._standard("reduce", array, out, stream, op, root)

    def gather(self, array: Any, root: int = 0, *, out: Any = None, stream: Any = None) -> Any:
        """On the root all ranks' arrays, one after the other; None elsewhere."""
        return self._standard("gather", array, out, stream, root=root)

    def scatter(self, array: Any = None, root: int = 0, *, out: Any = None,
                stream: Any = None) -> Any:
        """This rank's part of the root's array. On other ranks that is None, and `out` is what says
        how much it is."""
        return self._standard("scatter", array, out, stream, root=root)

    def barrier(self) -> None:
        """Returns when all ranks have called it. On devices what the communicator has in streams has
        ended then, too."""
        if self._work is None:
            self.all_reduce(bytearray(1), "max", out=bytearray(1))
            return
        element = self.empty(1, "uint8")
        place = self._own_place()
        prepared = _calls.standard("allreduce", self.rank, self.size, element, element, "max",
                                   place=place)
        self._run(prepared)
        self._end(prepared)

    def empty(self, shape: Any, dtype: Any = "float32") -> DeviceArray:
        """An array of occlMemAlloc: memory of this rank's CUDA device that all ranks can access. With
        `registered_buffers` all calls need such ones, and are faster; else any array will do."""
        if self._work is None:
            raise InvalidArgumentError("empty() is for communicators on CUDA devices; this one's "
                                       "ranks are on CPUs, where any numpy array will do")
        return DeviceArray(self, shape_of(shape), _dtypes.dtype_name(dtype))

    def call(self, what: Plan | str, array: Any = None, *, out: Any = None, op: str = "sum",
             root: int = 0, count: int | None = None, scale: float | None = None,
             timeout: float | None = None, name: str | None = None, stream: Any = None) -> Any:
        """Executes a plan, or a standard collective by name ('all_reduce'), and returns the output.

        root: of standard collectives; a plan has its own. count: elements of a part, where a plan's
        array does not say it. scale: this rank's input is multiplied by it before it is reduced.
        timeout: the deadline of this call, in seconds. name: for reports. stream: on devices.
        """
        options = Options(op, root, count, scale, timeout, name)
        return self._run(_calls.prepare(what, self.rank, self.size, array, out, options,
                                        place=self._place(stream, array, out)))

    def start(self, what: Plan | str, array: Any = None,
              *, id: int, out: Any = None, op: str = "sum", root: int = 0, count: int | None = None,
              scale: float | None = None, timeout: float | None = None, name: str | None = None,
              priority: int = 0, stream: Any = None) -> Request:
        """Starts what call() executes, and returns at once. The calls of an id are a sequence: the
        k-th of this rank belongs to the k-th of the others; ids may be started in any order,
        another one on each rank. The arrays must not be touched until the request is complete.
        Larger priorities come first. AgainError: too much is in flight; complete a request first.
        On devices it begins behind what the stream has so far, and is in no stream itself:
        Request.wait_in_stream has one wait for it.
        """
        options = Options(op, root, count, scale, timeout, name)
        place = self._place(stream, array, out)
        prepared = _calls.prepare(what, self.rank, self.size, array, out, options, place=place)
        prepared.call.id = natural(id, "id", 1 << 63)
        prepared.call.priority = signed(priority, "priority")
        if place is not None:
            after = ctypes.c_void_p(place.stream)
            prepared.call.after = ctypes.addressof(after)
            prepared.keep += (after,)
        number = ctypes.c_uint64()
        with self._using():
            self._sweep()
            # An exception may come right behind the call: the arrays have to live all the same.
            self._starting.append(prepared)
            result = _library.library().occlStart(
                self._handle, prepared.call, None, None, ctypes.byref(number))
            request = Request(self, number.value, prepared.keep, prepared.value)
            if result == Result.SUCCESS:
                self._requests[number.value] = request
            self._starting.remove(prepared)
            _library.check(result)
        return request

    def _standard(self, kind: str, array: Any, out: Any, stream: Any, op: str = "sum",
                  root: int = 0) -> Any:
        return self._run(_calls.standard(kind, self.rank, self.size, array, out, op, root,
                                         self._place(stream, array, out)))

    def _run(self, prepared: Prepared) -> Any:
        place = prepared.place
        stream = None if place is None else place.stream
        call = _library.library().occlCall
        result = self._block(call, self._handle, prepared.call, stream)
        if result == Result.INVALID_ARGUMENT and leave_lost_group():
            result = self._block(call, self._handle, prepared.call, stream)
        if result:
            _library.fail(result)
        if place is not None:
            self._in_stream(prepared, place)
        return prepared.value

    def _in_stream(self, prepared: Prepared, place: Place) -> None:
        """The call is in its stream: what has to happen until it has ended there."""
        if any(buffer.capsule is not None for buffer in prepared.buffers):
            self._end(prepared)
        elif self._work is not None:
            self._work.keep(place.stream, prepared.buffers, prepared)

    def _end(self, prepared: Prepared) -> None:
        """Waits for the call's stream; raises why the communicator has failed, if it has: the next
        call says that."""
        assert prepared.place is not None
        try:
            self._synchronize(prepared.place)
        except BaseException:  # the kernel may be at it still
            self._starting.append(prepared)
            raise
        if self.failure():
            _library.check(self._block(_library.library().occlCall, self._handle, prepared.call,
                                       prepared.place.stream))
