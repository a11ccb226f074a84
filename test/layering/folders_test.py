#!/usr/bin/env python3
"""A folder has at most 25 files, a file of code at most 600 lines, and the includes between folders have no cycle.

Looks at the tree of the workspace itself, as no target knows all of its files: those that git
tracks, or, where there is no git, all but what is built.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

MOST = 25
# Folder: how many files it may have, and why.
MORE = {
    "bench/results": (33, "ten tables of three files each, by name; bench/report.py keeps them ten"),
    "docs": (40, "pages in one list, which link to each other"),
}
LINES = 600
CODE = re.compile(r"\.(h|hpp|c|cpp|cu|cuh|py|sh|bzl|td)$")
# Files that are to be divided yet. Add none.
LONG = ("runtime/cuda/resident/executor/intake.h",)
# Where includes must not go in circles. A folder that belongs to another one's package is one with it.
ROOMS = ("compiler", "plan", "runtime", "support", "tools")
PACKAGE = {"plan/verify/checks": "plan/verify"}
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.M)
# What tests alone use may include anything.
TESTS = re.compile(r"_test\.\w+$|(^|/)(testing|conformance|tests)/|Testing\.h$")


def tracked(root: pathlib.Path) -> list[str]:
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True)
        return [file for file in listed.stdout.split("\n")[:-1] if (root / file).exists()]
    except (OSError, subprocess.CalledProcessError):
        pass
    files = []
    for folder, subfolders, names in os.walk(root):
        at = pathlib.Path(folder).relative_to(root)
        subfolders[:] = [s for s in subfolders if not s.startswith((".", "bazel-", "__pycache__")) and s not in ("build", "dist")]
        files += [str(at / name) for name in names if not name.endswith(".pyc")]
    return files


def crowded(files: list[str]) -> list[str]:
    wrong = []
    for folder, number in sorted(collections.Counter(map(os.path.dirname, files)).items()):
        most, _ = MORE.get(folder, (MOST, ""))
        if number > most:
            wrong.append(f"{folder} has {number} files, more than {most}: divide it by subject")
    return wrong


def too_long(lines: dict[str, int]) -> list[str]:
    return [
        f"{file} has {number} lines, more than {LINES}: divide it by subject"
        for file, number in sorted(lines.items())
        if number > LINES and file not in LONG
    ]


def lines_of_code(root: pathlib.Path, files: list[str]) -> dict[str, int]:
    return {file: (root / file).read_bytes().count(b"\n") for file in files if CODE.search(file)}


def includes(root: pathlib.Path, files: list[str]) -> dict[str, dict[str, str]]:
    """Folder: the folders that it includes of, and where it does."""
    found: dict[str, dict[str, str]] = collections.defaultdict(dict)
    for file in files:
        if not file.startswith(ROOMS) or not file.endswith((".h", ".hpp", ".cpp", ".cu", ".cuh")) or TESTS.search(file):
            continue
        folder = os.path.dirname(file)
        folder = PACKAGE.get(folder, folder)
        for name in INCLUDE.findall((root / file).read_text(encoding="utf-8")):
            other = os.path.dirname(name)
            other = PACKAGE.get(other, other)
            if other.startswith(ROOMS) and other != folder:
                found[folder].setdefault(other, f"{file} includes {name}")
    return found


def circles(graph: dict[str, dict[str, str]]) -> list[str]:
    """A text for each way back to a folder that is still open, depth first."""
    wrong, closed, path = [], set(), []

    def visit(folder: str) -> None:
        path.append(folder)
        for other in sorted(graph.get(folder, {})):
            if other in path:
                circle = path[path.index(other) :] + [other]
                steps = [graph[a][b] for a, b in zip(circle, circle[1:])]
                wrong.append("folders need each other: " + ", ".join(steps))
            elif other not in closed:
                visit(other)
        closed.add(path.pop())

    for folder in sorted(graph):
        if folder not in closed:
            visit(folder)
    return wrong


def self_check() -> None:
    assert crowded([f"a/{n}" for n in range(26)]) and not crowded([f"a/{n}" for n in range(25)])
    assert too_long({"a.h": 601, "b.h": 600}) == ["a.h has 601 lines, more than 600: divide it by subject"]
    assert not circles({"a": {"b": "1", "c": "2"}, "b": {"c": "3"}})
    assert len(circles({"a": {"b": "1"}, "b": {"c": "2"}, "c": {"a": "3"}})) == 1


def main() -> int:
    self_check()
    # Runfiles and sandboxes link to the file itself.
    root = pathlib.Path(os.path.realpath(__file__)).parents[2]
    files = tracked(root)
    graph = includes(root, files)
    wrong = crowded(files) + too_long(lines_of_code(root, files)) + circles(graph)
    if not (root / "WORKSPACE").exists() or len(files) < 1000 or len(graph) < 50:
        wrong.append(f"{root}: only {len(files)} files and {len(graph)} folders that include others were found")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
