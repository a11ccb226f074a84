#!/usr/bin/env python3
"""Compares the committed pages of docs/reference with what is generated from the sources of today.

  reference_test.py <generated page>...    named <page>.generated
"""
import difflib
import pathlib
import sys


def main() -> int:
    status = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        name = path.name.removesuffix(".generated")
        committed = pathlib.Path("docs/reference", name)
        said = committed.read_text(encoding="utf-8") if committed.exists() else ""
        today = path.read_text(encoding="utf-8")
        if said == today:
            continue
        status = 1
        print(f"docs/reference/{name} is not what it describes any more: run `make reference`")
        sys.stdout.writelines(list(difflib.unified_diff(
            said.splitlines(True), today.splitlines(True), "committed", "generated", n=1))[:40])
    return status


if __name__ == "__main__":
    assert len(sys.argv) > 1
    sys.exit(main())
