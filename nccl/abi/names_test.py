#!/usr/bin/env python3
"""What libnccl.so.2 offers and needs: the names of names.def and that of its mark, and no CUDA."""
import pathlib
import re
import subprocess
import sys

NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6",
          "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

MARK = "occlIsThisNccl"  # by which copies of it are known as no other NCCL


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(library: str, names_def: str) -> int:
    wrong = []
    text = pathlib.Path(names_def).read_text()
    done = set(re.findall(r"^OCCL_NCCL_DONE\((\w+)\)", text, re.M))
    refused = set(re.findall(r"^OCCL_NCCL_REFUSED\((\w+)\)", text, re.M))
    listed = {prefix + name for name in done | refused for prefix in ("", "p")} | {MARK}
    exported = {line.split()[-1] for line in
                output("nm", "-D", "--defined-only", library).splitlines()}
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
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    wrong += [f"it needs {name}" for name in sorted(needed - NEEDED)]

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
