"""OCCL in the place of NCCL, for this process: imported before what uses NCCL.

    import occl.nccl
    import torch

Loads OCCL's libnccl.so.2 by its name, so that libraries that are loaded later and need that name get
it. It is looked for where OCCL_NCCL_LIBRARY says, in the package, in bazel-bin of the checkout.
LibraryError if it is not there, or another NCCL is loaded already. Children that are started afresh
import it themselves, or have OCCL_NCCL_PRELOAD=1 in their environment, where the package is
installed; `occl nccl PROGRAM...` is for whole programs. What holds is in docs/nccl.md.
"""

from __future__ import annotations

import ctypes

from ._nccl import load


def _version() -> int:
    number = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(number))
    return number.value


#: The library, with NCCL's functions.
library: ctypes.CDLL = load()
#: The version of NCCL whose interface it is, as ncclGetVersion has it: 22809 is 2.28.9.
version: int = _version()
