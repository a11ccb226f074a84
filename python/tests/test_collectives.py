"""Collectives between ranks that are threads, on arrays of numpy."""

from __future__ import annotations

import array
import re
import time

import numpy as np
import pytest

import occl

TYPES = ["uint8", "int8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_all_reduce(job, size):
    results = job(size)(lambda comm: comm.all_reduce(np.arange(1000.0) + comm.rank))
    wanted = sum(np.arange(1000.0) + rank for rank in range(size))
    for result in results:
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "avg"])
def test_types_and_operations(job, dtype, op):
    inputs = [np.array([2 + rank, 4, 6], dtype=dtype) for rank in range(2)]
    wanted = {"sum": [5, 8, 12], "prod": [6, 16, 36], "min": [2, 4, 6], "max": [3, 4, 6],
              "avg": [2 if "int" in dtype else 2.5, 4, 6]}[op]
    for result in job(2)(lambda comm: comm.all_reduce(inputs[comm.rank], op)):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_ml_dtypes(job, name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    for result in job(2)(lambda comm: comm.all_reduce(np.full(5, 1.5, dtype))):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result.astype("f4"), 3)


def test_bool_is_any_and_all(job):
    inputs = [np.array([True, False, False]), np.array([True, True, False])]
    job = job(2)
    assert job(lambda c: c.all_reduce(inputs[c.rank], "max").tolist()) == [[True, True, False]] * 2
    assert job(lambda c: c.all_reduce(inputs[c.rank], "min").tolist()) == [[True, False, False]] * 2
    for outcome in job.outcomes(lambda comm: comm.all_reduce(inputs[comm.rank])):
        assert isinstance(outcome, occl.InvalidArgumentError) and "no sum" in str(outcome)


def test_parts_lie_along_the_first_dimension(job):
    job = job(4)
    for result in job(lambda comm: comm.all_gather(np.full((1, 2), comm.rank))):
        np.testing.assert_array_equal(result, [[0, 0], [1, 1], [2, 2], [3, 3]])
    assert [result.tolist() for result in job(lambda c: c.reduce_scatter(np.arange(8)))] == [
        [0, 4], [8, 12], [16, 20], [24, 28]]
    assert [r.tolist() for r in job(lambda c: c.all_to_all(np.arange(4) + 10 * c.rank))] == [
        [rank, rank + 10, rank + 20, rank + 30] for rank in range(4)]
    assert [r.tolist() for r in job(lambda comm: comm.all_gather(np.array(comm.rank)))] == [
        [0, 1, 2, 3]] * 4


@pytest.mark.parametrize("root", [0, 2, np.int64(1)])
def test_rooted_ones(job, root):
    job = job(3)
    for result in job(lambda comm: comm.broadcast(np.full(4, comm.rank), root)):
        np.testing.assert_array_equal(result, root)
    reduced = job(lambda comm: comm.reduce(np.full(2, comm.rank + 1), root))
    gathered = job(lambda comm: comm.gather(np.full(1, comm.rank), root))
    for rank in range(3):
        if rank == root:
            assert reduced[rank].tolist() == [6, 6] and gathered[rank].tolist() == [0, 1, 2]
        else:
            assert reduced[rank] is None and gathered[rank] is None

    def scatter(comm):
        source = np.arange(6) if comm.rank == root else None
        return comm.scatter(source, root, out=np.empty(2, int)).tolist()

    assert job(scatter) == [[0, 1], [2, 3], [4, 5]]


def test_outputs_are_those_that_are_given(job):
    def body(comm):
        source, target = np.ones(4), np.empty((2, 2))
        assert comm.all_reduce(source, out=target) is target
        assert comm.all_reduce(source, out=source) is source
        return target.sum() + source.sum()

    assert job(2)(body) == [16, 16]


def test_any_object_with_a_buffer_is_taken(job):
    def body(comm):
        numbers = array.array("d", [1, 2, 3])
        comm.all_reduce(numbers, out=numbers)
        data = bytearray(b"\1\2")
        comm.all_reduce(memoryview(data), "max", out=data)
        return numbers.tolist(), bytes(data), comm.all_gather(b"ab").tobytes()

    assert job(2)(body) == [([2, 4, 6], b"\1\2", b"abab")] * 2


def test_no_elements(job):
    for result in job(2)(lambda comm: comm.all_reduce(np.empty((0, 3)))):
        assert result.shape == (0, 3)


def test_scale_multiplies_a_ranks_input(job):
    results = job(2)(lambda c: c.call("all_reduce", np.ones(3), scale=float(c.rank + 1)).tolist())
    assert results == [[3, 3, 3]] * 2


def test_barrier(job):
    arrived = []

    def body(comm):
        arrived.append(comm.rank)
        comm.barrier()
        return len(arrived)

    assert job(4)(body) == [4] * 4


def test_ids_start_in_any_order(job):
    def body(comm):
        ids = list(range(40))
        np.random.default_rng(comm.rank).shuffle(ids)
        requests = {id: comm.start("all_reduce", np.full(100, id), id=id) for id in ids}
        return [requests[id].result()[0] for id in range(40)]

    assert job(3)(body) == [[3 * id for id in range(40)]] * 3


def test_dropped_requests_keep_their_arrays_and_end(job):
    def body(comm):
        out = [np.empty(1000) for _ in range(100)]
        for id, target in enumerate(out):
            comm.start("all_reduce", np.full(1000, float(id)), out=target, id=id)
        comm.start("all_reduce", np.ones(1), id=200).wait()
        for request in list(comm._requests.values()):
            request.wait()
        return len(comm._requests), [target[7] for target in out]

    assert job(2)(body) == [(0, [2.0 * id for id in range(100)])] * 2


def test_dropped_requests_end_behind_some_that_do_not(job):
    """The oldest ones are of ids that the other rank starts at last."""
    def body(comm):
        def start(id):
            return comm.start("all_reduce", np.full(10, float(id)), id=id)

        late = [start(id) for id in range(24)] if comm.rank == 0 else []
        for id in range(24, 124):
            start(id)
        while comm.stats().completed < 100:
            time.sleep(0.001)
        for id in range(124, 224):
            start(id).wait()
        left = len(comm._requests)
        for request in late or [start(id) for id in range(24)]:
            request.wait()
        return left

    left = job(2)(body)
    assert left[0] == 24 and left[1] <= 16, left


def test_requests_can_be_tested(job):
    def body(comm):
        request = comm.start("all_reduce", np.ones(3), id=0)
        while not request.test():
            pass
        assert "complete" in repr(request)
        request.wait()
        return request.result().tolist()

    assert job(2)(body) == [[2, 2, 2]] * 2


def test_split_and_shrink(job):
    def body(comm):
        with comm.split(comm.rank % 2, key=-comm.rank if comm.rank < 0 else 0) as half:
            found = (half.rank, half.size, half.all_reduce(np.array([comm.rank]))[0])
        assert comm.split(None) is None
        return found

    job = job(4)
    assert job(body) == [(0, 2, 2), (0, 2, 4), (1, 2, 2), (1, 2, 4)]

    def smaller(comm):
        if comm.rank == 1:
            return None
        with comm.shrink([1]) as rest:
            return rest.rank, rest.size, rest.all_reduce(np.array([comm.rank]))[0]

    assert job(smaller) == [(0, 3, 5), None, (1, 3, 5), (2, 3, 5)]


def test_insight(job, tmp_path):
    def body(comm):
        comm.trace_start(tmp_path / "trace.%r.json")
        comm.all_reduce(np.ones(1000))
        comm.trace_stop()
        stats, of_calls = comm.stats(), comm.collective_stats()
        assert stats.completed == of_calls.completed == 1 and stats.bytes_sent > 0
        assert set(of_calls.wait_seconds) >= {"data", "credit"}
        assert comm.failure() == ""
        return comm.report()

    for report in job(2)(body):
        assert "rank 0" in report
    assert (tmp_path / "trace.1.json").stat().st_size > 0


def read_exposition(text):
    """Prometheus' text format: a sample for each name and set of labels, under a head of its name."""
    samples, kinds, name = {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in kinds and len(line.split(" ", 3)[3]) > 0
        elif line.startswith("# TYPE "):
            assert line.split()[2] == name
            kinds[name] = line.split()[3]
        else:
            found = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} (\S+)', line)
            assert found and found[1] == name, line
            assert (kinds[name] == "counter") == name.endswith("_total"), line
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2]))
            assert (name, *sorted(labels.items())) not in samples, line
            samples[(name, *sorted(labels.items()))] = float(found[3])
    assert text.endswith("\n")
    return samples


def test_metrics_are_the_counters(job):
    def body(comm):
        before = read_exposition(comm.metrics())
        assert not [name for name, *_ in before if name == "occl_submitted_total"]
        for _ in range(3):
            comm.all_reduce(np.ones(1000))
        comm.start("all_gather", np.ones(10), id=7).wait()
        comm.barrier()
        samples = read_exposition(comm.metrics(job='a "b"\\\n'))
        mine = (("job", r'a \"b\"\\\n'), ("rank", str(comm.rank)), ("size", "2"))
        sums = {}
        for id in (None, 7):
            stats = comm.collective_stats(id)
            of = tuple(sorted((*mine, ("id", "calls" if id is None else "7"))))
            for field in ("submitted", "completed", "failed", "bytes_sent", "finish_seconds"):
                assert samples[(f"occl_{field}_total", *of)] == getattr(stats, field), (id, field)
            for reason, seconds in stats.wait_seconds.items():
                of = tuple(sorted((*mine, ("id", "calls" if id is None else "7"), ("reason", reason))))
                assert samples[("occl_wait_seconds_total", *of)] == seconds
            sums[id] = stats.completed
        assert sums[None] >= 3 and sums[7] == 1
        assert samples[("occl_restarts_total", *mine)] >= 0
        # Transfers count for the rank alone.
        sent = samples[("occl_rank_bytes_sent_total", *mine)]
        assert sent >= sum(samples[name] for name in samples if name[0] == "occl_bytes_sent_total")
        if comm.rank == 0:
            comm.send(np.ones(5000), 1)
        else:
            comm.recv(np.empty(5000), 0)
        comm.barrier()
        after = read_exposition(comm.metrics(job='a "b"\\\n'))
        if comm.rank == 0:
            assert after[("occl_rank_bytes_sent_total", *mine)] >= sent + 40000
        for wrong in ({"rank": 3}, {"id": 1}, {"__name__": "x"}, {"a-b": 1}):
            with pytest.raises(ValueError, match="is no name for a label"):
                comm.metrics(**wrong)

    job(2)(body)
