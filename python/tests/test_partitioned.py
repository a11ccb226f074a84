"""Partitioned sends, receives and collectives."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import occl


def test_partitions_arrive_one_by_one(job):
    may_mark = [threading.Event() for _ in range(4)]

    def body(comm):
        field = np.zeros(48) if comm.rank else np.arange(48.0)
        if comm.rank == 0:
            with comm.psend(field, 4, dest=1, tag=7) as send:
                send.start()
                for p in (2, 0, 3, 1):
                    assert may_mark[p].wait(60)
                    send.ready(p)
                assert send.wait() is None
            return None
        with comm.precv(field, 4, source=0, tag=7) as receive:
            assert receive.output is field
            receive.start()
            for p in (2, 0, 3, 1):
                assert not receive.test()
                assert not receive.arrived(p)
                may_mark[p].set()
                while not receive.arrived(p):
                    pass
                assert (field[12 * p:12 * p + 12] == np.arange(12 * p, 12 * p + 12)).all()
            return receive.wait().tolist()

    assert job(2)(body)[1] == list(range(48))


@pytest.mark.parametrize("sent, received", [(33, 17), (1, 64), (64, 1), (5, 3)])
def test_sides_divide_as_they_like(job, sent, received):
    elements = sent * received * 2

    def body(comm):
        field = np.zeros(elements, np.int32)
        made = (comm.psend(field, sent, 1, partitions_per_message=min(sent, 4)) if comm.rank == 0
                else comm.precv(field, received, 0))
        with made as request:
            for epoch in range(3):
                request.start()
                if comm.rank == 0:
                    field[:] = np.arange(elements) + epoch
                    request.ready(range(sent // 2, sent))
                    request.ready(reversed(range(sent // 2)))
                elif epoch == 1:
                    request.prepare()
                request.wait()
                if comm.rank == 1:
                    assert (field == np.arange(elements) + epoch).all()

    job(2)(body)


def test_threads_mark(job):
    def body(comm):
        field = np.zeros(4000) if comm.rank else np.arange(4000.0)
        request = comm.precv(field, 10, 0) if comm.rank else comm.psend(field, 40, 1)
        request.start()
        if comm.rank == 0:
            threads = [threading.Thread(target=lambda t=t: request.ready(range(10 * t, 10 * t + 10)))
                       for t in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        request.wait()
        request.close()
        request.close()
        assert request.is_closed
        return field[-1]

    assert job(2)(body) == [3999, 3999]


INPUTS = {"all_reduce": 1, "all_gather": 1, "reduce_scatter": 3, "all_to_all": 3, "broadcast": 1,
          "reduce": 1, "gather": 1, "scatter": 3}


@pytest.mark.parametrize("name", INPUTS)
def test_collectives_are_those_of_call(job, name):
    """Ranks divide differently, and start two in opposite orders."""
    root = 1 if name in ("broadcast", "reduce", "gather", "scatter") else 0

    def body(comm):
        made = np.arange(12.0 * INPUTS[name]) * (comm.rank + 1)
        if name == "scatter" and comm.rank != 1:
            made, out = None, np.zeros(12)
        else:
            out = None
        expected = comm.call(name, None if made is None else made.copy(), root=root,
                             out=None if out is None else out.copy())
        requests = [comm.pcall(name, None if made is None else made.copy(), comm.rank + 2, root=root,
                               out=None if out is None else out.copy(), out_partitions=4)
                    for _ in range(2)]
        is_marking = name not in ("broadcast", "scatter") or comm.rank == 1
        for request in requests[::-1] if comm.rank == 1 else requests:
            request.start()
            if is_marking:
                request.ready(range(comm.rank + 2))
        for request in requests:
            result = request.wait()
            if expected is None:
                assert result is None
            else:
                np.testing.assert_array_equal(result, expected)
            request.close()

    job(3)(body)


def test_a_plan_of_ones_own(job):
    plan = occl.compile("""
    algorithm star(ranks: int = 2) implements allreduce(ranks, chunks = 1) {
      let sum = reduce(r in 0..ranks: input[r][0]).into(output[0][0]);
      for r in 1..ranks { sum.copy(output[r][0]); }
    }""")

    def body(comm):
        with comm.pcall(plan, np.full(100, comm.rank + 1), 10, rounds=5) as request:
            request.start()
            request.ready(9 - p for p in range(10))
            return set(request.wait().tolist())

    assert job(2)(body) == [{3}, {3}]


def test_requests_say_whether_anything_arrives_early(job):
    def body(comm):
        said = []
        for rounds in (1, 3):
            with comm.pcall("all_reduce", np.arange(60.0), 4, rounds=rounds) as request:
                said.append(request.arrives_early())
        return said

    assert job(2)(body) == [[False, True]] * 2


def test_mistakes_are_said(job):
    def body(comm):
        field = np.zeros(12, np.float32)
        for call, text in [
                (lambda: comm.psend(field, 5, 0), "12 elements are no 5 partitions"),
                (lambda: comm.psend(field, 0, 0), "12 elements are no 0 partitions"),
                (lambda: comm.psend(field, -1, 0), "partitions is -1"),
                (lambda: comm.psend(field, 4, 1), "dest is 1"),
                (lambda: comm.precv(field, 4, -1), "source is -1"),
                (lambda: comm.precv(field, 4, 0, -1), "tag is -1"),
                (lambda: comm.psend(field, 4, 0, partitions_per_message=9), "is 9 of 4 partitions"),
                (lambda: comm.pcall("all_reduce", field, 4, rounds=1000), "rounds is 1000"),
                (lambda: comm.pcall("all_reduce", field, 4, op="xor"), "no operation 'xor'")]:
            with pytest.raises(occl.InvalidArgumentError, match=text):
                call()
        with pytest.raises(TypeError):
            comm.psend(field, 2.0, 0)
        frozen = np.zeros(4)
        frozen.flags.writeable = False
        with pytest.raises(occl.InvalidArgumentError, match="read-only"):
            comm.precv(frozen, 2, 0)
        with comm.psend(field, 4, 0) as send, comm.precv(field.copy(), 4, 0) as receive:
            with pytest.raises(occl.InvalidArgumentError, match="has not been started"):
                send.ready(0)
            send.start()
            receive.start()
            for call, text in [
                    (lambda: send.start(), "has been started"),
                    (lambda: send.ready(4), "there is no partition 4 of 4"),
                    (lambda: send.ready(-1), "partition is -1"),
                    (lambda: send.ready([0, 1, 0]), "partition 0 is ready already"),
                    (lambda: send.arrived(0), "only partitions of a receive"),
                    (lambda: receive.ready(0), "only partitions of a send")]:
                with pytest.raises(occl.InvalidArgumentError, match=text):
                    call()
            with pytest.raises(TypeError):
                send.ready("x")
            send.ready([])
            send.ready(range(2, 4))
            receive.wait()
        with pytest.raises(occl.ClosedError):
            send.start()

    job(1)(body)


def test_an_exception_in_its_block_aborts(job):
    def body(comm):
        field = np.zeros(8)
        if comm.rank == 0:
            with pytest.raises(KeyError):
                with comm.psend(field, 4, 1) as send:
                    send.start()
                    send.ready(0)
                    raise KeyError
            return None
        with pytest.raises(occl.AbortedError):
            with comm.precv(field, 4, 0) as receive:
                receive.start()
                receive.wait()

    job(2)(body)


def test_a_timeout_names_what_is_missing(job):
    def body(comm):
        request = (comm.psend(np.zeros(8), 4, 1) if comm.rank == 0
                   else comm.precv(np.zeros(8), 4, 0))
        request.start()
        if comm.rank == 0:
            request.ready([0, 3])
        with pytest.raises(occl.TimeoutError, match="partition"):
            request.wait()
        request.close()

    job(2, timeout=0.3)(body)


def test_requests_that_are_left_end_with_the_communicator(job):
    def body(comm):
        left = comm.psend(np.zeros(8), 4, 0)
        assert not left.is_closed
        return left

    one = job(1)
    left = one(body)[0]
    one.close()
    assert left.is_closed
    left.close()
    with pytest.raises(occl.ClosedError):
        left.ready(0)


def test_an_exception_inside_of_a_call_leaves_it_closable(job):
    """KeyboardInterrupt may come between a call and the note that it has ended."""
    def body(comm):
        with comm.psend(np.zeros(8), 4, 0) as send:
            send._users.append(threading.get_ident())
        assert send.is_closed

    job(1)(body)


def test_an_exception_behind_a_start_leaves_it_started(job, monkeypatch):
    def body(comm):
        field, got = np.arange(8.0), np.zeros(8)
        send, receive = comm.psend(field, 4, 0), comm.precv(got, 4, 0)
        call = occl.partitioned.Partitioned._call

        def interrupted(part, *arguments, **options):
            call(part, *arguments, **options)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(occl.partitioned.Partitioned, "_call", interrupted)
            send.start()
        assert "started" in repr(send) and "not started" not in repr(send)
        with pytest.raises(occl.InvalidArgumentError, match="has been started"):
            send.start()
        assert "not started" not in repr(send)
        with pytest.raises(occl.ClosedError):
            closed = comm.psend(field, 4, 0, tag=1)
            closed.close()
            closed.start()
        assert not closed._is_active
        receive.start()
        send.ready(range(4))
        send.close()
        receive.close()
        assert (got == field).all()

    job(1)(body)


def test_tensors_of_torch(job):
    torch = pytest.importorskip("torch")

    def body(comm):
        with comm.pcall("all_reduce", torch.full((6,), comm.rank + 1.0), 3) as request:
            request.start()
            request.ready(range(3))
            result = request.wait()
        assert isinstance(result, torch.Tensor)
        return result.tolist()

    assert job(2)(body) == [[3.0] * 6] * 2
