#!/usr/bin/env python3
"""The driver: its words, what a program of NCCL's gets, exit statuses, signals, errors."""

import os
import re
import signal
import subprocess
import sys
import tempfile

OCCL, PROGRAM, NETWORK_PLUGIN, OTHER_VERSION = (os.path.abspath(path) for path in sys.argv[1:5])
NOTICE = "has made no NCCL communicator"


def occl(*words: str, status: int = 0, **settings: str) -> tuple[str, str]:
    done = subprocess.run([OCCL, *words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **settings})
    assert done.returncode == status, (words, done)
    return done.stdout, done.stderr


def test_words() -> None:
    for word in ("run", "compile", "view", "nccl", "lsp", "doctor", "topo", "tune"):
        assert word in occl("--help")[0]
        assert "Usage" in occl(word, "--help")[0], word
    assert "Usage" in occl(status=2)[0]
    assert re.fullmatch(r"occl \d+\.\d+\n", occl("--version")[0])
    assert "there is no command 'nothing'" in occl("nothing", status=2)[1]


def test_compile_and_run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = os.path.join(folder, "ring.plan.json")
        occl("compile", "algorithms/allreduce/ring.coll", "-D", "ranks=2", "-o", plan)
        occl("run", "--plan", plan, "--count", "100", "--iterations", "2")
        assert occl("view", plan)[0] == os.path.join(folder, "ring.plan.html\n")
    assert occl("run", "-n", "2", "--", "false", status=1)


def test_nccl() -> None:
    out, error = occl("nccl", "--host", PROGRAM)
    assert out == "5\n" and NOTICE not in error, (out, error)
    # A program without it has none, and a child of a child has.
    assert subprocess.run([PROGRAM], capture_output=True).returncode == 3
    out, error = occl("nccl", "--host", "--", "sh", "-c", f"sh -c '{PROGRAM}; true'")
    assert out == "5\n" and NOTICE not in error, (out, error)
    assert NOTICE in occl("nccl", "sh", "-c", "true")[1]
    assert NOTICE in occl("nccl", "env", "-u", "LD_PRELOAD", PROGRAM, status=3)[1]
    # Options of the program are its own.
    assert occl("nccl", "echo", "--host", "-x")[0] == "--host -x\n"


def test_statuses_and_errors() -> None:
    occl("nccl", "sh", "-c", "exit 7", status=7)
    occl("nccl", "sh", "-c", "kill -9 $$", status=128 + 9)
    error = occl("nccl", "/no/such/program", status=127)[1]
    assert "/no/such/program: No such file" in error and NOTICE not in error, error
    assert "Permission denied" in occl("nccl", "/etc/passwd", status=126)[1]
    assert "no program to run" in occl("nccl", status=2)[1]
    assert "--wrong" in occl("nccl", "--wrong", "true", status=2)[1]
    error = occl("nccl", "true", status=1, OCCL_NCCL_LIBRARY="/no/library")[1]
    assert "/no/library" in error and "make install" in error, error


def test_other_preloads_stay() -> None:
    out = occl("nccl", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD="libm.so.6")[0]
    assert out.strip().endswith("libnccl.so.2:libm.so.6"), out


def test_variables_for_python_without_preload_are_set() -> None:
    out = occl("nccl", "sh", "-c", "echo $OCCL_NCCL_PRELOAD $OCCL_NCCL_LIBRARY")[0]
    assert out.startswith("1 /") and out.endswith("/libnccl.so.2\n"), out


def test_cuda_has_connections_for_many_streams() -> None:
    command = ("nccl", "sh", "-c", "echo $CUDA_DEVICE_MAX_CONNECTIONS")
    assert occl(*command)[0] == "32\n"
    assert occl(*command, CUDA_DEVICE_MAX_CONNECTIONS="1")[0] == "1\n"


def test_it_is_before_every_process_and_needs_no_library() -> None:
    symbols = subprocess.run(["nm", OCCL], capture_output=True, text=True).stdout
    headers = subprocess.run(["readelf", "-lW", OCCL], check=True, capture_output=True, text=True)
    assert "INTERP" not in headers.stdout or "san_init" in symbols


def test_signals_are_passed_on() -> None:
    program = "trap 'echo ended; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen([OCCL, "nccl", "sh", "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "ended\n"
        assert process.wait(60) == 5


def test_signals_that_only_this_process_gets_are_passed_on() -> None:
    # As of a supervisor, or of Popen.send_signal: the command is not in the way of those.
    program = ("import signal, sys, time\n"
               "def end(number, frame): print('ended', number); sys.exit(5)\n"
               "for each in (signal.SIGINT, signal.SIGQUIT): signal.signal(each, end)\n"
               "print('ready', flush=True)\n"
               "while True: time.sleep(0.05)")
    for number in (signal.SIGINT, signal.SIGQUIT):
        with subprocess.Popen([OCCL, "nccl", sys.executable, "-c", program], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as process:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
            assert process.stdout.readline() == f"ended {int(number)}\n"
            assert process.wait(60) == 5
    # One that is ignored from the start is ignored on both sides.
    with subprocess.Popen([OCCL, "nccl", "sh", "-c", "echo ready; read line; echo $line"], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                           signal.SIG_IGN)) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate("on\n", 60)[0] == "on\n"
        assert process.returncode == 0


def test_doctor() -> None:
    out = occl("doctor")[0]
    assert "2 processes: right" in out and "libnccl.so.2" in out and "BROKEN" not in out, out
    assert "CUDA" in out and "RDMA" in out and "TCP" in out, out
    assert "OCCL_NSOCKS is 'x'" in occl("doctor", status=1, OCCL_NSOCKS="x")[0]
    assert "network plugin" not in out, out


def test_doctor_lists_devices_of_a_network_plugin() -> None:
    out = occl("doctor", OCCL_NET=f"tcp,ncclnet:{NETWORK_PLUGIN}", OCCL_TEST_PLUGIN="devices=2")[0]
    assert "version 12: sock0 (10000 Mbit/s), sock1 (10000 Mbit/s)" in " ".join(out.split()), out
    assert "cannot open" in " ".join(occl("doctor", OCCL_NET="ncclnet:/nowhere.so")[0].split())


def rows_of_doctor(status: int = 0, **settings: str) -> dict[str, str]:
    """What it says of each thing, with its finding and its advice, in one line."""
    rows: dict[str, str] = {}
    for line in occl("doctor", status=status, **settings)[0].splitlines():
        if not line.startswith(" "):
            what = line[9:30].rstrip()
            rows[what] = rows.get(what, "") + f"{line[:9].rstrip()}: {line[30:].strip()}"
        else:
            rows[what] += " " + line.strip()
    return rows


def test_doctor_compares_versions() -> None:
    version = occl("--version")[0].split()[1]
    rows = rows_of_doctor()
    assert rows["OCCL"] == f"ok: {version}", rows
    assert re.fullmatch(rf"ok: {version}, \S+/liboccl.so.0", rows["liboccl.so.0"]), rows
    other = rows_of_doctor(status=1, OCCL_LIBRARY=OTHER_VERSION)["liboccl.so.0"]
    assert other.startswith(f"BROKEN: 7.3, {OTHER_VERSION} -> install all of one version"), other
    missing = rows_of_doctor(status=1, OCCL_LIBRARY="/nowhere.so")["liboccl.so.0"]
    assert missing.startswith("BROKEN: /nowhere.so: cannot open") and "unset" in missing, missing


def test_doctor_knows_packages_of_python() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}:{os.environ['PATH']}"
        python = os.path.join(folder, "python3")
        for packages, status, wanted in (
                ("occl 7.3.0", 1, {"Python package": "BROKEN: 7.3.0 -> install all", "PyTorch": "ok: python3 has none"}),
                ("torch 2.5.1", 0, {"PyTorch": "limited: 2.5.1 -> OCCL's backend is for PyTorch 2.6"}),
                ("torch 2.10.0+cpu", 0, {"PyTorch": "ok: 2.10.0+cpu, for OCCL's backend on CPUs; on GPUs"}),
                ("torch 2.11.0", 0, {"PyTorch": "ok: 2.11.0"}),
                ("nvidia-nccl-cu13 2.28.3", 0, {"another NCCL": "ok: 2.28.3, Python package nvidia-nccl-cu13"})):
            with open(python, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\necho {packages}\n")
            os.chmod(python, 0o755)
            rows = rows_of_doctor(status=status, PATH=path)
            for what, text in wanted.items():
                assert rows[what].startswith(text), (packages, rows)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        print(name, flush=True)
        test()
