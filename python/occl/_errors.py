"""What goes wrong, as exceptions. Their text is OCCL's own."""

from __future__ import annotations

import builtins
from enum import IntEnum


class Result(IntEnum):
    """occlResult_t of occl_types.h."""

    SUCCESS = 0
    AGAIN = 1
    IN_PROGRESS = 2
    INVALID_ARGUMENT = 3
    INVALID_PLAN = 4
    MISMATCH = 5
    TIMEOUT = 6
    ABORTED = 7
    PEER_FAILED = 8
    DEADLOCK = 9
    SYSTEM_ERROR = 10
    INTERNAL_ERROR = 11
    CALLBACK_FAILED = 12


class Error(Exception):
    """Anything that OCCL refuses or that fails. `result` is the library's, if it was that."""

    result: Result | None = None


class InvalidArgumentError(Error, ValueError):
    """The call is wrong; nothing was done."""

    result = Result.INVALID_ARGUMENT


class ClosedError(InvalidArgumentError):
    """The communicator, plan or request has been closed, or belongs to the parent process."""


class InvalidPlanError(Error, ValueError):
    """The plan is damaged, wrong, or not for this communicator."""

    result = Result.INVALID_PLAN


class AgainError(Error):
    """No resource is free; nothing was done. Complete a request, then call again."""

    result = Result.AGAIN


class MismatchError(Error):
    """Ranks disagree: collective, count, type, operation, root or plan."""

    result = Result.MISMATCH


class TimeoutError(Error, builtins.TimeoutError):
    """A deadline passed."""

    result = Result.TIMEOUT


class AbortedError(Error):
    """Some rank aborted the communicator."""

    result = Result.ABORTED


class PeerFailedError(Error, ConnectionError):
    """A rank is gone that is needed: its process has ended, or its communicator."""

    result = Result.PEER_FAILED


class DeadlockError(Error):
    """Only with preemption off: the ranks wait for each other in a cycle."""

    result = Result.DEADLOCK


class SystemError(Error, OSError):
    """The operating system refused: memory, shared memory, threads, files."""

    result = Result.SYSTEM_ERROR


class InternalError(Error):
    """A mistake of OCCL's; please report it."""

    result = Result.INTERNAL_ERROR


class LibraryError(Error, ImportError):
    """liboccl.so.0 or occlc is missing or cannot be used; the text says what to do."""


_BY_RESULT: dict[int, type[Error]] = {
    error.result: error
    for error in (AgainError, InvalidArgumentError, InvalidPlanError, MismatchError, TimeoutError,
                  AbortedError, PeerFailedError, DeadlockError, SystemError, InternalError)
    if error.result is not None
}


def error_of(result: int, text: str) -> Error:
    """The exception for a result of the library; not for SUCCESS."""
    error = _BY_RESULT.get(result, InternalError)(text)
    error.result = Result(result) if result in Result._value2member_map_ else None
    return error
