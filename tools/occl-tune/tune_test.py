#!/usr/bin/env python3
"""What `occl tune` writes follows from what it has measured, and the library uses it: an all-reduce of another program has
the plan of the table."""

import os
import re
import subprocess
import sys
import tempfile

TUNE, DOCTOR = (os.path.abspath(path) for path in sys.argv[1:3])


def tune(*words: str, status: int = 0) -> str:
    done = subprocess.run([TUNE, *words], capture_output=True, text=True, timeout=200)
    assert done.returncode == status, (words, done)
    return done.stdout if status == 0 else done.stderr


def plans_of_doctor(table: str) -> str:
    """What it says of the plans for its all-reduce of 4 MiB on two processes."""
    done = subprocess.run([DOCTOR], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "OCCL_PLAN_TABLE": table, "OCCL_DEBUG": "info"})
    return done.stdout + done.stderr


def test_rows_are_the_fastest() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.table"
        out = tune("-n", "2", "--collectives", "allreduce,alltoall", "--max-bytes", "16384", "--rounds", "1", "-o", path)
        assert f"OCCL_PLAN_TABLE={path}" in out
        with open(path, encoding="utf-8") as file:
            text = file.read()
        measured = re.findall(r"^# (\w+) 2 (\d+):((?: \d+ [\d.]+)+) us, library (\d+)$", text, re.M)
        assert [int(size) for name, size, *_ in measured if name == "allreduce"] == [64, 256, 1024, 4096, 16384], text
        rows = re.findall(r"^host-ordinary (\w+) 2 (\S+) (\S+) (\d+)$", text, re.M)
        for name, size, times, library in measured:
            times = dict(zip(times.split()[::2], map(float, times.split()[1::2])))
            chosen = next(number for of, limit, _, number in rows
                          if of == name and int(size) <= int(limit))
            # As printed, to 0.1 us.
            assert times[chosen] <= min(times.values()) / 0.95 + 0.3, (name, size, times, rows)
            assert chosen == library or times[chosen] < times[library] + 0.1, (name, size, times, rows)
        assert [row[1] for row in rows if row[0] == "allreduce"][-1] == "16384", "larger ones were not measured"
        said = plans_of_doctor(path)
        assert "which the library has for parts" in said and "2 processes: right" in said, said


def test_the_library_uses_it() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.table"
        tune("-n", "2", "--collectives", "allreduce,allreduce", "--max-bytes", str(4 << 20), "--rounds", "1", "-o", path)
        with open(path, encoding="utf-8") as file:
            rows = re.findall(r"^host-ordinary (\w+) 2 (\S+) (\S+) (\d+)$", file.read(), re.M)
        limits = [int(limit) for _, limit, *_ in rows]
        assert limits == sorted(set(limits)) and limits[-1] == 4 << 20, rows
        said = plans_of_doctor(path)
        assert f"plan {rows[-1][3]}, {rows[-1][2]}" in said and f"which {path} has for parts" in said, said
        assert "2 processes: right" in said, said


def test_a_table_changes_the_plan() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/forced.table"
        for number, algorithm in ((2, "one_shot"), (3, "all_pairs")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"OCCL plan table 1\nhost-ordinary allreduce 2 - {algorithm} {number}\n")
            said = plans_of_doctor(path)
            assert f"host-ordinary: plan {number}, {algorithm}" in said and "2 processes: right" in said, said
        said = plans_of_doctor(f"{folder}/missing.table")
        assert "missing.table', which cannot be read" in said and "BROKEN" in said, said


def test_errors() -> None:
    assert "--ranks" in tune("-n", "1", status=2)
    assert "--collectives" in tune("--collectives", "sum", status=2)
    # Before anything is measured, whose rows would be on standard output.
    done = subprocess.run([TUNE, "--collectives", "broadcast", "--max-bytes", "64", "--rounds", "1", "-o", "missing/a.table"],
                          capture_output=True, text=True, timeout=200)
    assert done.returncode == 1 and done.stderr == "occl tune: cannot write 'missing/a.table'\n" and done.stdout == "", done


for name, test in list(globals().items()):
    if name.startswith("test_"):
        print(name, flush=True)
        test()
