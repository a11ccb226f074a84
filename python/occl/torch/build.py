"""Builds the extension for the PyTorch that can be imported: some 20 seconds of g++, once.

    python -m occl.torch.build          prints where it is
    python -m occl.torch.build PYTHON   for another Python with the same torch, which needs headers
                                        here, but no torch

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
              FOLDER.parents[2] / "runtime" / "api"]
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


def _headers_of(python: str | None) -> tuple[str, str]:
    """The tag, as cp312, and the folder of headers, of a Python; None: of this one."""
    if python is None:
        tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
        return tag, sysconfig.get_paths()["include"]
    asked = ("import sys, sysconfig; print('cp%d%d' % sys.version_info[:2]);"
             "print(sysconfig.get_paths()['include'])")
    try:
        answer = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"{python} is no Python that can be asked for its headers: {error}") from None
    tag, include = answer.stdout.split("\n")[:2]
    return tag, include


def _compile(output: Path, headers: Path, python_headers: str) -> None:
    import torch
    root = Path(torch.__file__).parent
    parts = sorted(p for p in SOURCES.rglob("*.cpp"))
    unit = output.with_suffix(".unit.cpp")  # PyTorch's headers are read once for all
    unit.write_text("".join(f'#include "{p}"\n' for p in parts), encoding="utf-8",
                    errors="surrogateescape")
    partial = output.with_suffix(f".{os.getpid()}.tmp")
    command = [
        os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-fPIC", "-shared", "-w",
        "-fvisibility=hidden", "-D_GLIBCXX_USE_CXX11_ABI=%d" % torch.compiled_with_cxx11_abi(),
        *_pybind_abi(), f"-I{SOURCES}", f"-I{headers}", f"-isystem{root / 'include'}",
        f"-isystem{root / 'include' / 'torch' / 'csrc' / 'api' / 'include'}",
        f"-isystem{python_headers}", str(unit), "-o", str(partial),
        f"-L{root / 'lib'}", "-ltorch_python", "-ltorch_cpu", "-lc10", "-ldl", "-lpthread",
        # By its file: compilers that find but an archive would give the extension a second copy of
        # what torch has, and its streams would crash.
        "-l:libstdc++.so.6"]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    except OSError as error:
        raise BuildError(f"PyTorch's backend is compiled once, and the compiler {command[0]} cannot be "
                         f"started ({error.strerror}): install it (Debian: g++), name another one by "
                         "CXX, or build where there is one (docs/torch.md)") from None
    if done.returncode != 0 and "Python.h: No such file" in done.stderr:
        raise BuildError(f"PyTorch's backend is compiled once, and {python_headers} has no Python.h: "
                         "install Python's headers (Debian: python3-dev), or build where they are, by "
                         "`python -m occl.torch.build PYTHON` (docs/torch.md)")
    if done.returncode != 0:
        raise BuildError(f"the extension for torch {torch.__version__} does not compile:\n"
                         + done.stderr[-8000:])
    unit.unlink()
    partial.rename(output)


def _cache() -> Path:
    if named := os.environ.get("OCCL_TORCH_CACHE"):
        return Path(named)
    try:
        return Path.home() / ".cache" / "occl-torch"
    except RuntimeError:  # a user without an entry in the system's list, as in containers
        raise BuildError("PyTorch's backend is compiled once and kept in the user's home directory, and "
                         "this user has none: name another folder by OCCL_TORCH_CACHE (docs/torch.md)") from None


def build(python: str | None = None) -> Path:
    """Returns the extension for a Python (None: this one) and the torch of this one; builds it
    unless it is there."""
    import torch
    tag, python_headers = _headers_of(python)
    packaged = FOLDER / ("_c10d_%s_%s_%s.so" % (tag, *torch.__version__.split(".")[:2]))
    if packaged.exists():
        return packaged
    headers = _headers()
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.rglob("*.[ch]*"), *headers.glob("occl*.h"), Path(__file__)]):
        digest.update(path.name.encode() + path.read_bytes())
    output = _cache() / "extensions" / "-".join(
        ["torch", torch.__version__, tag, digest.hexdigest()[:16]]) / "_c10d.so"
    if output.exists():
        return output
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        with (output.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # ranks that start together build one
            if not output.exists():
                _compile(output, headers, python_headers)
    except OSError as error:
        raise BuildError(f"PyTorch's backend is compiled once and kept in {output.parent}, which cannot "
                         f"be written ({error.strerror}): name another folder by OCCL_TORCH_CACHE "
                         "(docs/torch.md)") from error
    return output


if __name__ == "__main__":
    print(build(*sys.argv[1:2]))
