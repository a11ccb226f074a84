"""Collectives that have been started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _library
from ._cuda import streams
from ._errors import InvalidArgumentError, Result

if TYPE_CHECKING:
    from ._core import Core


class Request:
    """A collective that Communicator.start has started. Its arrays are kept alive, and must not be
    touched, until it is complete; the request itself may be dropped before. Any thread may wait for
    it."""

    __slots__ = ("_comm", "_number", "_arrays", "_value", "_failure", "_is_complete", "__weakref__")

    def __init__(self, comm: Core, number: int, arrays: tuple[Any, ...], value: Any):
        self._comm = comm
        self._number = number
        self._arrays = arrays
        self._value = value
        self._failure: BaseException | None = None
        self._is_complete = False

    def _begin(self, number: int, arrays: tuple[Any, ...]) -> None:
        """Of a group: it has ended, and its transfers are in flight."""
        self._number, self._arrays = number, arrays
        self._comm._requests[number] = self

    def test(self) -> bool:
        """Whether it is complete; executes what can go on now, and never blocks. If it has failed,
        the exception is result()'s."""
        if not self._is_complete:
            comm = self._begun()
            with comm._using():
                self._take(_library.library().occlTest(comm._handle, self._number))
        return self._is_complete

    def wait(self) -> None:
        """Returns when it is complete, and its arrays are the caller's again; raises why it failed,
        if it did. Without a deadline it waits for ranks that live as long as it takes. Control-C
        aborts the communicator."""
        if not self._is_complete:
            comm = self._begun()
            self._take(comm._block(_library.library().occlWait, comm._handle, self._number))
        if self._failure is not None:
            raise self._failure

    def wait_in_stream(self, stream: Any = None) -> Any:
        """On devices: what follows in the stream (as Communicator.start takes it; without one that
        in which the output's framework works now) waits until it is complete, also if it fails, and
        the host does not. Returns the output, for that stream. Why it failed wait() says."""
        comm = self._begun()
        place = comm._place(stream, self._value)
        if place is not None and stream is None and streams.learns_of_none(self._value):
            raise InvalidArgumentError(f"{type(self._value).__name__} cannot be told that its "
                                       "framework has to wait for a stream: wait(), or result()")
        if place is None:
            raise InvalidArgumentError("wait_in_stream is for communicators on CUDA devices; this "
                                       "one's ranks are on CPUs: wait()")
        if not self._is_complete:
            with comm._using():
                _library.check(_library.library().occlStreamWait(comm._handle, self._number,
                                                                 place.stream))
        return self._value

    def result(self) -> Any:
        """Waits, and returns the output: the array that the call was given, or made."""
        self.wait()
        return self._value

    def _begun(self) -> Core:
        if not self._number:
            raise InvalidArgumentError("the group of this request has not ended, so that nothing of"
                                       " it has begun")
        return self._comm

    def _take(self, result: int) -> None:
        if result == Result.IN_PROGRESS:
            return
        if result != Result.SUCCESS:
            try:
                _library.fail(result)
            except Exception as failure:
                self._failure = failure
        self._is_complete = True
        self._arrays = ()
        self._comm._forget(self._number)

    def __repr__(self) -> str:
        state = "in flight"
        if self._is_complete:
            state = f"failed: {self._failure}" if self._failure else "complete"
        return f"<occl.Request {self._number} of {self._comm!r}: {state}>"
