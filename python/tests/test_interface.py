"""The package says what the C headers and docs/python.md say, and its types are right."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import occl
from occl import _abi, _dtypes, _library

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "runtime/api"
STRUCTURES = {"occlCall_t": _abi.Call, "occlConfig_t": _abi.Config,
              "occlPartConfig_t": _abi.PartConfig, "occlPartInfo_t": _abi.PartInfo,
              "occlStats_t": _abi.Stats,
              "occlCollectiveStats_t": _abi.CollectiveStats, "occlBlockStats_t": _abi.BlockStats}


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_structures_and_numbers_are_those_of_the_headers(tmp_path):
    lines, wanted = [], []
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        wanted.append(f"{name} {ctypes.sizeof(structure)}")
        for field, *_ in structure._fields_:
            lines.append(f'printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), '
                         f'sizeof((({name} *)0)->{field}));')
            described = getattr(structure, field)
            wanted.append(f"{name} {field} {described.offset} {described.size}")
    camel = {"float8_e4m3fn": "Float8E4m3", "float8_e5m2": "Float8E5m2"}
    kinds = {name.replace("_", ""): "".join(word.capitalize() for word in name.split("_"))
             for name in _abi.STANDARD}
    numbers = {f"occl{camel.get(n, n.capitalize())}": code for n, (code, _) in
               _dtypes.DTYPES.items()}
    numbers |= {f"occl{op.capitalize()}": code for op, code in _abi.OPS.items()}
    numbers |= {f"occlKind{kinds.get(n, n.capitalize())}": code for n, code in _abi.KINDS.items()}
    numbers |= {f"occlWait{why.capitalize()}": i for i, why in enumerate(_abi.WAIT_REASONS)}
    numbers |= {"occlNumWaitReasons": len(_abi.WAIT_REASONS), "OCCL_NO_TIMEOUT": _abi.NO_TIMEOUT}
    for result in occl.Result:
        name = "".join(word.capitalize() for word in result.name.split("_"))
        numbers[f"occl{name}"] = result.value
    for name, number in numbers.items():
        lines.append(f'printf("{name} %llu\\n", (unsigned long long){name});')
        wanted.append(f"{name} {number}")
    source = tmp_path / "numbers.c"
    source.write_text('#include "occl.h"\n#include "occl_insight.h"\n#include "occl_partitioned.h"\n#include <stdio.h>\n'
                      "int main(void) {\n" + "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run(["gcc", f"-I{HEADERS}", source, "-o", tmp_path / "numbers"], check=True)
    printed = subprocess.run([tmp_path / "numbers"], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == wanted


def test_standard_collectives_are_those_of_the_list():
    text = (ROOT / "plan/collectives/collectives.def").read_text()
    rows = re.findall(r'^OCCL_COLLECTIVE\(\w+, "(\w+)", (.*)\)$', text, flags=re.M)
    assert rows == [(name, ", ".join(definition)) for name, definition in _abi.DEFINITIONS.items()]
    assert len(rows) == text.count("\nOCCL_COLLECTIVE(")


def test_functions_have_as_many_arguments_as_in_the_headers():
    text = "".join((HEADERS / f"{name}.h").read_text()
                   for name in ("occl", "occl_transfer", "occl_partitioned",
                                "occl_partitioned_device", "occl_insight"))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    declared = {name: 0 if arguments.strip() == "void" else arguments.count(",") + 1
                for name, arguments in re.findall(r"OCCL_API\s+\w+\s+(occl\w+)\(([^;]*)\);", text)}
    del declared["occlPdevice"]  # of a structure, in whose place Python has the pointer
    bound = {name: len(arguments) for name, arguments in _library._PROTOTYPES.items()}
    assert bound == declared


def test_a_library_of_another_version_is_refused(monkeypatch):
    assert occl.library_version() == tuple(map(int, occl.__version__.split(".")[:2]))
    monkeypatch.setattr(_library, "_loaded", None)
    monkeypatch.setattr(occl, "__version__", "7.3.1")
    with pytest.raises(occl.LibraryError, match=r"is OCCL \d+\.\d+, this package is 7\.3\.1"):
        occl.library_version()


def test_every_name_is_there_and_said():
    for name in occl.__all__:
        assert getattr(occl, name).__doc__, name
    assert set(occl.__all__) <= set(dir(occl))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        occl.nothing
    text = (ROOT / "docs/python.md").read_text()
    for name in occl.__all__:
        assert re.search(rf"\b{name}\b", text), f"docs/python.md does not name {name}"
    for cls in (occl.Communicator, occl.Partitioned, occl.Plan, occl.Request):
        for name in dir(cls):
            if name[0] != "_":
                assert getattr(cls, name).__doc__, name
                assert re.search(rf"\b{name}\b", text), f"docs/python.md does not name {name}"


def blocks_of(path):
    """The Python programs of a page: indented by four, between paragraphs."""
    found, lines = [], []
    for line in [*path.read_text().splitlines(), "end"]:
        if line.startswith("    ") or not line and lines:
            lines.append(line[4:])
        elif lines:
            found.append("\n".join(lines).strip() + "\n")
            lines = []
    return [block for block in found if "occl." in block and not block.startswith("$")]


def test_the_programs_of_the_page_run(tmp_path, monkeypatch):
    """In order, as in one notebook. That of GPUs is executed by gpu/arrays.py."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = [block for block in blocks_of(ROOT / "docs/python.md") if "cuda" not in block]
    assert len(blocks) >= 4
    assert len(blocks[0].splitlines()) <= 10
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)


@pytest.mark.skipif(not importlib.util.find_spec("mypy"), reason="no mypy")
def test_types(tmp_path):
    (tmp_path / "user.py").write_text(
        "import occl\n"
        "plan: occl.Plan = occl.compile('x', ranks=8, protocol='ll')\n"
        "seconds: float = occl.run(plan).seconds\n"
        "with occl.init(timeout=3.0) as comm:\n"
        "    rank: int = comm.rank\n"
        "occl.compile('x', instnces=3)\n"
        "rank = plan.name\n")
    package = str(Path(occl.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"),
         "user.py"], cwd=tmp_path, capture_output=True, text=True,
        env={"MYPYPATH": package, "PATH": "/usr/bin:/bin"})
    wrong = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(wrong) == 2 and 'instnces' in wrong[0] and "user.py:7" in wrong[1], done.stdout
