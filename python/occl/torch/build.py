"""Builds the extension for the PyTorch that can be imported: some 20 seconds of g++, once.

    python -m occl.torch.build          prints where it is

Needs g++ and Python's headers (Debian: g++, python3-dev); neither ninja nor CUDA. Extensions are
kept by versions and sources in $OCCL_TORCH_CACHE (default: ~/.cache/occl-torch).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SOURCES = FOLDER / "csrc"


class BuildError(RuntimeError):
    """The extension cannot be built; the text says why."""


def _headers() -> Path:
    """The folder of occl.h: of OCCL_INCLUDE, of the package, or of the tree this file is in."""
    places = [os.environ.get("OCCL_INCLUDE"), FOLDER.parent / "_native" / "include",
              FOLDER.parents[2] / "runtime" / "communicator"]
    for place in places:
        if place and (Path(place) / "occl.h").exists():
            return Path(place)
    raise BuildError("OCCL's headers are not found; say where they are by OCCL_INCLUDE")


def _pybind_abi() -> list[str]:
    """What older versions of torch were built with, for classes to be shared with theirs."""
    import torch
    names = {name: getattr(torch._C, f"_PYBIND11_{name}", None)
             for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")}
    return [f'-DPYBIND11_{name}="{value}"' for name, value in names.items() if value is not None]


def _compile(output: Path, headers: Path) -> None:
    import torch
    root = Path(torch.__file__).parent
    parts = sorted(p for p in SOURCES.rglob("*.cpp"))
    unit = output.with_suffix(".unit.cpp")  # PyTorch's headers are read once for all
    unit.write_text("".join(f'#include "{p}"\n' for p in parts))
    partial = output.with_suffix(f".{os.getpid()}.tmp")
    command = [
        os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-fPIC", "-shared", "-w",
        "-fvisibility=hidden", "-D_GLIBCXX_USE_CXX11_ABI=%d" % torch.compiled_with_cxx11_abi(),
        *_pybind_abi(), f"-I{SOURCES}", f"-I{headers}", f"-isystem{root / 'include'}",
        f"-isystem{root / 'include' / 'torch' / 'csrc' / 'api' / 'include'}",
        f"-isystem{sysconfig.get_paths()['include']}", str(unit), "-o", str(partial),
        f"-L{root / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10", "-ldl", "-lpthread"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildError(f"the compiler {command[0]} is not there; set CXX") from None
    if done.returncode != 0:
        raise BuildError(f"the extension for torch {torch.__version__} does not compile:\n"
                         + done.stderr[-8000:])
    unit.unlink()
    partial.rename(output)


def build() -> Path:
    """Returns the extension for this Python and its torch; builds it unless it is there."""
    import torch
    packaged = FOLDER / ("_c10d_%s_%s.so" % tuple(torch.__version__.split(".")[:2]))
    if packaged.exists():
        return packaged
    headers = _headers()
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.rglob("*.[ch]*"), *headers.glob("occl*.h"), Path(__file__)]):
        digest.update(path.name.encode() + path.read_bytes())
    cache = Path(os.environ.get("OCCL_TORCH_CACHE", Path.home() / ".cache" / "occl-torch"))
    output = cache / "extensions" / "-".join(
        ["torch", torch.__version__, f"cp{sys.version_info.major}{sys.version_info.minor}",
         digest.hexdigest()[:16]]) / "_c10d.so"
    if output.exists():
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    with (output.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ranks that start together build one
        if not output.exists():
            _compile(output, headers)
    return output


if __name__ == "__main__":
    print(build())
