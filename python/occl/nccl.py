"""OCCL in the place of NCCL, for this process: imported before what uses NCCL.

    import occl.nccl
    import torch

Loads OCCL's libnccl.so.2 by its name, so that libraries that are loaded later and need that name get
it. It is looked for where OCCL_NCCL_LIBRARY says, in the package, in bazel-bin of the checkout.
LibraryError if it is not there, or another NCCL is loaded already. Children that are started afresh
import it themselves; `occl nccl PROGRAM...` is for whole programs. What holds is in docs/nccl.md.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from ._errors import LibraryError
from ._library import native_file

_NAME = "libnccl.so.2"


def _loaded_ones() -> set[str]:
    """Paths of libraries in this process that have NCCL's name."""
    found = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if Path(path.removesuffix(" (deleted)")).name.startswith("libnccl.so"):
                found.add(path)
    return found


def _load() -> ctypes.CDLL:
    own = native_file(_NAME, "OCCL_NCCL_LIBRARY", f"nccl/{_NAME}").resolve()
    for other in sorted(_loaded_ones()):
        if Path(other).resolve() != own:
            raise LibraryError(f"another NCCL is loaded already, {other}: import occl.nccl before "
                               "what loads it, as torch does")
    try:
        return ctypes.CDLL(str(own), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise LibraryError(f"{own} cannot be loaded: {error}") from None


def _version() -> int:
    number = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(number))
    return number.value


#: The library, with NCCL's functions.
library: ctypes.CDLL = _load()
#: The version of NCCL whose interface it is, as ncclGetVersion has it: 22809 is 2.28.9.
version: int = _version()
