#!/usr/bin/env python3
"""occl.h can be read in one sitting: at most 300 lines, and at most 30 functions."""
import pathlib
import re
import sys

MOST_LINES, MOST_FUNCTIONS = 300, 30


def main() -> int:
    header = next(pathlib.Path("runtime").rglob("occl.h"))
    text = header.read_text()
    lines, functions = text.count("\n"), len(re.findall(r"^OCCL_API ", text, re.M))
    print(f"{header}: {lines} lines, {functions} functions")
    return 0 if lines <= MOST_LINES and 0 < functions <= MOST_FUNCTIONS else 1


sys.exit(main())
