#!/usr/bin/env python3
"""nccl/ stands on the C interface: of OCCL it includes nothing but occl.h and the headers beside it, and support/."""
import pathlib
import re
import sys

ALLOWED = re.compile(r"nccl/.*|support/.*|runtime/api/occl(_\w+)?\.h")


def main() -> int:
    wrong, seen = [], 0
    for path in sorted(pathlib.Path("nccl").rglob("*")):
        if path.suffix not in (".h", ".cpp") or path.name.endswith("_test.cpp"):
            continue
        seen += 1
        wrong += [f"{path} includes {name}: use the C interface"
                  for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.M)
                  if not ALLOWED.fullmatch(name)]
    if seen < 20:
        wrong.append(f"only {seen} sources were found")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
