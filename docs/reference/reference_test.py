#!/usr/bin/env python3
"""Compares what is committed of what is generated, the pages of docs/reference and a file of the Python package, with what
is generated from the sources of today.

  reference_test.py <generated page>...    named <page>.generated
"""
import difflib
import pathlib
import sys


def committed_at(name: str) -> pathlib.Path:
    return pathlib.Path("python/occl/_generated" if name.endswith(".py") else "docs/reference", name)


def main() -> int:
    status = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        name = path.name.removesuffix(".generated")
        committed = committed_at(name)
        said = committed.read_text(encoding="utf-8") if committed.exists() else ""
        today = path.read_text(encoding="utf-8")
        if said == today:
            continue
        status = 1
        print(f"{committed} is not what it describes any more: run `make reference`")
        sys.stdout.writelines(list(difflib.unified_diff(
            said.splitlines(True), today.splitlines(True), "committed", "generated", n=1))[:40])
    return status


if __name__ == "__main__":
    assert len(sys.argv) > 1
    sys.exit(main())
