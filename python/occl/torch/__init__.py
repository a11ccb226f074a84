"""PyTorch's distributed backend `occl`, for tensors on CPUs.

    import torch.distributed as dist
    import occl.torch
    dist.init_process_group("occl")

See docs/torch.md.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from . import build as _build


def _library() -> str:
    """liboccl.so.0: of OCCL_LIBRARY, of the package, or of the tree this file is in."""
    named = os.environ.get("OCCL_LIBRARY")
    if named:
        return named
    package = Path(__file__).resolve().parents[1]
    places = [package / "liboccl.so.0", package / "lib" / "liboccl.so.0",
              package.parents[1] / "bazel-bin" / "packaging" / "liboccl.so.0"]
    for place in places:
        if place.exists():
            return str(place)
    raise ImportError("liboccl.so.0 is not found; build //packaging:liboccl.so.0, or say where it "
                      "is by OCCL_LIBRARY")


@functools.cache
def _extension():
    spec = importlib.util.spec_from_file_location("occl.torch._c10d", _build.build())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load(_library())
    return module


def __getattr__(name: str):
    if name in ("Backend", "Options"):
        return getattr(_extension(), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


def _create(group, options):
    """Called by torch.distributed for each process group; `options` has nothing that counts here.

    The extension is built and loaded by the first call, so that importing this costs nothing.
    """
    timeout = group.timeout
    if not isinstance(timeout, timedelta):
        timeout = timedelta(seconds=timeout)
    return _extension().Backend(group.store, group.group_rank, group.group_size, timeout)


def autoload() -> None:
    """For the entry point group `torch.backends`: importing torch imports this."""


if not hasattr(dist.Backend, "OCCL"):
    # Also for CUDA, so that the error of a CUDA tensor is this backend's, which says what to do.
    dist.Backend.register_backend("occl", _create, extended_api=True, devices=["cpu", "cuda"])
