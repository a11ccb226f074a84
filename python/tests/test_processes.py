"""Ranks that are processes: as they are started, interrupted, forked and killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from conftest import PATIENCE, hear_interrupts

import occl

# A body that waits for a rank that does nothing, and says how it ended.
WAIT = """
    try:
        if comm.rank == 0:
            {call}
        else:
            time.sleep(600)
    except BaseException as error:
        print(type(error).__name__, error, flush=True)
    comm.close()
    """
CALLS = {
    "call": "comm.all_reduce(np.ones(3))",
    "wait": "comm.start('all_reduce', np.ones(3), id=1).wait()",
    "recv": "comm.recv(np.ones(3), 1)",
    "group": "\n            with occl.group(): comm.recv(np.ones(3), 1)",
    "split": "comm.split(0)",
    "close": "request = comm.start('all_reduce', np.ones(3), id=1); comm.close()",
}


def test_collectives(ranks):
    job = ranks(4, """
        with comm:
            print(comm.all_reduce(np.arange(1000.0) + comm.rank)[999], flush=True)
            print(comm.all_gather(np.array([comm.rank])).tolist(), flush=True)
        """)
    for status, out, err in job.end():
        assert (status, out, err) == (0, "ready\n4002.0\n[0, 1, 2, 3]\n", "")


@pytest.mark.parametrize("variables", ["occl-run", "torchrun"])
def test_the_environment_says_who(variables):
    processes = []
    for rank in range(2):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("OCCL_") or name in ("OCCL_LIBRARY", "OCCL_COMPILER")}
        environment["PYTHONPATH"] = str(Path(occl.__file__).parent.parent)
        if variables == "torchrun":
            environment |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                            "MASTER_ADDR": "localhost", "MASTER_PORT": str(os.getpid())}
        else:
            environment |= {"OCCL_RANK": str(rank), "OCCL_SIZE": "2",
                            "OCCL_JOB": f"pytest-{os.getpid()}"}
        code = "import occl; c = occl.init(); c.barrier(); print(c); c.close()"
        processes.append(subprocess.Popen([sys.executable, "-c", code], env=environment, text=True,
                                          stdout=subprocess.PIPE))
    outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    assert outputs == [f"<occl.Communicator rank {rank} of 2>\n" for rank in range(2)]


@pytest.mark.parametrize("name", CALLS)
def test_control_c_in_the_middle_of_a_wait(ranks, name):
    job = ranks(2, WAIT.format(call=CALLS[name]))
    job.wait_until_ready()
    time.sleep(1)
    job.processes[0].send_signal(signal.SIGINT)
    out, err = job.processes[0].communicate(timeout=PATIENCE)
    assert out.startswith("KeyboardInterrupt") and not err
    job.kill()


def test_control_c_while_ranks_are_missing(ranks):
    """As a body of one process, which joins a communicator of two."""
    head = """
        import occl, os, sys
        print("ready", flush=True)
        """
    job = ranks(1, """
        try:
            occl.init(rank=0, size=2, name=sys.argv[3])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """, head=head)
    job.wait_until_ready()
    time.sleep(1)
    begin = time.monotonic()
    job.processes[0].send_signal(signal.SIGINT)
    assert job.end() == [(0, "interrupted\n", "")]
    assert time.monotonic() - begin < 25  # without it, the timeout is 30 s


def test_control_c_that_has_been_handled_is_of_no_matter_to_the_next_call(ranks):
    job = ranks(2, """
        comm.barrier()
        for _ in range(20):
            try:
                if comm.rank == 0:
                    signal.raise_signal(signal.SIGINT)
                    time.sleep(600)
            except KeyboardInterrupt:
                pass
            if comm.rank == 1:
                time.sleep(0.02)
            comm.all_reduce(np.ones(3))
        print("done", flush=True)
        comm.close()
        """)
    for status, out, err in job.end():
        assert (status, out, err) == (0, "ready\ndone\n", "")


def test_control_c_of_another_handler_waits(ranks):
    """Who handles SIGINT keeps the communicator."""
    job = ranks(2, """
        caught = []
        signal.signal(signal.SIGINT, lambda *_: caught.append(1))
        if comm.rank == 1:
            time.sleep(3)
        print(comm.all_reduce(np.ones(3))[0], len(caught), flush=True)
        comm.close()
        """)
    job.wait_until_ready()
    time.sleep(1)
    job.processes[0].send_signal(signal.SIGINT)
    assert [out for _, out, _ in job.end()] == ["2.0 1\n", "2.0 0\n"]


@pytest.mark.parametrize("name", ["call", "wait", "recv", "group", "split"])
def test_a_rank_that_is_killed(ranks, name):
    job = ranks(2, WAIT.format(call=CALLS[name]))
    job.wait_until_ready()
    time.sleep(0.5)
    job.processes[1].kill()
    status, out, err = job.end()[0]
    assert out.startswith("PeerFailedError") and "rank 1" in out and status == 0, (out, err)


def test_a_rank_that_ends_without_a_word(ranks):
    job = ranks(2, WAIT.format(call=CALLS["call"]).replace("time.sleep(600)", "sys.exit(0)"))
    outputs = [out for _, out, _ in job.end()]
    assert "PeerFailedError" in outputs[0]


def test_the_rest_goes_on_without_it(ranks):
    job = ranks(3, """
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            comm.barrier()
        except occl.PeerFailedError:
            with comm.shrink(timeout=60) as rest:
                print(rest.size, rest.all_reduce(np.array([comm.rank]))[0], flush=True)
        comm.close()
        """)
    outputs = [out for _, out, _ in job.end()]
    assert outputs[0] == outputs[2] == "ready\n2 2\n"


def test_fork_after_init(ranks):
    job = ranks(2, """
        request = comm.start('all_reduce', np.ones(3), id=1)
        child = os.fork()
        if child == 0:
            try:
                comm.barrier()
            except occl.InvalidArgumentError as error:
                os.write(1, b"child: refused\\n")
            comm.abort()
            comm.close()
            comm.close()
            # A communicator of its own is another matter.
            with occl.init_all(1)[0] as own:
                own.barrier()
            os.write(1, b"child: closed\\n")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        request.wait()
        print(comm.all_reduce(np.ones(3))[0], flush=True)
        comm.close()
        """)
    for status, out, err in job.end():
        assert out == "ready\nchild: refused\nchild: closed\n2.0\n" and status == 0, (out, err)


def test_fork_with_partitioned_requests(ranks):
    """Of the child they are closed, whatever a thread does with them in the parent."""
    job = ranks(2, """
        field = np.arange(8.0) if comm.rank == 0 else np.zeros(8)
        made = comm.psend(field, 4, 1) if comm.rank == 0 else comm.precv(field, 4, 0)
        idle = comm.psend(field.copy(), 4, 1 - comm.rank, 1)
        with made as request:
            request.start()
            waits = threading.Thread(target=request.wait)
            waits.start()
            while not request._users:
                time.sleep(0.001)
            child = os.fork()
            if child == 0:
                with request:
                    pass
                idle.close()
                try:
                    request.ready(0)
                except occl.ClosedError:
                    os.write(1, b"child: refused\\n")
                comm.close()
                os.write(1, b"child: closed\\n")
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            comm.barrier()
            if comm.rank == 0:
                request.ready(range(4))
            waits.join()
        print(field[7], flush=True)
        comm.close()
        """)
    for status, out, err in job.end():
        assert out == "ready\nchild: refused\nchild: closed\n7.0\n" and status == 0, (out, err)


def test_multiprocessing_by_fork(ranks):
    """As loaders of data do: their ends are no matter to the ranks."""
    job = ranks(2, """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            squares = pool.map(abs, [-1, -2, -3])
        print(squares, comm.all_reduce(np.ones(3))[0], flush=True)
        comm.close()
        """)
    for status, out, err in job.end():
        assert out == "ready\n[1, 2, 3] 2.0\n" and status == 0, (out, err)


def test_no_close_at_the_end(ranks):
    """The program ends, and with a request in flight at once."""
    job = ranks(2, """
        comm.barrier()
        if comm.rank == 0:
            keep = comm.start('all_reduce', np.ones(1 << 20), id=1)
        """)
    begin = time.monotonic()
    for status, _, err in job.end():
        assert status == 0 and not err
    assert time.monotonic() - begin < 25  # a destroy that waits takes 30 s


def test_shared_memory_has_no_names_once_ranks_are_there(ranks):
    """So nothing of it is left, however a rank ends."""
    job = ranks(2, "time.sleep(600)")
    job.wait_until_ready()
    time.sleep(0.5)
    for process in job.processes:
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        named = [line for line in maps.splitlines() if re.search(r"/dev/shm/", line)]
        assert all(line.endswith("(deleted)") for line in named), named


def test_interrupts_are_of_no_matter_to_other_threads():
    """A thread that waits ends when the main thread leaves its block by the exception."""
    program = textwrap.dedent("""
        import threading, time, os, signal, sys
        import numpy as np, occl
        comms = occl.init_all(2)
        failures = []
        def wait():
            try:
                comms[0].barrier()
            except occl.AbortedError as error:
                failures.append(error)
        thread = threading.Thread(target=wait)
        try:
            with comms[0], comms[1]:
                thread.start()
                print("ready", flush=True)
                time.sleep(600)
        except KeyboardInterrupt:
            thread.join()
            print(len(failures), flush=True)
        """)
    environment = os.environ | {"PYTHONPATH": str(Path(occl.__file__).parent.parent)}
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                               env=environment, preexec_fn=hear_interrupts)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[0] == "1\n"
    finally:
        process.kill()
        process.communicate()


INTERRUPTED = """
    import os, random, signal, sys, threading, time
    import numpy as np, occl

    def calls(comm, peer):
        x = np.ones(16)
        while True:
            comm.all_reduce(x, "max", out=x)
            comm.start("all_reduce", x, op="max", out=np.empty(16), id=5).wait()
            with occl.group():
                comm.send(x, peer)
                comm.recv(np.empty(16), peer)

    def other(comm):
        try:
            calls(comm, 0)
        except occl.AbortedError:
            pass

    random.seed(1)
    for _ in range(60):
        comms = occl.init_all(2)
        thread = threading.Thread(target=other, args=(comms[1],))
        killer = threading.Timer(0.03 * random.random(), os.kill, (os.getpid(), signal.SIGINT))
        try:
            thread.start()
            killer.start()
            calls(comms[0], 1)
        except KeyboardInterrupt:
            comms[0].abort()
            thread.join()
            for comm in comms:
                comm.close()
    try:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        occl.run(occl.algorithms("allreduce/ring"), ranks=4, bytes="16MiB", iterations=1000000)
    except KeyboardInterrupt:
        print("done", len(os.listdir("/proc/self/task")) < 10)
    """


def test_control_c_at_any_moment():
    """Whatever the interpreter is at, the communicator can be closed and the next one works."""
    environment = os.environ | {"PYTHONPATH": str(Path(occl.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(INTERRUPTED)], env=environment,
                          capture_output=True, text=True, timeout=PATIENCE, preexec_fn=hear_interrupts)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done True\n", "")


def test_direct_plans_need_memory_that_ranks_share(ranks):
    job = ranks(2, """
        plan = occl.compile(occl.algorithms("allreduce/all_pairs"), ranks=2, direct=True)
        try:
            comm.call(plan, np.ones(1000))
        except occl.Error as error:
            print(type(error).__name__, error, flush=True)
        comm.close()
        """)
    for status, out, err in job.end():
        assert status == 0 and "occlMemAlloc" in out, (out, err)
