#!/usr/bin/env python3
"""What libnccl.so.2 offers and needs: the names of names.def and that of its mark, and no CUDA."""
import pathlib
import re
import subprocess
import sys

# Every process that a program starts loads it, be it a shell: what costs time there is libraries, and
# addresses that have to be filled in.
NEEDED = {"libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MOST_RELOCATIONS = 8000

MARK = "occlIsThisNccl"  # by which copies of it are known as no other NCCL


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(library: str, names_def: str) -> int:
    wrong = []
    text = pathlib.Path(names_def).read_text()
    done = set(re.findall(r"^OCCL_NCCL_DONE\((\w+)\)", text, re.M))
    refused = set(re.findall(r"^OCCL_NCCL_REFUSED\((\w+)\)", text, re.M))
    later = set(re.findall(r"^OCCL_NCCL_LATER\((\w+)\)", text, re.M))
    listed = {prefix + name for name in done | refused | later for prefix in ("", "p")} | {MARK}
    exported = {line.split()[-1] for line in
                output("nm", "-Dg", "--defined-only", library).splitlines()}
    wrong += [f"{name} is listed, not exported" for name in sorted(listed - exported)]
    wrong += [f"{name} is exported, not listed" for name in sorted(exported - listed)]
    if len(done) < 30 or len(refused) < 10:
        wrong.append(f"only {len(done)} and {len(refused)} names were found in the list")

    dynamic = output("readelf", "-d", library)
    if "Library soname: [libnccl.so.2]" not in dynamic:
        wrong.append("the SONAME is not libnccl.so.2")
    if "SYMBOLIC" not in dynamic:
        wrong.append("it is not linked with -Bsymbolic")
    if "BIND_NOW" in dynamic:
        wrong.append("a function that is missing would be noticed by whoever loads it")
    if "san_" not in output("nm", "-D", "--undefined-only", library):  # sanitizers have their own
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        wrong += [f"it needs {name}" for name in sorted(needed - NEEDED)]
        relocations = int(re.findall(r"\(RELASZ\)\s+(\d+)", dynamic)[0]) // 24
        if relocations > MOST_RELOCATIONS:
            wrong.append(f"the dynamic linker has {relocations} addresses to fill in whenever it is "
                         f"loaded, more than {MOST_RELOCATIONS}: which library has come in?")

    header = next((path for path in map(pathlib.Path, ("/usr/local/cuda/include/nccl.h",
                                                       "/usr/local/include/nccl.h",
                                                       "/usr/include/nccl.h")) if path.exists()),
                  None)
    if header:
        theirs = set(re.findall(r"\b(p?nccl[A-Z]\w*)\(", header.read_text())) & set(
            re.findall(r"^[\w* ]*?\b(p?nccl\w+)\s*\(", header.read_text(), re.M))
        wrong += [f"{name} of {header} is not exported" for name in sorted(theirs - exported)]
        if len(theirs) < 60:
            wrong.append(f"only {len(theirs)} names were found in {header}")
    else:
        print("SKIPPED the comparison with nccl.h: there is none on this machine")
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
