#!/usr/bin/env python3
"""Plans of all algorithms as hashes, one for each algorithm and set of options: what a change of the compiler changes.

  hash_plans.py <occlc> <folder of the algorithms>

Prints a row for each: the algorithm, the options, how many of the sizes below have a plan, and the SHA-256 of these plans, with what was
said of them, cut to 16 digits. Plans are compared as JSON, so a row changes with anything that a plan says: order, places, names.
"""
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys

SIZES = [f"-D ranks={n}" for n in (2, 3, 4, 5, 8, 16)] + [f"-D nodes={nodes} -D gpus={gpus}" for nodes, gpus in ((2, 2), (2, 4), (3, 3), (4, 2))]
SIZES += ["-D ranks=5 -D root=3", "-D ranks=5 -D source=3 -D target=1", "-D counts=[0,2,1,1,4]", "-D counts=[[1,2,0],[0,1,3],[2,2,2]]"]
OPTIONS = ["", "--depth 1", "--depth 1 --max-depth 1", "--instances 2", "--direct", "--direct-groups 2 --order-through-ranks", "--max-thread-blocks 2",
           "--no-multicast --no-fuse", "--no-aggregate --layout peers", "--modes in_place", "--max-channels 1",
           "--layout phases --spread-local --no-fold-arrivals --max-fan-out 1"]


def hash_of(occlc: str, folder: pathlib.Path, algorithm: str, options: str) -> str:
    found, total = 0, hashlib.sha256()
    for size in SIZES:
        command = [occlc, "compile", f"{algorithm}.coll", *size.split(), *options.split(), "-o", "-"]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode()}")
        if done.returncode == 0:
            found += 1
            total.update(size.encode() + b"\0" + done.stdout + b"\0" + done.stderr + b"\0")
    return f"{algorithm}\t{options}\t{found}\t{total.hexdigest()[:16] if found else '-'}"


def main() -> None:
    occlc, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
    algorithms = sorted(str(path.relative_to(folder))[: -len(".coll")] for path in folder.rglob("*.coll") if path.parent.name != "common")
    cases = [(algorithm, options) for algorithm in algorithms for options in OPTIONS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(lambda case: hash_of(occlc, folder, *case), cases))
    print("algorithm\toptions\tplans\tsha256")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
