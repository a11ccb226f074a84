#!/usr/bin/env python3
"""The libraries have the device code that `occl doctor` says: every kernel for each architecture. Arguments: occl-doctor, libraries. Where
there is cuobjdump it has to find the same."""
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

FATBIN_MAGIC = 0xBA55ED50
PTX, MACHINE = 1, 2


def section(data: bytes, wanted: str) -> bytes:
    """Of an ELF file of 64 bits; empty if it has none of that name."""
    assert data[:5] == b"\x7fELF\x02", "no ELF file of 64 bits"
    table, = struct.unpack_from("<Q", data, 0x28)
    size, number, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(number)]
    for name, _, _, _, offset, length in headers:
        begin = headers[names][4] + name
        if data[begin:data.index(b"\0", begin)].decode() == wanted:
            return data[offset:offset + length]
    return b""


def fatbins(code: bytes) -> list[set[tuple[int, int]]]:
    """Of each fat binary, which a .cu file has one of: kind and architecture of its parts."""
    found, at = [], 0
    while at + 16 <= len(code):
        magic, _, header, size = struct.unpack_from("<IHHQ", code, at)
        if magic != FATBIN_MAGIC:
            at += 8  # between two of them
            continue
        parts, end = set(), at + header + size
        at += header
        while at < end:
            kind, _, part_header, part_size = struct.unpack_from("<HHIQ", code, at)
            architecture, = struct.unpack_from("<I", code, at + 28)
            parts.add((kind, architecture))
            at += part_header + part_size
        found.append(parts)
    return found


def said_by(doctor: str) -> set[tuple[int, int]]:
    out = subprocess.run([doctor], capture_output=True, text=True).stdout
    line = " ".join(re.search(r".* code for GPUs .*(?:\n {30}.*)*", out)[0].split())
    if "none" in line:
        return set()
    said = set()
    for ptx, major, minor in re.findall(r"(PTX of )?(\d+)\.(\d)", line):
        architecture = 10 * int(major) + int(minor)
        said.add((PTX if ptx else MACHINE, architecture))
        marked = re.search(rf"{ptx}{major}\.{minor} \(untried\)", line) is not None
        assert marked == (bool(ptx) or architecture != 90), f"another mark than docs say: {line}"
    assert said, f"nothing is said: {line}"
    return said


def cuobjdump(library: str) -> set[tuple[int, int]]:
    found = set()
    for option, kind in (("--list-elf", MACHINE), ("--list-ptx", PTX)):
        out = subprocess.run(["cuobjdump", option, library], capture_output=True, text=True).stdout
        found |= {(kind, int(number)) for number in re.findall(r"\.sm_(\d+)\.", out)}
    return found


def main() -> int:
    doctor, *libraries = sys.argv[1:]
    said, wrong = said_by(doctor), []
    for library in [doctor, *libraries]:
        parts = fatbins(section(Path(library).read_bytes(), ".nv_fatbin"))
        wrong += [f"{library}: a fat binary has {sorted(each)}, occl doctor says {sorted(said)}"
                  for each in parts if each != said]
        if len(parts) < (10 if said else 0):
            wrong.append(f"{library}: only {len(parts)} fat binaries were found")
        if shutil.which("cuobjdump") and (listed := cuobjdump(library)) != said:
            wrong.append(f"{library}: cuobjdump lists {sorted(listed)}, occl doctor says {sorted(said)}")
        print(f"{library}: {len(parts)} fat binaries of {sorted(said)}")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
