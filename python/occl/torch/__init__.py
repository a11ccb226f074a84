"""PyTorch's distributed backend `occl`, for tensors on CPUs and CUDA devices.

    import torch.distributed as dist
    import occl.torch
    dist.init_process_group("occl")

See docs/torch.md.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
from datetime import timedelta

import torch.distributed as dist

from .._library import native_file
from . import build as _build


@functools.cache
def _extension():
    spec = importlib.util.spec_from_file_location("occl.torch._c10d", _build.build())
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    atexit.register(module.close_all)
    module.load(str(native_file("liboccl.so.0", "OCCL_LIBRARY", "packaging/liboccl.so.0")))
    return module


def __getattr__(name: str):
    if name in ("Backend", "Options", "close_all"):
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
    dist.Backend.register_backend("occl", _create, extended_api=True, devices=["cpu", "cuda"])
