"""For tests of ranks on network namespaces: starts the test again within them, and looks into one."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest


def inside(namespaces: str, name: str, *command: str) -> str:
    """What a command says in that namespace; `namespaces`: tools/dev/namespaces.sh."""
    return subprocess.run([namespaces, "--in", name, *command], check=True, capture_output=True, text=True).stdout


def bytes_received(namespaces: str, name: str, interface: str = "eth0") -> int:
    return int(re.search(interface + r":\s*(\d+)", inside(namespaces, name, "cat", "/proc/net/dev")).group(1))


def await_begin(job: subprocess.Popen, ranks: int) -> None:
    """Until so many ranks of rank_program have said that they begin; `job`: occl-run."""
    while ranks > 0:
        line = job.stderr.readline()
        assert line, "it has ended before"
        ranks -= "has begun" in line


def main(namespaces: str, number: int, tests: list[str], links: int = 1) -> int:
    """The exit status. `tests`: names of some, else all. Where the system lets nobody make namespaces the test is left out, and says so;
    with OCCL_REQUIRE_NAMESPACES=1 it fails."""
    if "OCCL_NAMESPACES" in os.environ:
        return 0 if unittest.main(argv=[sys.argv[0], *tests], exit=False, verbosity=2).result.wasSuccessful() else 1
    status = subprocess.run([namespaces, "-n", str(number), "-l", str(links), sys.executable, *sys.argv]).returncode
    if status == 77 and not os.environ.get("OCCL_REQUIRE_NAMESPACES"):
        print("SKIPPED: no namespaces here, so NOTHING was tested across machines")
        return 0
    return status
