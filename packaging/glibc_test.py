#!/usr/bin/env python3
"""A wheel can be named after the glibc that its files need, also where one needs none, and Debian 12 has it. Arguments: occl.tar, and
the programs that are linked statically, which sanitized ones cannot be."""
import sys
import tarfile
import tempfile
from pathlib import Path

from glibc import needed_glibc

DEBIAN_12 = 36

with tempfile.TemporaryDirectory() as folder:
    with tarfile.open(sys.argv[1]) as archive:
        native = [member for member in archive if member.isreg() and ("/bin/" in member.name or ".so." in member.name)]
        archive.extractall(folder, members=native)
    needed = {member.name.removeprefix("./"): needed_glibc(Path(folder, member.name)) for member in native}

print(needed)
assert len(needed) >= 9, "the archive lacks programs"
assert all(needed[name] == 0 for name in sys.argv[2:]), needed
# A library of the runtime cannot be.
assert needed["lib/liboccl.so.0"] > 0, needed
assert 0 < max(needed.values()) <= DEBIAN_12, needed
