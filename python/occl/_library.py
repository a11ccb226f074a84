"""Finds and loads liboccl.so.0, and calls it.

Where it is looked for: OCCL_LIBRARY in the environment; the package (`occl/_native`, where
installing puts it); bazel-bin of the checkout that the package lies in.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import (POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64,
                    c_void_p)
from pathlib import Path

from . import _abi
from ._errors import LibraryError, Result, error_of

_PACKAGE = Path(__file__).resolve().parent
_NATIVE = _PACKAGE / "_native"
_CHECKOUT = _PACKAGE.parent.parent

_P = c_void_p
_PROTOTYPES: dict[str, list[object]] = {
    "occlGetVersion": [POINTER(c_uint32), POINTER(c_uint32)],
    "occlPlanLoad": [c_char_p, POINTER(_P)],
    "occlPlanDestroy": [_P],
    "occlPlanQuery": [_P, POINTER(c_uint32), POINTER(c_char_p), POINTER(c_char_p)],
    "occlCommInitAll": [POINTER(_P), c_uint32, POINTER(_abi.Config)],
    "occlCommInitRank": [POINTER(_P), c_uint32, c_uint32, c_char_p, POINTER(_abi.Config)],
    "occlCommInitFromEnv": [POINTER(_P), POINTER(_abi.Config)],
    "occlCommSplit": [_P, c_int32, c_int32, POINTER(_abi.Config), POINTER(_P)],
    "occlCommShrink": [_P, POINTER(c_uint32), c_uint32, POINTER(_abi.Config), POINTER(_P)],
    "occlCommRank": [_P, POINTER(c_uint32)],
    "occlCommSize": [_P, POINTER(c_uint32)],
    "occlCommDestroy": [_P],
    "occlCommAbort": [_P],
    "occlCall": [_P, POINTER(_abi.Call), _P],
    "occlStart": [_P, POINTER(_abi.Call), _P, _P, POINTER(c_uint64)],
    "occlStreamWait": [_P, c_uint64, _P],
    "occlWait": [_P, c_uint64],
    "occlTest": [_P, c_uint64],
    "occlMemAlloc": [_P, c_size_t, POINTER(_P)],
    "occlMemFree": [_P, _P],
    "occlSend": [_P, c_uint64, c_int, c_uint32, _P, _P],
    "occlRecv": [_P, c_uint64, c_int, c_uint32, _P, _P],
    "occlGroupStart": [],
    "occlGroupEnd": [],
    "occlGroupEndAsync": [_P, c_uint32, _P, _P, POINTER(c_uint64)],
    "occlAllToAllv": [_P, _P, _P, _P, _P, _P, c_int, _P, _P],
    "occlAllGatherv": [_P, c_uint64, _P, _P, _P, c_int, _P, _P],
    "occlGatherv": [_P, c_uint64, _P, _P, _P, c_int, c_uint32, _P, _P],
    "occlScatterv": [_P, _P, _P, _P, c_uint64, c_int, c_uint32, _P, _P],
    "occlPsendInit": [_P, _P, c_int64, c_uint64, c_int, c_int64, c_int64,
                      POINTER(_abi.PartConfig), POINTER(_P)],
    "occlPrecvInit": [_P, _P, c_int64, c_uint64, c_int, c_int64, c_int64,
                      POINTER(_abi.PartConfig), POINTER(_P)],
    "occlPcollInit": [_P, POINTER(_abi.Call), c_int64, c_int64, POINTER(_abi.PartConfig),
                      POINTER(_P)],
    "occlPquery": [_P, POINTER(_abi.PartInfo)],
    "occlPstart": [_P],
    "occlPprepare": [_P],
    "occlPready": [_P, c_int64],
    "occlPreadyRange": [_P, c_int64, c_int64],
    "occlPreadyList": [_P, c_uint64, POINTER(c_int64)],
    "occlParrived": [_P, c_int64, POINTER(c_int32)],
    "occlPtest": [_P],
    "occlPwait": [_P],
    "occlPfree": [_P],
    "occlPstartOn": [_P, _P],
    "occlPreadyOn": [_P, c_int64, c_int64, _P],
    "occlPprepareOn": [_P, _P],
    "occlPwaitOn": [_P, _P],
    "occlPdevicePointer": [_P, POINTER(_P)],
    "occlCommGetStats": [_P, POINTER(_abi.Stats)],
    "occlCollectiveGetStats": [_P, c_uint64, POINTER(_abi.CollectiveStats)],
    "occlCollectiveGetBlockStats": [_P, c_uint64, c_uint32, POINTER(_abi.BlockStats)],
    "occlCommGetCollectives": [_P, POINTER(c_uint64), c_size_t, POINTER(c_size_t)],
    "occlCommIsBusy": [_P, POINTER(c_int)],
    "occlCommReport": [_P, c_char_p, c_size_t, POINTER(c_size_t)],
    "occlCommGetMetrics": [_P, c_char_p, c_char_p, c_size_t, POINTER(c_size_t)],
    "occlReportOnSignal": [c_int, c_char_p],
    "occlTraceStart": [_P, c_char_p],
    "occlTraceStop": [_P],
}

_loaded: ctypes.CDLL | None = None
_lock = threading.Lock()


def native_file(name: str, override: str, in_checkout: str) -> Path:
    """A native file of the package: what `override` in the environment says, or the installed one,
    or that of the checkout. LibraryError if there is none."""
    if chosen := os.environ.get(override):
        if not Path(chosen).is_file():
            raise LibraryError(f"{override} is '{chosen}', which is no file")
        return Path(chosen)
    places = [_NATIVE / name, _CHECKOUT / "bazel-bin" / in_checkout]
    for place in places:
        if place.is_file():
            return place
    raise LibraryError(
        f"{name} is not there. Looked for: {places[0]} (pip install puts it there), {places[1]} "
        f"(tools/dev/bazel.sh build //{in_checkout.replace('/' + name, ':' + name)}). Or set "
        f"{override} to its path")


def library() -> ctypes.CDLL:
    """The library, loaded at its first use. Thread-safe."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> ctypes.CDLL:
    path = native_file("liboccl.so.0", "OCCL_LIBRARY", "packaging/liboccl.so.0")
    try:
        found = ctypes.CDLL(str(path))
        for name, arguments in _PROTOTYPES.items():
            function = getattr(found, name)
            function.argtypes = arguments
            function.restype = c_int
    except OSError as error:
        raise LibraryError(f"{path} cannot be loaded: {error}. It needs Linux on x86-64 with the "
                           "libraries of Debian 12 or later: glibc 2.36, libstdc++ of GCC 12, "
                           "libzstd.so.1") from error
    except AttributeError as error:
        raise LibraryError(f"{path} is of another version than this package: {error}") from error
    found.occlGetLastError.restype = c_char_p
    found.occlGetLastError.argtypes = []
    found.occlGetErrorString.restype = c_char_p
    found.occlGetErrorString.argtypes = [c_int]
    found.occlCommGetLastError.restype = c_char_p
    found.occlCommGetLastError.argtypes = [c_void_p]
    _check_version(_version_of(found), path)
    return found


def _version_of(found: ctypes.CDLL) -> tuple[int, int]:
    major, minor = c_uint32(), c_uint32()
    found.occlGetVersion(major, minor)
    return major.value, minor.value


def _check_version(version: tuple[int, int], path: Path) -> None:
    """The structures of the package are those of a library of its own version."""
    from . import __version__

    if version != tuple(int(part) for part in __version__.split(".")[:2]):
        raise LibraryError(f"{path} is OCCL {version[0]}.{version[1]}, this package is "
                           f"{__version__}: install both of one version, or unset OCCL_LIBRARY")


def library_version() -> tuple[int, int]:
    """Of the library, major and minor: those of `__version__`. LibraryError if there is none."""
    return _version_of(library())


def check(result: int) -> None:
    """Raises what a result of this thread's last call says, with the library's text."""
    if result != Result.SUCCESS:
        fail(result)


def fail(result: int) -> None:
    text = library().occlGetLastError().decode(errors="replace")
    raise error_of(result, text or library().occlGetErrorString(result).decode())
