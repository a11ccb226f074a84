"""OCCL in the place of NCCL, for processes that do not inherit LD_PRELOAD, as those of Ray and Slurm.

occl_nccl.pth, which installing the package puts beside it, imports this whenever Python starts with
OCCL_NCCL_PRELOAD=1, which `occl nccl` sets. Where LD_PRELOAD has brought a libnccl nothing is to be done.
"""

from __future__ import annotations

import sys


def _preload() -> None:
    from . import load, loaded_ones
    if not loaded_ones():
        load()


try:
    _preload()
except Exception as error:  # the program goes on with the NCCL that it finds
    print(f"occl: OCCL_NCCL_PRELOAD=1, but OCCL is not in the place of NCCL: {error}",
          file=sys.stderr)
