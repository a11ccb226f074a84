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
import os
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist

from .._library import native_file
from . import build as _build


@functools.cache
def _extension():
    """The compiled backend; else, for tensors on CPUs, that in Python, which a warning says once.
    OCCL_TORCH_FALLBACK: 1 takes that in Python, 0 never does."""
    asked = os.environ.get("OCCL_TORCH_FALLBACK", "")
    try:
        if asked == "1":
            raise _build.BuildError("OCCL_TORCH_FALLBACK is 1")
        path = _build.build()
    except _build.BuildError as error:
        if asked == "0":
            raise
        from . import fallback
        if not fallback.is_possible():
            raise _build.BuildError(f"{error}; the backend in Python takes PyTorch 2.7 or later, and "
                                    f"this is {torch.__version__}") from None
        warnings.warn("occl's backend in Python is used, which is slower and for tensors on CPUs of "
                      f"one machine alone (docs/torch.md): {error}", RuntimeWarning, stacklevel=2)
        return fallback
    spec = importlib.util.spec_from_file_location("occl.torch._c10d", path)
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
