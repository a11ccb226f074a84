#!/usr/bin/env python3
"""The programs that hang with other libraries (h*, s24), and wrong ones that must end with a report (u*), of run.py, with PyTorch's backend nccl over
NCCL and over OCCL's libnccl.so.2, and with the backend occl; prints one table.

    compare.py [--only COLUMN] [NAME]...       NAME: h4, s24, ...; COLUMN: nccl, drop-in or occl, once or more

OCCL_NCCL_LIBRARY: that libnccl.so.2. LIMIT: seconds for a program, of which hangs take all (60). TOTAL: what does not begin within so many is not run
(3000). With fewer GPUs than ranks NCCL is not run, as it refuses ranks that share one. Of NCCL all is recorded, nothing asserted. The status is 1 if a program does not end as it should with OCCL: the backend
ends all, libnccl.so.2 those that no stream of PyTorch's own holds up.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COLUMNS = ("nccl", "drop-in", "occl")
UNTIL = time.monotonic() + float(os.environ.get("TOTAL", "3000"))
# PyTorch's backend puts what is asynchronous into streams of its own, in which what comes later waits, as do cudaDeviceSynchronize and cudaFree; no
# library below it can help.
HELD_BY_PYTORCH = ("h4", "h5", "h6", "h10")
LINE = re.compile(r"(passed|FAILED|not run) hang/(\w+), ([\d.]+) s$")


def environment(column: str, report: str) -> dict[str, str]:
    of = dict(os.environ, BACKEND="occl" if column == "occl" else "nccl", PYTHONUNBUFFERED="1")
    library = of.pop("OCCL_NCCL_LIBRARY", "")
    of |= {"NCCL_NVLS_ENABLE": "0", "TOTAL": str(UNTIL - time.monotonic())}
    of["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "0"  # which takes longer than the programs
    if column == "drop-in":  # as `occl nccl` does
        of |= {"LD_PRELOAD": library, "OCCL_NCCL_LIBRARY": library, "OCCL_NCCL_REPORT": report, "OCCL_NCCL_FALLBACK": "0"}
        of.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    return of


def outcome_of(name: str, word: str, why: str) -> str:
    if word == "not run":
        return f"not run: {why}"
    if word == "passed":
        return "reports" if name[0] == "u" else "ends"
    if "are not over within" in why:
        return "hangs"
    return "ends, says nothing" if name[0] == "u" else "fails"


def run(column: str, names: list[str]) -> dict[str, str]:
    """The outcomes, by program."""
    found: dict[str, str] = {}
    with tempfile.NamedTemporaryFile() as report:
        command = [sys.executable, HERE / "run.py", *([f"hang/{name}" for name in names] or ["hang"])]
        process = subprocess.Popen(command, env=environment(column, report.name), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        last = None
        for line in process.stdout:
            print(f"{column}: {line}", end="", flush=True)
            if last:  # its first line says what is wrong
                found[last[2]] = outcome_of(last[2], last[1], line.strip())
            last = LINE.match(line)
        process.wait()
        used = Path(report.name).stat().st_size > 0
    if column == "drop-in" and found and not used:
        sys.exit("compare.py: no communicator was one of OCCL's libnccl.so.2")
    return found


def wrong(column: str, name: str, outcome: str) -> bool:
    if column == "nccl" or outcome in ("ends", "reports"):
        return False
    return column == "occl" or name not in HELD_BY_PYTORCH


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=COLUMNS)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    columns = [column for column in COLUMNS if column in (asked.only or COLUMNS)]
    if "drop-in" in columns and not Path(os.environ.get("OCCL_NCCL_LIBRARY", "")).is_file():
        parser.error("OCCL_NCCL_LIBRARY names no libnccl.so.2")
    table = {column: run(column, asked.names) for column in columns}
    names = {name: None for column in columns for name in table[column]}
    print("\n" + "program " + " ".join(f"{column:24}" for column in columns))
    for name in names:
        print(f"{name:7} " + " ".join(f"{table[column].get(name, 'not run: no time'):24}" for column in columns))
    failures = [f"{name} with {column}: {outcome}" for column in columns for name, outcome in table[column].items()
                if wrong(column, name, outcome) and not outcome.startswith("not run")]
    for failure in failures:
        print("FAILED " + failure)
    ended = sum(outcome in ("ends", "reports") for column in columns for outcome in table[column].values())
    print(f"{ended} as they should, {len(failures)} failed")
    return 1 if failures or not names else 0


if __name__ == "__main__":
    sys.exit(main())
