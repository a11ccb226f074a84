#!/usr/bin/env python3
"""Ranks on two network namespaces that reach each other by a network plugin of NCCL: results, bytes that the plugin has sent, ranks
that die, machines without the plugin.

nccl_net_test.py <namespaces.sh> <occl-run> <rank_program> <plugins...>. With OCCL_TEST_NCCL_NET that plugin takes the place of these,
and OCCL_TEST_EXPORT names variables that it needs, with blanks between them. Where the system lets nobody make namespaces the test is
left out, and says so; with OCCL_REQUIRE_NAMESPACES=1 it fails.
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

import within_namespaces

NAMESPACES, OCCL_RUN, RANK_PROGRAM, *TEST_PLUGINS = (str(pathlib.Path(it).resolve()) for it in sys.argv[1:])
GIVEN = os.environ.get("OCCL_TEST_NCCL_NET")
PLUGINS = [GIVEN] if GIVEN else TEST_PLUGINS
MOODS = ("",) if GIVEN else ("", "unpleasant")
EXPORT = [word for name in os.environ.get("OCCL_TEST_EXPORT", "").split() for word in ("-x", name)]
PATIENCE = 120
# The same on all ranks.
SEED = os.environ.setdefault("OCCL_TEST_SEED", str(random.SystemRandom().randrange(1 << 32)))
# Of runCollectives() between two machines, to one side.
LEAST_BYTES = 1 << 20


def ranks(net: str, *task: str, mood: str = "", agent: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    """Four, two in each namespace."""
    variables = {**os.environ, "OCCL_NET": net, "OCCL_DEBUG": "info", "OCCL_TEST_PLUGIN": mood}
    return subprocess.run([OCCL_RUN, "--hosts", "a,b", "-n", "4", *EXPORT, *agent, RANK_PROGRAM, *task], env=variables, text=True,
                          capture_output=True, timeout=PATIENCE)


def ways(done: subprocess.CompletedProcess) -> list[str]:
    return re.findall(r"reaches rank \d by (.*)", done.stdout + done.stderr)


class NcclNet(unittest.TestCase):
    def expectRight(self, done: subprocess.CompletedProcess) -> None:
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        self.assertEqual(sorted(re.findall(r"^rank \d: .*$", done.stdout, re.M)), [f"rank {r}: right" for r in range(4)], said)

    def expectByPlugin(self, done: subprocess.CompletedProcess, before: int, least: int) -> None:
        found = ways(done)
        self.assertEqual(len(found), 8, found)
        self.assertTrue(all(way.startswith("NCCL's network plugin (") for way in found), found)
        self.assertGreater(within_namespaces.bytes_received(NAMESPACES, "b") - before, least)
        if not GIVEN:  # it says itself what it has sent
            sent = [int(number) for number in re.findall(r"has sent (\d+) bytes", done.stderr)]
            self.assertEqual(len(sent), 8, done.stderr)
            self.assertGreater(min(sent), 1000, "some pair has used something else")
            self.assertGreater(sum(sent), 2 * least)

    def runWithAll(self, task: str, least: int) -> None:
        for plugin in PLUGINS:
            for mood in MOODS:
                with self.subTest(plugin=plugin, mood=mood):
                    before = within_namespaces.bytes_received(NAMESPACES, "b")
                    done = ranks(f"ncclnet:{plugin}", task, mood=mood)
                    self.expectRight(done)
                    self.expectByPlugin(done, before, least)

    def test_collectives(self):
        self.runWithAll("collectives", LEAST_BYTES)

    def test_transfers(self):
        self.runWithAll("transfers", 100000)

    def test_as_nccl_names_it(self):
        variables = {name: value for name, value in os.environ.items() if name != "OCCL_NET"}
        done = subprocess.run([OCCL_RUN, "--hosts", "a,b", "-n", "4", "-x", "NCCL_NET_PLUGIN", *EXPORT, RANK_PROGRAM, "collectives"],
                              env={**variables, "NCCL_NET_PLUGIN": PLUGINS[-1], "OCCL_DEBUG": "info"}, text=True, capture_output=True, timeout=PATIENCE)
        self.expectRight(done)
        self.assertEqual(len(ways(done)), 8)
        self.assertTrue(all(way.startswith("NCCL's network plugin (") for way in ways(done)), ways(done))

    @unittest.skipIf(GIVEN, "of the plugin of tests")
    def test_a_machine_without_the_plugin_is_reached_by_the_next(self):
        # Ranks 2 and 3, of machine b, look for it where it is not.
        missing = 'case $OCCL_RANK in 2|3) export OCCL_NET=ncclnet:/nowhere/libnccl-net.so,tcp;; esac; exec "$@"'
        done = ranks(f"ncclnet:{PLUGINS[-1]},tcp", "collectives", agent=("sh", "-c", missing, "sh"))
        self.expectRight(done)
        self.assertEqual(len(ways(done)), 8)
        for way in ways(done):
            self.assertRegex(way, r"^TCP \(ncclnet: rank [23]: .*/nowhere/libnccl-net.so")

    def test_a_rank_that_dies_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            end = pathlib.Path(folder, "end")
            dies = f'if [ $OCCL_RANK = 3 ]; then "$@" & while [ ! -e {end} ]; do sleep 0.05; done; kill -9 $!; else exec "$@"; fi'
            job = subprocess.Popen([OCCL_RUN, "--hosts", "a,b", "-n", "4", *EXPORT, "sh", "-c", dies, "sh", RANK_PROGRAM, "until-failure"],
                                   env={**os.environ, "OCCL_NET": f"ncclnet:{PLUGINS[-1]}", "OCCL_DEBUG": ""}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            begun = 0
            while begun < 4:
                line = job.stderr.readline()
                self.assertTrue(line, "it has ended before")
                begun += "has begun" in line
            end.touch()
            out, errors = job.communicate(timeout=PATIENCE)
        reports = re.findall(r"^rank ([012]): (.*) after", out, re.M)
        self.assertEqual(sorted(rank for rank, _ in reports), ["0", "1", "2"], out + errors)
        for _, text in reports:
            self.assertIn("rank 3", text)


if __name__ == "__main__":
    print(f"OCCL_TEST_SEED={SEED}")
    sys.exit(within_namespaces.main(NAMESPACES, 2, []))
