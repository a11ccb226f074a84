"""OCCL: collective communication that cannot deadlock. docs/python.md begins with ten lines.

    plan = occl.compile("ring.coll", ranks=8)   # a program in the .coll language, verified
    print(occl.run(plan))                       # on all ranks, as threads of this process
    with occl.init() as comm:                   # a rank of a job: occl-run, torchrun, mpirun, srun
        total = comm.all_reduce(array)

What a name needs is imported when it is used first.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._config import Settings as Settings
    from ._cuda.memory import DeviceArray as DeviceArray
    from ._errors import AbortedError as AbortedError
    from ._errors import AgainError as AgainError
    from ._errors import ClosedError as ClosedError
    from ._errors import DeadlockError as DeadlockError
    from ._errors import Error as Error
    from ._errors import InternalError as InternalError
    from ._errors import InvalidArgumentError as InvalidArgumentError
    from ._errors import InvalidPlanError as InvalidPlanError
    from ._errors import LibraryError as LibraryError
    from ._errors import MismatchError as MismatchError
    from ._errors import PeerFailedError as PeerFailedError
    from ._errors import Result as Result
    from ._errors import SystemError as SystemError
    from ._errors import TimeoutError as TimeoutError
    from ._insight import CollectiveStats as CollectiveStats
    from ._insight import Stats as Stats
    from ._library import library_version as library_version
    from ._running import Run as Run
    from ._running import run as run
    from ._transfers import group as group
    from .communicator import Communicator as Communicator
    from .communicator import init as init
    from .communicator import init_all as init_all
    from .compiler import CompileOptions as CompileOptions
    from .compiler import algorithms as algorithms
    from .compiler import compile as compile
    from .compiler import format as format
    from .compiler import from_msccl as from_msccl
    from .compiler import topologies as topologies
    from .diagnostics import CompileError as CompileError
    from .diagnostics import CompileWarning as CompileWarning
    from .diagnostics import Diagnostic as Diagnostic
    from .diagnostics import Note as Note
    from .draw import Drawing as Drawing
    from .partitioned import Partitioned as Partitioned
    from .plan import Plan as Plan
    from .plan import load as load
    from .prediction import Prediction as Prediction
    from .request import Request as Request

__version__ = "0.1.0"

_MODULES = {
    "_config": ["Settings"],
    "_cuda.memory": ["DeviceArray"],
    "_errors": ["AbortedError", "AgainError", "ClosedError", "DeadlockError", "Error",
                "InternalError", "InvalidArgumentError", "InvalidPlanError", "LibraryError",
                "MismatchError", "PeerFailedError", "Result", "SystemError", "TimeoutError"],
    "_insight": ["CollectiveStats", "Stats"],
    "_library": ["library_version"],
    "_running": ["Run", "run"],
    "_transfers": ["group"],
    "communicator": ["Communicator", "init", "init_all"],
    "compiler": ["CompileOptions", "algorithms", "compile", "format", "from_msccl", "topologies"],
    "diagnostics": ["CompileError", "CompileWarning", "Diagnostic", "Note"],
    "draw": ["Drawing"],
    "partitioned": ["Partitioned"],
    "plan": ["Plan", "load"],
    "prediction": ["Prediction"],
    "request": ["Request"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'occl' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module("." + module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
