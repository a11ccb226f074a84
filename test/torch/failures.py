#!/usr/bin/env python3
"""Ranks that die, stop, call wrongly, or go on after the end: each gets an error, nobody hangs.

    failures.py [name ...]
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import harness
from harness import Ranks, Summary, fresh_place, init
from operations import raises

LIMIT = 120
Error = dist.DistBackendError


def case_killed_rank(rank: int) -> None:
    """Those who wait for it are told which rank it was, and soon."""
    dist.all_reduce(torch.ones(10))
    if rank == 2:
        time.sleep(0.5)  # what it has sent has left: over TCP that may be later than the call's end
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(100):  # the first may have got what it needs
        try:
            dist.all_reduce(torch.ones(100000))
        except Error as error:
            assert re.search(r"rank 2", str(error)), error
            break
    else:
        raise AssertionError("no error")
    raises(Error, "rank 2", dist.barrier)  # and so is what comes after


def case_killed_rank_messages(rank: int) -> None:
    dist.barrier()
    if rank == 2:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(3):  # known at once, each time: not when the timeout passes
        assert "has not sent" not in raises(Error, "rank 2", dist.recv, torch.empty(5), 2)
    before = len(os.listdir("/proc/self/task"))
    dist.destroy_process_group()
    while len(os.listdir("/proc/self/task")) >= before:  # nothing is waited for any more
        time.sleep(0.01)


def case_rank_that_leaves(rank: int) -> None:
    """Leaving is silent for those who do not need it; messages that it sent before arrive."""
    pair = dist.new_group([0, 1])
    if rank == 2:
        dist.send(torch.full((1000,), 5.), 0)
        dist.destroy_process_group()
        return
    time.sleep(1)
    x = torch.ones(10)
    dist.all_reduce(x, group=pair)
    assert x[0] == 2
    if rank == 0:
        y = torch.empty(1000)
        dist.recv(y, 2)
        assert y[-1] == 5
        dist.send(y, 1)
        raises(Error, "rank 2", dist.recv, y, 2)
    else:
        dist.recv(torch.empty(1000), 0)
    raises(Error, "rank 2", dist.all_reduce, torch.ones(100000))


def case_any_source_after_leaving(rank: int) -> None:
    """Workers that leave when they are done do not disturb who receives from the others."""
    if rank == 1:
        dist.send(torch.ones(5), 0)
        dist.destroy_process_group()
    elif rank == 0:
        for _ in range(3):
            dist.recv(torch.empty(5))
        time.sleep(0.5)
        dist.recv(torch.empty(5))
    else:
        for _ in range(2):
            dist.send(torch.ones(5), 0)
        time.sleep(1)
        dist.send(torch.ones(5), 0)
        dist.destroy_process_group()  # or the message might not leave the machine


def case_timeout(rank: int) -> None:
    group = dist.new_group(timeout=timedelta(seconds=2))
    if rank == 1:
        time.sleep(6)
        raises(Error, "", dist.all_reduce, torch.ones(5), group=group)
        return
    text = raises(Error, "waits for rank 1", dist.all_reduce, torch.ones(5), group=group)
    assert "deadline" in text
    raises(Error, "deadline", dist.all_reduce, torch.ones(5), group=group)


def case_timeout_is_changed(rank: int) -> None:
    dist.group.WORLD.set_timeout(timedelta(seconds=2))
    if rank == 1:
        time.sleep(6)
        return
    raises(Error, "rank 1 has not sent a message with tag 4", dist.recv, torch.empty(3), 1, None, 4)
    raises(Error, "waits for rank 1", dist.all_reduce, torch.ones(5))


def case_timeout_of_wait(rank: int) -> None:
    """wait(timeout) gives up waiting, not the operation."""
    if rank == 1:
        time.sleep(2)
    x = torch.ones(5)
    work = dist.all_reduce(x, async_op=True)
    if rank != 1:
        raises(Error, "not complete after wait", work.wait, timedelta(milliseconds=300))
    work.wait()
    assert x[0] == 3


def case_timeout_of_send(rank: int) -> None:
    """A large message that nobody receives; a receive beside it that has another tag."""
    dist.group.WORLD.set_timeout(timedelta(seconds=2))
    if rank == 0:
        work = dist.isend(torch.ones(1 << 20), 1, tag=3)
        raises(Error, "rank 1 has not received the message of 4194304 bytes with tag 3", work.wait)
    elif rank == 1:
        time.sleep(5)


def case_timeout_of_many_sends(rank: int) -> None:
    """More than are in flight at a time: all of them end, and so does a later one."""
    dist.group.WORLD.set_timeout(timedelta(seconds=2))
    if rank == 0:
        x = torch.ones(1 << 18)
        for work in [dist.isend(x, 1, tag=i) for i in range(5000)]:
            raises(Error, "", work.wait)
        raises(Error, "", dist.isend(x, 1).wait)
    elif rank == 1:
        time.sleep(8)


def case_wrong_tag(rank: int) -> None:
    dist.group.WORLD.set_timeout(timedelta(seconds=2))
    if rank == 0:
        dist.send(torch.ones(3), 1, tag=3)
        time.sleep(4)
    elif rank == 1:
        text = raises(Error, "tag 4", dist.recv, torch.ones(3), 0, None, 4)
        assert "there is one of rank 0 with tag 3" in text


def case_missing_at_start(rank: int) -> None:
    """A group that one rank does not come to."""
    if rank == 2:
        time.sleep(5)
        return
    import occl.torch
    store = dist.PrefixStore("alone", dist.distributed_c10d._get_default_store())
    # Both wait for two seconds: the later one may hear first that the other has given up.
    error = raises(Error, "group of 3 ranks failed", occl.torch.Backend, store, rank, 3,
                   timedelta(seconds=2))
    missing = str(error).split("failed on rank", 1)[1][2:]
    assert re.search(r"\b2\b", missing) or f"rank {1 - rank} " in missing and "given up" in missing, error


def store_of(name: str) -> dist.Store:
    return dist.PrefixStore(name, dist.distributed_c10d._get_default_store())


def make_and_use(store: dist.Store, rank: int) -> None:
    import occl.torch
    backend = occl.torch.Backend(store, rank, 3, timedelta(seconds=60))
    x = torch.full((5,), float(rank))
    backend.allreduce([x]).wait()
    assert x[0] == 3


def case_made_again(rank: int) -> None:
    """Groups one after the other with the same keys of the store, at which ranks are of which they
    are not yet, or no more."""
    for turn in range(20):
        time.sleep(0.01 * ((rank + turn) % 3))
        make_and_use(store_of("again"), rank)


def case_made_after_a_failure(rank: int) -> None:
    import occl.torch
    if rank == 2:
        time.sleep(3)
    else:
        raises(Error, "not come to the store", occl.torch.Backend, store_of("retry"), rank, 3,
               timedelta(seconds=1))
    make_and_use(store_of("retry"), rank)


def case_made_after_a_kill(rank: int) -> None:
    """What a process has left in the store is not taken for a part of what its successor makes."""
    for victim in range(2):
        store = store_of(f"kill {victim}")
        if rank == victim:
            child = os.fork()
            if child == 0:
                make_and_use(store, rank)
                os._exit(0)
            time.sleep(1)
            os.kill(child, signal.SIGKILL)
            assert os.waitpid(child, 0)[1] == signal.SIGKILL
        elif rank == 2:
            time.sleep(2)  # the one without which nothing is decided
        make_and_use(store, rank)


def case_mismatch(rank: int) -> None:
    """Each pair of calls that do not belong together names both."""
    size = dist.get_world_size()
    for wrong, right in (
            (lambda g: dist.all_reduce(torch.ones(5), group=g),
             lambda g: dist.all_reduce(torch.ones(6), group=g)),
            (lambda g: dist.broadcast(torch.ones(5), 0, group=g),
             lambda g: dist.broadcast(torch.ones(5), 1, group=g)),
            (lambda g: dist.all_reduce(torch.ones(5), dist.ReduceOp.MAX, group=g),
             lambda g: dist.all_reduce(torch.ones(5), group=g)),
            (lambda g: dist.all_gather([torch.empty(2)] * size, torch.ones(2), group=g),
             lambda g: dist.barrier(g)),
            (lambda g: dist.all_to_all_single(torch.empty(size), torch.ones(size), group=g),
             lambda g: dist.all_gather([torch.empty(2)] * size, torch.ones(2), group=g))):
        group = dist.new_group()
        try:
            (wrong if rank == 0 else right)(group)
            dist.barrier(group)
            dist.barrier(group)
        except Error as error:
            # Calls of pieces are transfers as well, which may be found to differ first.
            assert re.search("rank 0 (has|sends|receives)", str(error)), error
            assert "disagree" in str(error), error
        else:
            raise AssertionError("no error")
    # Sizes of a pair's pieces differ.
    group = dist.new_group()
    take = [1, 1, 1]
    give = [1, 2, 1] if rank == 0 else [1, 1, 1]
    try:
        dist.all_to_all_single(torch.empty(3), torch.ones(sum(give)), take, give, group=group)
        dist.barrier(group)
        dist.barrier(group)
    except Error as error:
        assert "disagree" in str(error) or "count" in str(error), error
    else:
        raise AssertionError("no error")


def case_after_destroy(rank: int) -> None:
    group = dist.new_group()
    backend = group._get_backend(torch.device("cpu"))
    work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
    work.wait()
    dist.destroy_process_group(group)
    raises(Error, "the process group was destroyed", lambda: backend.allreduce([torch.ones(3)]))
    raises(Error, "the process group was destroyed", lambda: backend.send([torch.ones(3)], 0, 0))
    dist.barrier()


def case_abort(rank: int) -> None:
    """Ends what waits, here and elsewhere; the group is unusable, others are not."""
    group = dist.new_group()
    backend = group._get_backend(torch.device("cpu"))
    if rank == 0:
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        threading.Timer(0.5, backend.abort).start()
        raises(Error, "rank 0 has aborted", work.wait)
        raises(Error, "rank 0 has aborted", lambda: backend.allreduce([torch.ones(3)]))
    elif rank == 1:
        raises(Error, "aborted: occlCommAbort was called on rank 0", dist.recv, torch.empty(3), 2, group)
    dist.barrier()


def case_destroy_in_flight(rank: int) -> None:
    """destroy_process_group returns though something waits, which gets an error."""
    group = dist.new_group()
    if rank == 0:
        work = dist.all_reduce(torch.ones(3), group=group, async_op=True)
        receive = dist.irecv(torch.ones(3), 1, group=group)
        began = time.monotonic()
        dist.destroy_process_group(group)
        assert time.monotonic() - began < 30
        del work
        raises(Error, "destroyed", receive.wait)
        os._exit(0)
    time.sleep(2)
    os._exit(0)


def case_fork(rank: int) -> None:
    """Loader workers live beside a group; a child that uses it is told not to."""
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return torch.full((3,), float(i))
    dist.all_reduce(torch.ones(3))
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2)
    for batch in loader:
        dist.all_reduce(batch)
    sys.stdout.flush()
    pending = dist.irecv(torch.empty(3), (rank + 1) % 3)
    child = os.fork()
    if child == 0:
        try:
            text = raises(Error, "fork()", dist.all_reduce, torch.ones(3))
            assert "spawn" in text
            raises(Error, "fork()", dist.send, torch.ones(3), (rank + 1) % 3)
            raises(Error, "fork()", pending.wait)
            assert not pending.is_completed()
            backend = dist.group.WORLD._get_backend(torch.device("cpu"))
            assert "fork()" in backend.failure()
            backend.abort()  # disturbs nobody
            dist.destroy_process_group()
            os._exit(0)
        except BaseException as error:
            print("child:", error, flush=True)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    x = torch.ones(3)
    dist.all_reduce(x)  # neither this rank nor others noticed
    assert x[0] == 3
    dist.send(x, (rank - 1) % 3)
    pending.wait()


def case_interrupt(rank: int) -> None:
    """SIGINT ends a wait with KeyboardInterrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what is in the background without it
    if rank == 0:
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        for wait in (lambda: dist.all_reduce(torch.ones(3)),
                     lambda: dist.recv(torch.ones(3), 1)):
            try:
                wait()
            except KeyboardInterrupt:
                threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                continue
            raise AssertionError("no KeyboardInterrupt")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        time.sleep(4)
    os._exit(0)


def case_interrupt_while_meeting(rank: int) -> None:
    """SIGINT ends the wait for ranks that have not come, and for one that has come and does not
    join."""
    import occl.torch
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(name: str) -> None:
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            occl.torch.Backend(store_of(name), min(rank, 1), 2, timedelta(seconds=100))
        except KeyboardInterrupt:
            return
        raise AssertionError("no KeyboardInterrupt")
    if rank == 1:  # what rank 1 of a group writes that has come
        call = store_of("join").get("occl/call").decode()
        store_of("join").set(f"occl/place/{call}/1", "attempt elsewhere")
        time.sleep(5)
    else:
        interrupted(f"alone {rank}")
    if rank == 0:
        interrupted("join")
        assert store_of("join").check(["occl/answer/attempt"])  # it was no more in the store
    os._exit(0)


def case_too_many_ranks(rank: int) -> None:
    import occl.torch
    raises(ValueError, "groups of 1 to 32 ranks", occl.torch.Backend, dist.HashStore(), 0, 33,
           timedelta(seconds=5))


def case_no_place_to_meet(rank: int) -> None:
    """Rank 0 of several machines has no address: all are told, not only it."""
    import occl.torch
    os.environ["OCCL_HOSTID"] = f"machine {rank}"
    os.environ["NCCL_SOCKET_IFNAME"] = "=none"
    store = dist.PrefixStore("nowhere", dist.distributed_c10d._get_default_store())
    text = raises(Error, f"failed on rank {rank}", occl.torch.Backend, store, rank, 3,
                  timedelta(seconds=60))
    assert "NCCL_SOCKET_IFNAME" in text


def case_missing_of_several(rank: int) -> None:
    """Who has not come to the store is named on all that have."""
    import occl.torch
    if rank != 1:
        return time.sleep(5)
    store = dist.PrefixStore("few", dist.distributed_c10d._get_default_store())
    raises(Error, "ranks 0, 2, 3 have not come to the store within 500 ms", occl.torch.Backend,
           store, 1, 4, timedelta(milliseconds=500))


def case_bad_ranks(rank: int) -> None:
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    raises(ValueError, "none of this group", lambda: backend.send([torch.ones(3)], 7, 0))
    raises(ValueError, "one tensor", lambda: backend.allreduce([torch.ones(1), torch.ones(1)]))
    options = dist.BroadcastOptions()
    options.rootRank = -1
    raises(ValueError, "none of this group", lambda: backend.broadcast([torch.ones(3)], options))


def case_gone_in_backward(rank: int) -> None:
    """DDP waits for futures, in C++."""
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    if rank == 2:
        os._exit(0)
    raises(RuntimeError, "rank 2", model(torch.ones(2, 4)).sum().backward)


def case_no_memory(rank: int) -> None:
    """For a message that comes before its receive: messages end, on both sides; the process did."""
    dist.barrier()
    if rank == 0:
        work = dist.isend(torch.ones(128 << 20), 1, tag=1)  # 512 MiB
        raises(Error, "rank 1", work.wait)
    elif rank == 1:
        with open("/proc/self/statm") as sizes:
            now = int(sizes.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20), resource.RLIM_INFINITY))
        raises(Error, "rank 1 has no memory for a message of 536870912 bytes of rank 0", dist.recv,
               torch.empty(5), 0, None, 2)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    dist.all_reduce(torch.ones(5))  # collectives go on


def case_far_timeout(rank: int) -> None:
    """As programs have it that want none: beyond what clocks count."""
    forever = timedelta(days=200000)
    group = dist.new_group(timeout=forever)
    x = torch.ones(5)
    if rank == 0:
        time.sleep(1)
    dist.all_reduce(x, group=group, async_op=True).wait(forever)
    assert x[0] == 3
    if rank == 0:
        time.sleep(1)
        dist.send(x, 1, group)
    elif rank == 1:
        dist.recv(x, 0, group)


def use_shrunk(group: dist.ProcessGroup, rank: int, size: int) -> None:
    assert (group.rank(), group.size()) == (rank, size), (group.rank(), group.size())
    for _ in range(40):  # more than the backend has ids
        x = torch.full((1000,), rank + 1.)
        dist.all_reduce(x, group=group)
        assert x[-1] == size * (size + 1) / 2, x
    got = torch.empty(5)
    works = [dist.isend(torch.full((5,), float(rank)), group=group, group_dst=(rank + 1) % size),
             dist.irecv(got, group=group, group_src=(rank - 1) % size)]
    for work in works:
        work.wait()
    assert got[0] == (rank - 1) % size
    dist.barrier(group)


def case_shrink(rank: int) -> None:
    """Who is left out does not call, and may go on with other groups; ranks keep their order."""
    other = dist.new_group()
    group = dist.new_group()
    if rank == 0:
        assert dist.group.WORLD._get_backend(torch.device("cpu")).supports_shrinking
        time.sleep(1)
    else:
        use_shrunk(dist.shrink_group([0], group), rank - 1, 2)
    x = torch.ones(10)
    dist.all_reduce(x, group=other)
    assert x[0] == 3
    if rank == 2:
        raises(ValueError, "rank 2 calls, and is to be left out",
               lambda: dist.group.WORLD._get_backend(torch.device("cpu")).shrink([2]))
        raises(ValueError, "none of this group",
               lambda: dist.group.WORLD._get_backend(torch.device("cpu")).shrink([3]))


def case_shrink_after_kill(rank: int) -> None:
    """Of the default group, whose operations have failed; the shrunk one is the default then, and
    one can be made of it."""
    dist.all_reduce(torch.ones(10))
    if rank == 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    raises(Error, "rank 1", lambda: [dist.all_reduce(torch.ones(100000)) for _ in range(100)])
    use_shrunk(dist.shrink_group([1]), rank // 2, 2)
    assert dist.get_world_size() == 2
    use_shrunk(dist.group.WORLD, rank // 2, 2)
    if rank == 0:
        use_shrunk(dist.shrink_group([1]), 0, 1)
    dist.destroy_process_group()  # what it has sent leaves before the process ends


def case_shrink_aborts(rank: int) -> None:
    """SHRINK_ABORT ends what is in flight; else nobody would."""
    if rank == 2:
        return time.sleep(5)
    work = dist.all_reduce(torch.ones(10), async_op=True)
    began = time.monotonic()
    group = dist.shrink_group([2], shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
    raises(Error, "abort", work.wait)
    use_shrunk(group, rank, 2)
    assert time.monotonic() - began < 30, "it waited for the group's timeout"


def case_shrink_interrupted(rank: int) -> None:
    """SIGINT ends the wait for the others, and nothing holds up the end of the group."""
    group = dist.new_group()
    if rank != 0:
        return time.sleep(8)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    raises(KeyboardInterrupt, "", dist.shrink_group, [2], group)
    raises(Error, "shrink was interrupted", dist.all_reduce, torch.ones(1), group=group)
    dist.destroy_process_group(group)
    assert time.monotonic() - began < 30, "the end waits for what was interrupted"


def case_shrink_without_all(rank: int) -> None:
    """One that is not left out does not come: all that have are told, and can try again."""
    group = dist.new_group(timeout=timedelta(seconds=6))
    if rank == 2:
        return time.sleep(25)
    raises(Error, "of 3 ranks that are not left out 2 are there",
           lambda: group._get_backend(torch.device("cpu")).shrink([]))
    use_shrunk(dist.shrink_group([2], group), rank, 2)


CASES = {name[5:]: function for name, function in list(globals().items())
         if name.startswith("case_")}
# What ranks end with, where it is not 0.
STATUSES = {"killed_rank": {2: -signal.SIGKILL}, "killed_rank_messages": {2: -signal.SIGKILL},
            "shrink_after_kill": {1: -signal.SIGKILL}}


def run(name: str) -> str | None:
    place = fresh_place()

    def body(rank: int) -> None:
        init("occl", rank, 3, place, 60)
        CASES[name](rank)
        os._exit(0) if name in STATUSES else None
    ranks = Ranks(3, body)
    if not ranks.wait(LIMIT):
        return f"hangs: not over within {LIMIT} s\n{ranks.outputs()}"
    expected = {rank: STATUSES.get(name, {}).get(rank, 0) for rank in range(3)}
    if ranks.statuses != expected:
        return f"exit statuses {ranks.statuses}\n{ranks.outputs()}"
    return None


if __name__ == "__main__":
    summary = Summary("failure")
    for name in sys.argv[1:] or CASES:
        began = time.time()
        error = run(name)
        summary.note(name, time.time() - began, error)
    sys.exit(summary.finish())
