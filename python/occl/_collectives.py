"""The collectives of a communicator, on arrays."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _calls, _library
from ._calls import Options, Prepared
from ._config import natural
from ._core import Core
from ._errors import Result
from ._transfers import leave_lost_group
from .plan import Plan
from .request import Request


class Collectives(Core):
    """Arrays are those of numpy, CPU tensors of torch, and whatever has the buffer protocol or
    __array_interface__; contiguous, and used where they lie. All ranks give the same number of
    elements and type.

    Where there is an `out`, it is stored to and returned, and may be the array itself where the
    sizes agree (in place); without one a new array is returned, of numpy or torch as the input is.
    Collectives with a part for each rank have the parts one after the other along the first
    dimension. `op` is 'sum', 'prod', 'min', 'max' or 'avg'.
    """

    def all_reduce(self, array: Any, op: str = "sum", *, out: Any = None) -> Any:
        """The reduction of all ranks' arrays."""
        return self._run(_calls.standard("allreduce", self.rank, self.size, array, out, op))

    def all_gather(self, array: Any, *, out: Any = None) -> Any:
        """All ranks' arrays, one after the other."""
        return self._run(_calls.standard("allgather", self.rank, self.size, array, out))

    def reduce_scatter(self, array: Any, op: str = "sum", *, out: Any = None) -> Any:
        """This rank's part of the reduction of all ranks' arrays."""
        return self._run(_calls.standard("reducescatter", self.rank, self.size, array, out, op))

    def all_to_all(self, array: Any, *, out: Any = None) -> Any:
        """Part q of this rank's array becomes part `rank` of what rank q gets. Not in place."""
        return self._run(_calls.standard("alltoall", self.rank, self.size, array, out))

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """Stores the root's array in everybody's, and returns it."""
        return self._run(_calls.standard("broadcast", self.rank, self.size, array, None, root=root))

    def reduce(self, array: Any, root: int = 0, op: str = "sum", *, out: Any = None) -> Any:
        """On the root the reduction of all ranks' arrays; None elsewhere."""
        return self._run(_calls.standard("reduce", self.rank, self.size, array, out, op, root))

    def gather(self, array: Any, root: int = 0, *, out: Any = None) -> Any:
        """On the root all ranks' arrays, one after the other; None elsewhere."""
        return self._run(_calls.standard("gather", self.rank, self.size, array, out, root=root))

    def scatter(self, array: Any = None, root: int = 0, *, out: Any = None) -> Any:
        """This rank's part of the root's array. On other ranks that is None, and `out` is what says
        how much it is."""
        return self._run(_calls.standard("scatter", self.rank, self.size, array, out, root=root))

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self.all_reduce(bytearray(1), "max", out=bytearray(1))

    def call(self, what: Plan | str, array: Any = None, *, out: Any = None, op: str = "sum",
             root: int = 0, count: int | None = None, scale: float | None = None,
             timeout: float | None = None, name: str | None = None) -> Any:
        """Executes a plan, or a standard collective by name ('all_reduce'), and returns the output.

        root: of standard collectives; a plan has its own. count: elements of a part, where a plan's
        array does not say it. scale: this rank's input is multiplied by it before it is reduced.
        timeout: the deadline of this call, in seconds. name: for reports.
        """
        options = Options(op, root, count, scale, timeout, name)
        return self._run(_calls.prepare(what, self.rank, self.size, array, out, options))

    def start(self, what: Plan | str, array: Any = None,
              *, id: int, out: Any = None, op: str = "sum", root: int = 0, count: int | None = None,
              scale: float | None = None, timeout: float | None = None, name: str | None = None,
              priority: int = 0) -> Request:
        """Starts what call() executes, and returns at once. The calls of an id are a sequence: the
        k-th of this rank belongs to the k-th of the others; ids may be started in any order,
        another one on each rank. The arrays must not be touched until the request is complete.
        Larger priorities come first. AgainError: too much is in flight; complete a request first.
        """
        options = Options(op, root, count, scale, timeout, name)
        prepared = _calls.prepare(what, self.rank, self.size, array, out, options)
        prepared.call.id = natural(id, "id", 1 << 63)
        prepared.call.priority = priority
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

    def _run(self, prepared: Prepared) -> Any:
        result = self._block(_library.library().occlCall, self._handle, prepared.call, None)
        if result == Result.INVALID_ARGUMENT and leave_lost_group():
            result = self._block(_library.library().occlCall, self._handle, prepared.call, None)
        if result:
            _library.fail(result)
        return prepared.value

    def _sweep(self) -> None:
        """Requests that the program has dropped end some time; then their arrays may go."""
        if len(self._requests) > 16:
            for request in list(self._requests.values())[:4]:
                request.test()
