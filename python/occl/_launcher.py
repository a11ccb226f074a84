"""The commands occl and occl-run of the package."""

from __future__ import annotations

import os
import sys

from . import _library


def main() -> None:
    """Becomes occl-run, which starts the ranks of a job."""
    program = _library.native_file("occl-run", "OCCL_RUN", "tools/occl-run/occl-run")
    os.execv(program, ["occl-run", *sys.argv[1:]])


def driver() -> None:
    """Becomes occl, which has a word for each program."""
    program = _library.native_file("occl", "OCCL_DRIVER", "tools/occl/occl")
    os.execv(program, ["occl", *sys.argv[1:]])
