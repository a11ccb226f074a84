#!/usr/bin/env python3
"""The functions, structures and numbers that programs rely on are those that are committed. Arguments: abi.txt, the one of today."""
import difflib
import pathlib
import sys

WHAT_TO_DO = """
Programs that were compiled before see the difference above. If it is not meant, undo it. Else:
- what was taken away or changed: programs must be compiled again. Once a version is released, raise OCCL_VERSION_MAJOR from 1.0 on,
  OCCL_VERSION_MINOR before, and the library's name (liboccl.so.0) with the major one;
- what was added, as functions, or fields at the end of a structure that begins with `size`: programs go on. Once a version is
  released, raise OCCL_VERSION_MINOR;
- a version is in occl.h, packaging/occl.pc and python/occl/__init__.py (//test/tools/programs:version_test);
- CHANGELOG.md says what users notice, python/occl/_abi.py has the structures, too;
- `make abi` writes packaging/abi.txt anew."""


def main() -> int:
    committed, today = (pathlib.Path(path).read_text(encoding="utf-8").splitlines() for path in sys.argv[1:])
    assert sum(line.startswith("function occl") for line in today) > 50, "the functions are not found"
    assert sum(line.startswith("struct occl") for line in today) >= 7, "the structures are not found"
    if committed == today:
        return 0
    print("\n".join(difflib.unified_diff(committed, today, "packaging/abi.txt", "today", n=2, lineterm="")))
    print(WHAT_TO_DO)
    return 1


if __name__ == "__main__":
    sys.exit(main())
