#!/usr/bin/env python3
"""docs/reference/environment.md has the variables that what is installed looks at, and no others.

In the sources a variable is a string of its own that begins as these do."""

import os
import pathlib
import re
import sys

FOLDERS = ("runtime", "nccl", "python", "tools", "compiler", "plan", "support")
ENDS = (".cpp", ".h", ".hpp", ".cu", ".cuh", ".py", ".pth", ".inc")
TESTS = re.compile(r"_test\.\w+$|(^|/)(test|tests|testing|conformance|fixtures|dev)/|^nccl/gpu/")
BEGINS = r"(?:OCCL|NCCL|CUDA|OMPI|SLURM|MASTER|LOCAL|WORLD)_[A-Z0-9_]+|RANK"
READ = re.compile(rf'["\']({BEGINS})(?:=\d*)?["\']')
WRITTEN = re.compile(rf"`({BEGINS})`")
PAGE = pathlib.Path("docs/reference/environment.md")
# Strings that are no variables that anything installed looks at, and why.
OTHERS = {
    "NCCL_VERSION": "set by images, for the package that they have: known, so that it is not named as ignored",
}


def read_by(root: pathlib.Path) -> dict[str, str]:
    """Variable: a source that names it."""
    found: dict[str, str] = {}
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix in ENDS and not TESTS.search(name):
            for variable in READ.findall(path.read_text(encoding="utf-8")):
                found.setdefault(variable, name)
    return found


def main() -> int:
    root = pathlib.Path(os.path.realpath(__file__)).parent.parent.parent
    sources = read_by(root)
    page = set(WRITTEN.findall((root / PAGE).read_text(encoding="utf-8")))
    wrong = [f"{sources[name]}: {name} is not in {PAGE}" for name in sorted(sources.keys() - page - OTHERS.keys())]
    wrong += [f"{PAGE}: {name} is in no source of {', '.join(FOLDERS)}" for name in sorted(page - sources.keys())]
    wrong += [f"environment_test.py: {name} is in no source, so it need not be left out" for name in sorted(OTHERS.keys() - sources.keys())]
    for line in wrong:
        print(line)
    print(f"{len(page)} variables")
    return 1 if wrong or not page else 0


sys.exit(main())
