"""Sends, receives, groups, and collectives with counts by rank."""

from __future__ import annotations

import numpy as np
import pytest

import occl


def test_send_and_recv(job):
    def body(comm):
        if comm.rank == 0:
            comm.send(np.arange(5), dest=1)
            return None
        return comm.recv(np.empty(5, int), source=0).tolist()

    assert job(2)(body)[1] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("elements", [1, 100_000])
def test_a_group_has_no_order(job, elements):
    def body(comm):
        n = comm.size
        inputs = {peer: np.full(elements, 10 * comm.rank + peer) for peer in range(n)}
        outputs = {peer: np.empty(elements, int) for peer in range(n)}
        peers = np.random.default_rng(comm.rank).permutation(n)
        with occl.group():
            for peer in peers:
                comm.send(inputs[int(peer)], int(peer))
            with occl.group():
                for peer in reversed(peers):
                    comm.recv(outputs[int(peer)], int(peer))
        return [int(outputs[peer][-1]) for peer in range(n)]

    assert job(4)(body) == [[10 * peer + rank for peer in range(4)] for rank in range(4)]


@pytest.mark.parametrize("is_nested", [False, True])
def test_an_exception_in_a_group_begins_none_of_it(job, is_nested):
    def body(comm):
        peer = 1 - comm.rank
        with pytest.raises(KeyError):
            with occl.group():
                comm.send(np.full(3, -1), peer)
                if is_nested:
                    with occl.group():
                        comm.send(np.full(3, -1), peer)
                        raise KeyError
                raise KeyError
        with occl.group():
            comm.send(np.full(3, comm.rank), peer)
            result = comm.recv(np.empty(3, int), peer)
        return result.tolist()

    assert job(2)(body) == [[1, 1, 1], [0, 0, 0]]


def test_a_refused_call_in_a_group(job):
    def body(comm):
        with pytest.raises(occl.InvalidArgumentError, match="dest is 7"):
            with occl.group():
                comm.send(np.zeros(3), 7)
        comm.barrier()

    job(2)(body)


def test_counts_by_rank(job):
    job = job(3)
    counts = [0, 1, 2]

    def all_to_all(comm):
        # Rank r has r elements for each.
        source = np.arange(3 * comm.rank) + 10 * comm.rank
        return comm.all_to_all_v(source, [comm.rank] * 3, np.empty(3, int), counts).tolist()

    assert job(all_to_all) == [[10, 20, 21], [11, 22, 23], [12, 24, 25]]
    gathered = job(lambda c: c.all_gather_v(np.full(c.rank, c.rank), np.empty(3, int), counts))
    assert [result.tolist() for result in gathered] == [[1, 2, 2]] * 3

    def rooted(comm):
        is_root = comm.rank == 1
        whole = comm.gather_v(np.full(comm.rank, comm.rank), 1,
                              out=np.empty(3, int) if is_root else None,
                              recv_counts=counts if is_root else None)
        part = comm.scatter_v(np.arange(3) if is_root else None, 1, out=np.empty(comm.rank, int),
                              send_counts=counts if is_root else None)
        return None if whole is None else whole.tolist(), part.tolist()

    assert job(rooted) == [(None, []), ([1, 2, 2], [0]), (None, [1, 2])]


def test_counts_that_do_not_fit(job):
    comm = job(2).comms[0]
    with pytest.raises(occl.InvalidArgumentError, match="3 elements together"):
        comm.all_gather_v(np.zeros(1), np.zeros(4), [1, 2])
    with pytest.raises(occl.InvalidArgumentError, match="one for each of the 2 ranks"):
        comm.all_gather_v(np.zeros(1), np.zeros(4), [4])
    with pytest.raises(occl.InvalidArgumentError, match="float32"):
        comm.all_gather_v(np.zeros(1), np.zeros(4, "f4"), [2, 2])


def test_groups_that_end_later(job):
    def body(comm):
        peer = 1 - comm.rank
        target = np.empty(50_000)
        with comm.start_group() as request:
            comm.send(np.full(50_000, float(comm.rank)), peer)
            comm.recv(target, peer)
            with pytest.raises(occl.InvalidArgumentError, match="has not ended"):
                request.wait()
        request.wait()
        with pytest.raises(KeyError):
            with comm.start_group() as abandoned:
                comm.send(np.ones(1), peer)
                raise KeyError
        with pytest.raises(occl.InvalidArgumentError):
            abandoned.test()
        comm.barrier()
        return target[0], len(comm._requests)

    assert job(2)(body) == [(1, 0), (0, 0)]


def test_a_group_of_a_communicator_that_has_failed(job):
    job = job(2)
    job.comms[1].abort()
    with pytest.raises(occl.AbortedError, match="Abort was called on rank 1"):
        job.comms[0].barrier()
    with pytest.raises(occl.AbortedError, match="Abort was called on rank 1"):
        with occl.group():
            job.comms[0].send(np.ones(1), 1)
    with pytest.raises(occl.AbortedError, match="Abort was called on rank 1"):
        with job.comms[0].start_group():
            job.comms[0].send(np.ones(1), 1)


def test_an_inner_group_that_is_given_up(job):
    def body(comm):
        peer, target = 1 - comm.rank, np.empty(3, int)
        with occl.group():
            comm.send(np.full(3, comm.rank), peer)
            with pytest.raises(KeyError):
                with occl.group():
                    comm.send(np.full(3, -1), peer)
                    raise KeyError
            comm.recv(target, peer)
        return target.tolist()

    assert job(2)(body) == [[1, 1, 1], [0, 0, 0]]


def test_dropped_groups_end(job):
    def body(comm):
        peer = 1 - comm.rank
        for _ in range(100):
            with comm.start_group():
                comm.send(np.ones(10), peer)
                comm.recv(np.empty(10), peer)
            comm.barrier()
        return len(comm._requests)

    assert max(job(2)(body)) < 60


def test_start_group_has_no_groups_around_it(job):
    comm = job(2).comms[0]
    with pytest.raises(occl.InvalidArgumentError, match="inside of a group"):
        with occl.group():
            with comm.start_group():
                pass
