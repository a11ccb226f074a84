"""Finds and loads OCCL's libnccl.so.2."""

from __future__ import annotations

import ctypes
from pathlib import Path

from .._errors import LibraryError
from .._library import native_file

_NAME = "libnccl.so.2"


def loaded_ones() -> set[str]:
    """Paths of libraries in this process that have NCCL's name."""
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if Path(path.removesuffix(" (deleted)")).name.startswith("libnccl.so"):
                found.add(path)
    return found


def load() -> ctypes.CDLL:
    """LibraryError if it is not there, or another NCCL is loaded already."""
    own = native_file(_NAME, "OCCL_NCCL_LIBRARY", f"nccl/{_NAME}").resolve()
    for other in sorted(loaded_ones()):
        if Path(other).resolve() != own:
            raise LibraryError(f"another NCCL is loaded already, {other}: import occl.nccl before "
                               "what loads it, as torch does")
    try:
        return ctypes.CDLL(str(own), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise LibraryError(f"{own} cannot be loaded: {error}") from None
