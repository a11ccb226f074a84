#!/usr/bin/env python3
"""Two guests as two hosts: ranks of occl-run over TCP, RDMA between them, a cable that is unplugged.

hosts_test.py <host.py> <link.sh> <occl-run> <rank_program>, on guest a of run.py --topo hosts. Without OCCL_REQUIRE_VERBS, which make
verbs sets, it is left out, and says so.
"""
import os
import pathlib
import socket
import subprocess
import sys
import time
import unittest

HOST, LINK, OCCL_RUN, RANK_PROGRAM = (str(pathlib.Path(it).resolve()) for it in sys.argv[1:5])
PATIENCE = 60


def there(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([HOST, "b", *words], capture_output=True, text=True, timeout=PATIENCE)


# Which entry of the table of addresses is that of IPv4 differs from time to time.
GID = "$(basename $(grep -l '0000:0000:0000:0000:0000:ffff:' /sys/class/infiniband/rxe0/ports/1/gids/*))"
PING_PONG = f"ibv_rc_pingpong --ib-dev=rxe0 --gid-idx={GID} --iters=100 --events --chk"


def sent() -> int:
    """Bytes that this host has sent over its cable."""
    return int(pathlib.Path("/sys/class/net/nic0/statistics/tx_bytes").read_text())


class Hosts(unittest.TestCase):
    def tearDown(self):
        there(LINK, "nic0", "clear")

    def pingPong(self) -> int:
        """From a's device to b's, each side with what it has got from the other by TCP."""
        deadline = time.monotonic() + PATIENCE
        with subprocess.Popen([HOST, "b", f"timeout {PATIENCE} {PING_PONG}"], stdout=subprocess.DEVNULL) as server:
            while (client := subprocess.run(["sh", "-c", f"{PING_PONG} 10.77.0.2"])).returncode and time.monotonic() < deadline:
                time.sleep(0.5)
            server.wait(PATIENCE + 10)
        return client.returncode or server.returncode

    def test_commands_there(self):
        self.assertEqual(os.listdir("/sys/class/infiniband"), ["rxe0"])
        self.assertEqual(there("ls", "/sys/class/infiniband").stdout, "rxe0\n")
        done = there("hostname; pwd; echo wrong >&2; exit 3")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (f"b\n{os.getcwd()}\n", "wrong\n", 3))

    def test_rdma(self):
        self.assertEqual(self.pingPong(), 0)

    def ranks(self, net: str) -> list[str]:
        """Four, two on each host, that run and check all collectives; what they say of how they reach each other."""
        done = subprocess.run([OCCL_RUN, "--hosts", "a,b", "-n", "4", RANK_PROGRAM, "collectives"], text=True, capture_output=True,
                              env={**os.environ, "OCCL_NET": net, "OCCL_DEBUG": "info"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = (done.stdout + done.stderr).splitlines()
        self.assertEqual(sorted(line for line in said if line.endswith(": right")), [f"rank {rank}: right" for rank in range(4)])
        return [line.partition(" by ")[2] for line in said if " reaches rank " in line]

    def test_ranks_over_tcp(self):
        ways = self.ranks("tcp")
        self.assertTrue(len(ways) >= 8 and all(way.startswith("TCP ") for way in ways), ways)

    def test_ranks_over_rdma(self):
        before = sent()
        ways = self.ranks("verbs")
        self.assertTrue(len(ways) >= 8 and all(way.startswith("RDMA (rxe0 port 1)") for way in ways), ways)
        self.assertGreater(sent() - before, 1 << 20, "nothing went over the cable")

    def test_a_cable_that_is_unplugged_and_plugged(self):
        self.assertEqual(there(LINK, "nic0", "unplug").returncode, 0)
        with self.assertRaises(OSError):
            socket.create_connection(("10.77.0.2", 514), timeout=1)
        self.assertEqual(there(LINK, "nic0", "plug").returncode, 0)
        self.assertEqual(self.pingPong(), 0)


def main() -> int:
    if not os.environ.get("OCCL_REQUIRE_VERBS"):
        print("SKIPPED: NOTHING was tested; this is for make verbs")
        return 0
    return 0 if unittest.main(argv=sys.argv[:1] + sys.argv[5:], exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
