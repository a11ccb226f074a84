#!/usr/bin/env python3
"""What `occl tune` writes follows from what it has measured, and the library uses it: an all-reduce of another program has
the plan of the table."""

import os
import re
import resource
import subprocess
import sys
import tempfile

TUNE, DOCTOR = (os.path.abspath(path) for path in sys.argv[1:3])
SMALL = ("--collectives", "broadcast", "--max-bytes", "64", "--rounds", "1")


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
    done = subprocess.run([TUNE, *SMALL, "-o", "missing/a.table"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr == "occl tune: cannot write 'missing/a.table': No such file or directory\n", done


def test_a_failed_measurement_leaves_no_table() -> None:
    with tempfile.TemporaryDirectory() as folder:
        # No rank can have a table of its own without a file for it.
        done = subprocess.run([TUNE, *SMALL, "-o", f"{folder}/a.table"], capture_output=True, text=True, timeout=200,
                              restore_signals=False,  # SIGXFSZ is ignored
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        assert done.returncode == 1 and "no temporary file" in done.stderr, done
        assert os.listdir(folder) == []


def test_standard_output_and_pipes() -> None:
    with tempfile.TemporaryDirectory() as folder:
        printed = subprocess.run([TUNE, *SMALL, "-o", "-"], capture_output=True, text=True, timeout=200, cwd=folder)
        assert printed.returncode == 0 and os.listdir(folder) == [], printed
        assert re.search(r"\AOCCL plan table 1\nhost-ordinary broadcast 2 64 \w+ \d+\n\Z",
                         re.sub(r"^# .*\n", "", printed.stdout, flags=re.M)), printed
        # Its reader comes, and stays, until the table is there.
        os.mkfifo(f"{folder}/pipe")
        with subprocess.Popen(["cat", f"{folder}/pipe"], stdout=subprocess.PIPE, text=True) as reader:
            tune(*SMALL, "-o", f"{folder}/pipe")
            text = reader.communicate(timeout=200)[0]
        assert "OCCL plan table 1\nhost-ordinary broadcast 2 64" in re.sub(r"^# .*\n", "", text, flags=re.M), text


for name, test in list(globals().items()):
    if name.startswith("test_"):
        print(name, flush=True)
        test()
