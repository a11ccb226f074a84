"""Runs the compiler, occlc: that of OCCL_COMPILER in the environment, the package or checkout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _library
from ._errors import LibraryError
from ._plan import cbor
from .diagnostics import CompileError, Diagnostic, of_json

if TYPE_CHECKING:
    import subprocess
    import tempfile

_FAILED_TO_START = 127  # the dynamic linker's, with its text on standard error


def executable() -> Path:
    return _library.native_file("occlc", "OCCL_COMPILER", "tools/occlc/occlc")


def folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that ends with its context."""
    import tempfile

    return tempfile.TemporaryDirectory(prefix="occl-")


def run(arguments: Sequence[str], cwd: str | None = None) -> tuple[str, tuple[Diagnostic, ...]]:
    """Standard output, and the warnings. CompileError with what it has printed if it fails."""
    import json

    done = _start(["--diag-format=json", *arguments], cwd)
    diagnostics = []
    for line in done.stderr.splitlines():
        if line.startswith("{"):
            diagnostics.append(of_json(json.loads(line)))
    if done.returncode == 0:
        return done.stdout, tuple(diagnostics)
    if diagnostics:
        # Once more for people: only occlc knows how its snippets and witnesses look.
        raise CompileError(_start(arguments, cwd).stderr.rstrip(), tuple(diagnostics))
    raise CompileError(done.stderr.strip() or f"occlc ended with {done.returncode} and no text")


def _start(arguments: Sequence[str], cwd: str | None) -> subprocess.CompletedProcess[str]:
    import subprocess

    program = executable()
    try:
        done = subprocess.run([str(program), *arguments], cwd=cwd, stdin=subprocess.DEVNULL,
                              capture_output=True, encoding="utf-8", errors="replace")
    except OSError as error:
        raise LibraryError(f"{program} cannot be executed: {error}") from error
    if done.returncode == _FAILED_TO_START or "error while loading shared libraries" in done.stderr:
        raise LibraryError(
            f"{program} does not start: {done.stderr.strip()}. It needs the libraries of Debian 12 "
            "or later: glibc 2.36, libstdc++ of GCC 12, libexpat.so.1")
    if done.returncode < 0:
        raise CompileError(f"occlc was killed by signal {-done.returncode}: {done.stderr.strip()}")
    return done


def on_plan(command: str, plan: bytes, options: Sequence[str]) -> str:
    """Runs a command on a plan, whatever its file was."""
    with folder() as place:
        path = Path(place) / ("plan.json" if cbor.is_json(plan) else "plan.cbor")
        path.write_bytes(plan)
        return run([command, str(path), *options])[0]


def prediction_options(size: int | str | None, topology: str | os.PathLike[str] | None,
                       define: dict[str, Any] | None) -> list[str]:
    options = []
    if size is not None:
        options += ["--bytes", str(size)]
    if topology is not None:
        options += ["--topology", os.path.abspath(os.fspath(topology))]
    return options + definitions(define)


def parameters(define: Mapping[str, Any] | None) -> dict[str, Any]:
    """Of an algorithm or a topology, by name; TypeError."""
    if define is not None and not isinstance(define, Mapping):
        raise TypeError(f"define is a {type(define).__name__}; it is a dict, as {{'ranks': 8}}")
    return dict(define or {})


def definitions(define: Mapping[str, Any] | None) -> list[str]:
    """-D options: numbers, and lists of numbers."""
    options = []
    for name, value in parameters(define).items():
        options += ["-D", f"{name}={_value(name, value)}"]
    return options


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) or hasattr(value, "tolist") and not hasattr(value, "__index__"):
        return "[" + ",".join(_value(name, element) for element in value) + "]"
    try:
        return str(value.__index__())
    except AttributeError:
        raise TypeError(f"parameter '{name}' is a {type(value).__name__}; it can be an int, a bool,"
                        " or a list of them") from None


def main() -> None:
    """The command occlc of the package."""
    import sys

    os.execv(executable(), ["occlc", *sys.argv[1:]])
