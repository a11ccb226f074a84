"""What a communicator is given that it cannot use: exceptions, and the ranks go on."""

from __future__ import annotations

import gc
import os
import threading
import warnings

import numpy as np
import pytest
from conftest import STAR

import occl


@pytest.fixture
def comm(job):
    """Rank 0 of 2; nobody else calls anything, so whatever were begun would hang."""
    return job(2, timeout=30).comms[0]


read_only = np.ones(4)
read_only.flags.writeable = False


@pytest.mark.parametrize("call, kind, text", [
    (lambda c: c.all_reduce([1, 2]), TypeError, "the array is a list"),
    (lambda c: c.all_reduce(None), TypeError, "the array is a NoneType"),
    (lambda c: c.all_reduce(1.5), TypeError, "the array is a float"),
    (lambda c: c.all_reduce("text"), TypeError, "the array is a str"),
    (lambda c: c.all_reduce(np.ones((4, 4))[:, 1]), ValueError, "not contiguous"),
    (lambda c: c.all_reduce(np.asfortranarray(np.ones((4, 4)))), ValueError, "not contiguous"),
    (lambda c: c.all_reduce(memoryview(bytes(8))[::2]), ValueError, "not contiguous"),
    (lambda c: c.all_reduce(np.ones(4, ">f4")), ValueError, "in the other byte order"),
    (lambda c: c.all_reduce(np.ones(4, complex)), ValueError, "no element type 'complex128'"),
    (lambda c: c.all_reduce(np.ones(4, "f2,f4")), ValueError, "no element type"),
    (lambda c: c.all_reduce(np.array(["a"])), ValueError, "no element type 'str"),
    (lambda c: c.all_reduce(np.array([object()])), ValueError, "no element type 'object'"),
    (lambda c: c.all_reduce(np.ones(4), "mean"), ValueError, "no operation 'mean'"),
    (lambda c: c.all_reduce(np.ones(4), out=np.ones(5)), ValueError, "out has 5 elements"),
    (lambda c: c.all_reduce(np.ones(4), out=np.ones(4, "f4")), ValueError, "float32"),
    (lambda c: c.all_reduce(np.ones(4), out=read_only), ValueError, "read-only"),
    (lambda c: c.all_reduce(np.ones(4), out=bytes(32)), ValueError, "read-only"),
    (lambda c: c.all_reduce(np.ones(4), out=np.ones((2, 4))[:, ::2]), ValueError, "out is not"),
    (lambda c: c.broadcast(read_only, 1), ValueError, "read-only"),
    (lambda c: c.broadcast(np.ones(4), 2), ValueError, "root is 2"),
    (lambda c: c.broadcast(np.ones(4), -1), ValueError, "root is -1"),
    (lambda c: c.broadcast(np.ones(4), "one"), TypeError, "root is a str"),
    (lambda c: c.broadcast(np.ones(4), None), TypeError, "root is a NoneType"),
    (lambda c: c.gather_v(np.ones(4), 2), ValueError, "root is 2"),
    (lambda c: c.reduce_scatter(np.ones(3)), ValueError, "cannot be divided among 2 ranks"),
    (lambda c: c.all_to_all(np.array(1)), ValueError, "cannot be divided"),
    (lambda c: c.scatter(None, 1), ValueError, "give out="),
    (lambda c: c.scatter(None, 0), TypeError, "NoneType"),
    (lambda c: c.send(np.ones(1), 2), ValueError, "dest is 2"),
    (lambda c: c.send(np.ones(1), 1.0), TypeError, "dest is a float"),
    (lambda c: c.recv(read_only, 1), ValueError, "read-only"),
    (lambda c: c.call("allreduec", np.ones(1)), ValueError, "no collective 'allreduec'"),
    (lambda c: c.call(7, np.ones(1)), TypeError, "the plan is a int"),
    (lambda c: c.call("all_reduce", np.ones(1), timeout="1"), TypeError, "timeout is a str"),
    (lambda c: c.call("all_reduce", np.ones(1), timeout=-1), ValueError, "timeout is -1"),
    (lambda c: c.call("all_reduce", np.ones(1, "i4"), scale=0.5), ValueError,
     "scale 0.5 is no int32"),
    (lambda c: c.call("all_reduce", np.ones(1, "u1"), scale=-1), ValueError, "scale -1 is no uint8"),
    (lambda c: c.call("all_reduce", np.ones(1, "i8"), scale=float("nan")), ValueError, "no int64"),
    (lambda c: c.call("all_reduce", np.ones(1, "i8"), scale=1e30), ValueError, "no int64"),
    (lambda c: c.call(occl.compile(STAR), np.ones(1)), ValueError, "is for 4 ranks"),
    (lambda c: c.call(occl.compile(STAR, ranks=2)), ValueError, "neither array nor out"),
    (lambda c: c.call(occl.compile(STAR, ranks=2), np.ones(4), count=5), ValueError,
     "reads 5 elements"),
    (lambda c: c.start("all_reduce", np.ones(1), id=-1), ValueError, "id is -1"),
    (lambda c: c.start("all_reduce", np.ones(1), id=1 << 63), ValueError, "id is"),
    (lambda c: c.start("all_reduce", np.ones(1), id="a"), TypeError, "id is a str"),
    (lambda c: c.start("all_reduce", np.ones(1), id=1, priority=1 << 31), ValueError,
     "priority is 2147483648"),
    (lambda c: c.start("all_reduce", np.ones(1), id=1, priority=1.5), TypeError,
     "priority is a float"),
    (lambda c: c.split(0, key=1 << 32), ValueError, "key is 4294967296"),
    (lambda c: c.split(0, key=-(1 << 31) - 1), ValueError, "key is -2147483649"),
    (lambda c: c.split(0, key="a"), TypeError, "key is a str"),
    (lambda c: c.split("red"), TypeError, "colour is a str"),
    (lambda c: c.split(-3), ValueError, "colour is -3"),
    (lambda c: c.split(0, tmeout=3), TypeError, "no setting 'tmeout'"),
    (lambda c: c.shrink([7], timeout=1), ValueError, "7"),
    (lambda c: c.collective_stats(12345), ValueError, "12345"),
    (lambda c: c.trace_stop(), ValueError, "trace"),
])
def test_calls(comm, call, kind, text):
    with pytest.raises(kind) as caught:
        call(comm)
    assert text in str(caught.value)
    if not isinstance(caught.value, TypeError):
        assert isinstance(caught.value, occl.InvalidArgumentError)


@pytest.mark.parametrize("call, kind, text", [
    (lambda: occl.init(rank=0, size=2), TypeError, "together"),
    (lambda: occl.init(rank=0, size=2, name="a b"), ValueError, "name"),
    (lambda: occl.init(rank=2, size=2, name="x"), ValueError, "rank"),
    (lambda: occl.init(rank=0, size=1, name=3), TypeError, "name is a int"),
    (lambda: occl.init(rank=0.5, size=1, name="x"), TypeError, "rank is a float"),
    (lambda: occl.init_all(0), ValueError, "1 to 1024"),
    (lambda: occl.init_all(2, workers="two"), TypeError, "workers is a str"),
    (lambda: occl.init_all(2, timeout=0), ValueError, "timeout is 0"),
    (lambda: occl.init_all(2, colour=1), TypeError, "no setting 'colour'"),
])
def test_communicators(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_no_environment_is_said(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("OCCL_RANK", "OCCL_SIZE", "RANK", "OMPI", "SLURM")):
            monkeypatch.delenv(name)
    with pytest.raises(occl.InvalidArgumentError, match="occl-run"):
        occl.init()


def test_missing_ranks_are_named():
    with pytest.raises(occl.TimeoutError, match="rank.* 1"):
        occl.init(rank=0, size=2, name=f"pytest-{os.getpid()}", timeout=0.2)


def test_after_close(comm):
    request = comm.start("all_reduce", np.ones(3), id=3)
    comm.abort()
    comm.close()
    comm.close()
    assert comm.is_closed and "closed" in repr(comm)
    for call in (comm.barrier, comm.report, comm.stats, request.wait, request.test,
                 comm.shrink, lambda: comm.split(0), lambda: comm.send(np.ones(1), 1),
                 lambda: comm.start("all_reduce", np.ones(1), id=1)):
        with pytest.raises(occl.ClosedError, match="has been closed"):
            call()
    comm.abort()


def test_close_while_another_thread_waits(job):
    job = job(2)
    outcome = []

    def wait():
        try:
            job.comms[0].barrier()
        except occl.Error as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not job.comms[0]._users:
        pass
    closer = threading.Thread(target=job.comms[0].close)
    closer.start()
    job.comms[1].abort()
    thread.join(60)
    closer.join(60)
    assert not thread.is_alive() and not closer.is_alive()
    assert isinstance(outcome[0], occl.AbortedError)


def test_close_aborts_what_does_not_end(job):
    """A call of another thread, without a deadline, of a rank that nobody else calls."""
    job = job(2)
    comm = job.comms[0]
    comm._patience = 0.2
    outcomes = []
    thread = threading.Thread(
        target=lambda: outcomes.extend(job.outcomes(lambda c: c is comm and c.barrier())))
    thread.start()
    while not comm._users:
        pass
    closer = threading.Thread(target=comm.close, daemon=True)
    closer.start()
    closer.join(60)
    assert not closer.is_alive(), "close() waits for ever"
    thread.join(60)
    assert isinstance(outcomes[0], occl.AbortedError)


def test_how_long_close_waits():
    assert [comm.close() or comm._patience for comm in (
        *occl.init_all(1), *occl.init_all(1, timeout=3), *occl.init_all(1, timeout=50),
        *occl.init_all(1, timeout=float("inf")))] == [30, 30, 50, 30]
    with occl.init_all(1, timeout=50)[0] as comm, comm.split(0) as part, part.shrink() as rest:
        with comm.split(0, timeout=40) as other:
            assert (part._patience, rest._patience, other._patience) == (50, 50, 40)


def test_dropped_objects_are_closed_and_said():
    with pytest.warns(ResourceWarning, match="was not closed"):
        comms = occl.init_all(2)
        comms[0].start("all_reduce", np.ones(3), id=1)
        del comms
        gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with occl.init_all(1)[0] as comm:
            comm.barrier()
        del comm
        gc.collect()


def test_ranks_that_disagree(job):
    job = job(2)
    outcomes = job.outcomes(lambda comm: comm.all_reduce(np.ones(3 + comm.rank)))
    for outcome in outcomes:
        assert isinstance(outcome, occl.MismatchError)
        assert "count 3" in str(outcome) and "count 4" in str(outcome)
    assert "count 3" in job.comms[0].failure()
    with pytest.raises(occl.MismatchError):
        job.comms[0].barrier()
    with pytest.raises(occl.MismatchError):
        job.comms[0].start("all_reduce", np.ones(3), id=1)


def test_transfers_that_disagree(job):
    def body(comm):
        if comm.rank == 0:
            comm.send(np.ones(3), 1)
            comm.barrier()
        comm.recv(np.ones(4), 0)

    for outcome in job(2).outcomes(body):
        assert isinstance(outcome, occl.MismatchError), outcome


def test_a_deadline(job):
    job = job(2)
    with pytest.raises(occl.TimeoutError, match="late one"):
        job.comms[0].call("all_reduce", np.ones(3), timeout=0.1, name="late one")
    with pytest.raises(occl.TimeoutError):
        job.comms[1].barrier()


def test_a_failed_request_says_so_each_time(job):
    job = job(2)
    request = job.comms[0].start("all_reduce", np.ones(3), id=1)
    job.comms[1].abort()
    for _ in range(2):
        with pytest.raises(occl.AbortedError):
            request.wait()
    assert request.test() and "failed" in repr(request)


def test_too_much_in_flight(job):
    comm = job(2, max_in_flight=4).comms[0]
    with pytest.raises(occl.AgainError):
        for id in range(100):
            comm.start("all_reduce", np.ones(3), id=id)
    comm.abort()


def test_out_of_a_block_by_an_exception_nothing_is_waited_for(job):
    job = job(2)
    with pytest.raises(KeyError):
        with job.comms[0] as comm:
            comm.start("all_reduce", np.ones(3), id=1)
            raise KeyError
    assert comm.is_closed


def test_no_library_is_said(monkeypatch):
    from occl import _library

    monkeypatch.setattr(_library, "_loaded", None)
    monkeypatch.setenv("OCCL_LIBRARY", "/nowhere")
    with pytest.raises(ImportError, match="OCCL_LIBRARY is '/nowhere', which is no file"):
        occl.init_all(2)
    monkeypatch.setenv("OCCL_LIBRARY", __file__)
    with pytest.raises(occl.LibraryError, match="cannot be loaded"):
        occl.init_all(2)
