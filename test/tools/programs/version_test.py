#!/usr/bin/env python3
"""Every program says the version of occl.h, which those of the packages are, too. Arguments: occl.h, occl.pc, occl/__init__.py,
programs."""
import pathlib
import re
import subprocess
import sys

HEADER, PKG_CONFIG, PYTHON, *PROGRAMS = sys.argv[1:]
WORDS = {"occl-doctor": "occl doctor", "occl-topo": "occl topo", "occl-tune": "occl tune"}


def first(pattern: str, path: str) -> str:
    return re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8"), re.M)[1]


version = ".".join(first(rf"^#define OCCL_VERSION_{part} (\d+)$", HEADER) for part in ("MAJOR", "MINOR"))
assert first(r"^Version: (.*)$", PKG_CONFIG) == version
assert first(r'^__version__ = "(\d+\.\d+)\.\d+"$', PYTHON) == version
assert len(PROGRAMS) == 8
for program in PROGRAMS:
    name = pathlib.Path(program).name
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{WORDS.get(name, name)} {version}\n", ""), (name, done)
