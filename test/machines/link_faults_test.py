#!/usr/bin/env python3
"""Ranks on two network namespaces whose link loses what goes one way, disappears, drops large packets or is slow, and a rank that is
stopped while its buffers are full.

link_faults_test.py <namespaces.sh> <occl-run> <rank_program>. Starts itself again within the namespaces. Where the system lets nobody
make namespaces the test is left out, and says so; with OCCL_REQUIRE_NAMESPACES=1 (make machines) it fails.
"""
import contextlib
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

import within_namespaces

NAMESPACES, OCCL_RUN, RANK_PROGRAM = (str(pathlib.Path(it).resolve()) for it in sys.argv[1:4])
# Of which machine: the ranks that --hosts a,b -n 4 puts there.
RANKS = {"a": (0, 1), "b": (2, 3)}
NUMBERS = {"a": 1, "b": 2}
LINK_TIMEOUT_MS = 800
# From the end of the timeout to the report: a second until the first question without an answer, and a busy machine.
MARGIN = 3 * int(os.environ.get("OCCL_SLOWNESS", "1"))
PATIENCE = 120

os.environ["PATH"] += ":/usr/sbin:/sbin"  # where tc is
inside = functools.partial(within_namespaces.inside, NAMESPACES)


def ip(*words: str) -> None:
    """Where the switch is."""
    subprocess.run(["ip", *words], check=True)


def occl_run(*words: str, timeoutMs: int = LINK_TIMEOUT_MS) -> subprocess.Popen:
    return subprocess.Popen([OCCL_RUN, "--hosts", "a,b", *words], env={**os.environ, "OCCL_LINK_TIMEOUT_MS": str(timeoutMs)},
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextlib.contextmanager
def mute(name: str, other: str):
    """Nothing that the one says reaches the other, which it still hears."""
    number = NUMBERS[other]
    addresses = (f"10.77.0.{number}", f"fd77::{number}")
    try:
        for address in addresses:
            inside(name, "ip", "neigh", "replace", address, "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")
        yield
    finally:
        for address in addresses:
            inside(name, "ip", "neigh", "del", address, "dev", "eth0")


@contextlib.contextmanager
def without_interface(name: str):
    """As namespaces.sh has made it afterwards."""
    ip("link", "del", f"port-{name}0")
    try:
        yield
    finally:
        holder = dict(entry.split("=") for entry in os.environ["OCCL_NAMESPACES"].split())[name]
        ip("link", "add", f"port-{name}0", "type", "veth", "peer", "name", "eth0", "netns", holder)
        ip("link", "set", f"port-{name}0", "master", "switch0", "up")
        inside(name, "ip", "address", "add", f"10.77.0.{NUMBERS[name]}/24", "dev", "eth0")
        inside(name, "ip", "address", "add", f"fd77::{NUMBERS[name]}/64", "dev", "eth0", "nodad")
        inside(name, "ip", "link", "set", "eth0", "up")


@contextlib.contextmanager
def packet_sizes(bytes: int, *interfaces: tuple[str, ...]):
    """The words of `ip` that reach an interface, and how large its packets may be."""
    try:
        for words in interfaces:
            subprocess.run([*words, "mtu", str(bytes)], check=True)
        yield
    finally:
        for words in interfaces:
            subprocess.run([*words, "mtu", "1500"], check=True)


class LinkFaults(unittest.TestCase):
    def expectNamed(self, job: subprocess.Popen, passesSome: bool = False) -> None:
        """By all ranks, each a rank of the other machine, soon after the link's timeout. passesSome: of the link, on which the other
        machine may tell first whom it has found gone."""
        said = self.reports(job, LINK_TIMEOUT_MS / 1000)
        for name, other in (("a", "b"), ("b", "a")):
            for rank in RANKS[name]:
                # Or the other side did not hear this one, and says so by the end.
                gone = r"process of rank [{}] is gone \(its connection to .*: (its machine has not answered for|reset by the peer)"
                ranks = "0123" if passesSome else "".join(map(str, RANKS[other]))
                self.assertRegex(said[str(rank)], gone.format(ranks), name)

    def reports(self, job: subprocess.Popen, seconds: float) -> dict[str, str]:
        """What the four ranks say, so long after the fault, or a little later."""
        begin = time.monotonic()
        out, errors = job.communicate(timeout=PATIENCE)
        took = time.monotonic() - begin
        self.assertEqual(job.returncode, 0, out + errors)
        self.assertLess(took, seconds + MARGIN, out)
        said = dict(re.findall(r"^rank (\d): (.*)", out, re.M))
        self.assertEqual(sorted(said), ["0", "1", "2", "3"], out + errors)
        return said

    def expectRight(self, job: subprocess.Popen, ranks: int) -> None:
        out, errors = job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 0, out + errors)
        self.assertEqual(sorted(re.findall(r"rank \d: .*", out)), [f"rank {rank}: right" for rank in range(ranks)], errors)

    def test_a_cut_in_one_direction_is_named_on_both_sides(self):
        for name, other, task in (("a", "b", "until-failure"), ("b", "a", "transfer-until-failure")):
            job = occl_run("-n", "4", RANK_PROGRAM, task)
            within_namespaces.await_begin(job, 4)
            with self.subTest(mute=name), mute(name, other):
                self.expectNamed(job, passesSome=True)

    def test_an_interface_that_is_deleted_is_named_on_both_sides(self):
        job = occl_run("-n", "4", RANK_PROGRAM, "until-failure")
        within_namespaces.await_begin(job, 4)
        with without_interface("b"):
            self.expectNamed(job)
        # The same machines work again.
        self.expectRight(occl_run("-n", "4", RANK_PROGRAM, "collectives"), 4)

    def test_machines_with_packets_of_different_sizes(self):
        with packet_sizes(9000, (NAMESPACES, "--in", "a", "ip", "link", "set", "eth0")):
            self.expectRight(occl_run("-n", "4", RANK_PROGRAM, "collectives"), 4)

    def test_a_switch_that_drops_large_packets_is_named_on_both_sides(self):
        # As where a machine is set to larger packets than the network takes, and nothing tells it so.
        with contextlib.ExitStack() as stack:
            for name in RANKS:  # otherwise the switch sees packets of 64 KiB that count as small ones
                inside(name, "ip", "link", "set", "eth0", "gso_max_segs", "1")
                stack.callback(inside, name, "ip", "link", "set", "eth0", "gso_max_segs", "65535")
            # The machines answer each other, so calls end at their deadline.
            job = occl_run("-n", "4", RANK_PROGRAM, "until-failure", "3000", timeoutMs=30000)
            within_namespaces.await_begin(job, 4)
            stack.enter_context(packet_sizes(1200, ("ip", "link", "set", "port-b0")))
            said = self.reports(job, 3)
            for rank in range(4):
                self.assertRegex(said[str(rank)], r"did not end on rank \d before its deadline: .*waits for .*rank \d")
            # Ranks meet, as that takes small packets, and find no transport by their deadline.
            job = occl_run("-n", "4", RANK_PROGRAM, "join", "4000")
            begin = time.monotonic()
            out, errors = job.communicate(timeout=PATIENCE)
            self.assertLess(time.monotonic() - begin, 4 + MARGIN)
            said = dict(re.findall(r"rank 0: rank (\d) cannot agree with rank (\d) on a transport: ", out))
            self.assertEqual(sorted(said), ["0", "1", "2", "3"], out + errors)
            for rank, other in said.items():
                self.assertNotEqual(int(rank) < 2, int(other) < 2, out)

    def test_a_rank_that_gives_up_on_a_switch_that_drops_large_packets_tells_the_other_side(self):
        inside("a", "ip", "link", "set", "eth0", "gso_max_segs", "1")
        self.addCleanup(inside, "a", "ip", "link", "set", "eth0", "gso_max_segs", "65535")
        # Rank 1 on b has no deadline, nothing of its own that is lost, and an answer to each question.
        job = occl_run("-n", "2", "sh", "-c", f"exec {RANK_PROGRAM} until-failure $((3000 - 3000 * OCCL_RANK))", timeoutMs=60000)
        within_namespaces.await_begin(job, 2)
        inside("b", "ip", "route", "change", "10.77.0.0/24", "dev", "eth0", "src", "10.77.0.2", "mtu", "lock", "1000")
        self.addCleanup(inside, "b", "ip", "route", "change", "10.77.0.0/24", "dev", "eth0", "src", "10.77.0.2")
        with packet_sizes(1200, ("ip", "link", "set", "port-b0")):
            begin = time.monotonic()
            out, errors = job.communicate(timeout=PATIENCE)
        said = dict(re.findall(r"^rank (\d): (.*)", out, re.M))
        self.assertIn("did not end on rank 0 before its deadline", said.get("0", ""), out + errors)
        self.assertRegex(said.get("1", ""), r"process of rank 0 is gone \(its connection to .*: reset by the peer: ")
        # Rank 0's kernel would repeat what is lost for a minute.
        self.assertLess(time.monotonic() - begin, 40)

    def test_a_slow_link_is_no_failure(self):
        try:
            for name in RANKS:
                inside(name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1mbit", "burst", "16kb", "latency", "100ms")
            self.expectRight(occl_run("-n", "2", RANK_PROGRAM, "seconds", "4"), 2)
        finally:
            for name in RANKS:
                inside(name, "tc", "qdisc", "del", "dev", "eth0", "root")

    def test_a_rank_that_is_stopped_for_20_seconds_with_full_buffers_goes_on(self):
        # Small buffers, which fill up with what one message has at most on its way.
        sizes = inside("b", "cat", "/proc/sys/net/ipv4/tcp_rmem").split()
        self.setReceiveBuffers("4096", "32768", "32768")
        self.addCleanup(self.setReceiveBuffers, *sizes)
        job = occl_run("-n", "4", "--tag-output", "sh", "-c", f"echo pid $$; exec {RANK_PROGRAM} transfer-seconds 22")
        pids = {}
        while len(pids) < 4:
            rank, pid = re.match(r"\[(\d)\] pid (\d+)", job.stdout.readline()).groups()
            pids[int(rank)] = int(pid)
        within_namespaces.await_begin(job, 4)
        before = self.fullBuffers()
        os.kill(pids[3], signal.SIGSTOP)
        time.sleep(20)
        with contextlib.suppress(ProcessLookupError):  # then the job says below why it has ended
            os.kill(pids[3], signal.SIGCONT)
        self.expectRight(job, 4)
        self.assertGreater(self.fullBuffers(), before)

    def setReceiveBuffers(self, *sizes: str) -> None:
        inside("b", "sh", "-c", f"echo {' '.join(sizes)} >/proc/sys/net/ipv4/tcp_rmem")

    def fullBuffers(self) -> int:
        """How often connections of b have told their peers that they have no room."""
        names, numbers = (line.split() for line in inside("b", "cat", "/proc/net/netstat").splitlines()[:2])
        return int(numbers[names.index("TCPToZeroWindowAdv")])


if __name__ == "__main__":
    sys.exit(within_namespaces.main(NAMESPACES, 2, sys.argv[4:]))
