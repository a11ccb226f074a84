"""From a program in the .coll language, or another tool's file, to a plan."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack, overload

from . import _library, _occlc
from ._generated.compile_options import CompileOptions as CompileOptions
from .diagnostics import CompileWarning
from .plan import Plan

_PathLike = str | os.PathLike[str]


def compile(source: _PathLike, *, ranks: int | None = None,
            define: Mapping[str, Any] | None = None, topology: _PathLike | None = None,
            **options: Unpack[CompileOptions]) -> Plan:
    """Compiles and verifies a program.

    source: a path, or the program itself: a str with a line break or a brace.
    ranks, define: parameters of the algorithm (`-D`): ranks=8 is define={'ranks': 8}. Values are
    ints, bools and lists of them.
    topology: a file with the machine that it is for; define sets its parameters, too.
    options: CompileOptions.

    CompileError shows each error with its line and a caret. Of warnings there is a CompileWarning.
    """
    values = _occlc.parameters(define)
    if ranks is not None:
        if values.setdefault("ranks", ranks) != ranks:
            raise TypeError(f"ranks is {ranks}, and define says {values['ranks']}")
    arguments = _occlc.definitions(values) + _arguments(options)
    if topology is not None:
        arguments += ["--topology", os.path.abspath(os.fspath(topology))]
    with _occlc.folder() as folder:
        if _is_text(source):
            Path(folder, "source.coll").write_text(str(source), encoding="utf-8")
            file, cwd = "source.coll", folder
            arguments += ["-I", os.getcwd()]
        else:
            file, cwd = os.fspath(source), None
        output = os.path.join(folder, "out.plan.json")
        found = _occlc.run(["compile", file, "-o", output, *arguments], cwd)[1]
        data = Path(output).read_bytes()
    for warning in found:
        warnings.warn(str(warning), CompileWarning, stacklevel=2)
    return Plan(data, found)


def from_msccl(source: _PathLike, *, implements: str | None = None, root: int | None = None,
               depth: int | None = None, define: Mapping[str, Any] | None = None) -> Plan:
    """A plan of another tool's algorithm, verified: MSCCL XML, or SCCL's or TACCL's JSON (a path
    that ends in .json). source: a path, or the XML itself. implements: what it is to be proved to
    do, a standard collective or 'file.coll:name'; `define` are its parameters
    (docs/interchange.md)."""
    arguments = _occlc.definitions(define)
    for name, value in (("implements", implements), ("root", root), ("depth", depth)):
        if value is not None:
            arguments += [f"--{name}", str(value)]
    with _occlc.folder() as folder:
        if not isinstance(source, (str, os.PathLike)):
            raise TypeError(f"the source is a {type(source).__name__}; it can be a path, or a str "
                            "with the XML")
        if isinstance(source, str) and source.lstrip()[:1] == "<":
            path = os.path.join(folder, "algorithm.xml")
            Path(path).write_text(source, encoding="utf-8")
        else:
            path = os.fspath(source)
        output = os.path.join(folder, "out.plan.json")
        found = _occlc.run(["import", path, "-o", output, *arguments])[1]
        data = Path(output).read_bytes()
    for warning in found:
        warnings.warn(str(warning), CompileWarning, stacklevel=2)
    return Plan(data, found)


def format(source: str) -> str:
    """The program in its one canonical layout: `occlc fmt`. CompileError if it has errors."""
    with _occlc.folder() as folder:
        Path(folder, "source.coll").write_text(source, encoding="utf-8")
        return _occlc.run(["fmt", "source.coll"], folder)[0]


@overload
def algorithms(name: str) -> Path: ...
@overload
def algorithms(name: None = None) -> list[str]: ...
def algorithms(name: str | None = None) -> Path | list[str]:
    """The algorithms that come with OCCL: their names, such as 'allreduce/ring', or the file of
    one, which occl.compile takes."""
    folder = _data_folder("algorithms")
    if name is None:
        return sorted(str(file.relative_to(folder).with_suffix(""))
                      for file in folder.glob("*/*.coll") if file.parent.name != "common")
    return _data_file(folder, name, ".coll", "algorithm")


@overload
def topologies(name: str) -> Path: ...
@overload
def topologies(name: None = None) -> list[str]: ...
def topologies(name: str | None = None) -> Path | list[str]:
    """The descriptions of machines that come with OCCL: their names, or the file of one."""
    folder = _data_folder("topologies")
    if name is None:
        return sorted(str(file.relative_to(folder).with_suffix(""))
                      for file in folder.rglob("*.topo"))
    return _data_file(folder, name, ".topo", "topology")


def _data_folder(name: str) -> Path:
    installed = _library._NATIVE / name
    return installed if installed.is_dir() else _library._CHECKOUT / name


def _data_file(folder: Path, name: str, suffix: str, kind: str) -> Path:
    path = folder / (name + suffix)
    if not path.is_file() or folder not in path.resolve().parents:
        import difflib

        names = [str(f.relative_to(folder).with_suffix("")) for f in folder.rglob("*" + suffix)]
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; is it '{near[0]}'?" if near else ""
        raise ValueError(f"there is no {kind} '{name}' in {folder}{hint}")
    return path


def _is_text(source: _PathLike) -> bool:
    if isinstance(source, os.PathLike):
        return False
    if not isinstance(source, str):
        raise TypeError(f"the source is a {type(source).__name__}; it can be a path, or a str with "
                        "the program")
    return "\n" in source or "{" in source


def _arguments(options: Mapping[str, Any]) -> list[str]:
    """The options as occlc's flags."""
    arguments = []
    for name, value in options.items():
        if name not in CompileOptions.__annotations__:
            known = ", ".join(CompileOptions.__annotations__)
            raise TypeError(f"compile() has no option '{name}'; it has ranks, define, topology, "
                            f"{known}")
        flag = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(flag)
        elif name in ("import_path", "bytes") and not isinstance(value, str | int | os.PathLike):
            for element in value or ():
                arguments += [flag, _path_or_number(name, element)]
        elif value is not None and value is not False:
            arguments += [flag, _path_or_number(name, value)]
    return arguments


def _path_or_number(name: str, value: Any) -> str:
    if not isinstance(value, str | int | os.PathLike):
        raise TypeError(f"option '{name}' is a {type(value).__name__}; it can be a str or an int")
    text = str(os.fspath(value) if isinstance(value, os.PathLike) else value)
    return os.path.abspath(text) if name == "import_path" else text
