#!/usr/bin/env python3
"""Turns rows of host_plans.tsv, device_plans.tsv and resident_plans.tsv into options of occlc, and all of them into an archive of plans.

  compile_plans.py options host <limit> <protocol>
  compile_plans.py options device <instances> <limit> <protocol>
      prints the options, but for ranks and parameters of the algorithm
  compile_plans.py archive <occlc> <pack_plans> <folder of algorithms> <output>
      compiles what runtime/plan_library embeds, for pack_plans to verify and pack: for 1 to 32 ranks on hosts and 1 to 8 on devices,
      there in streams and by the resident daemon, with registered and with ordinary buffers; for islands of as many ranks each up to
      16 ranks
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

BUFFERS = ("registered", "ordinary")
MAX_RANKS = {"host": 32, "device": 8, "resident": 8}
MAX_RANKS_ON_ISLANDS = 16


def limited(options, limit):
    return options if limit == "-" else options + ["--max-bytes", limit]


def host_options(limit, protocol):
    chosen = ["simple", "--direct"] if protocol == "direct" else [protocol]
    return limited(["--protocol"] + chosen, limit)


def device_options(instances, limit, protocol):
    # Local copies spread over the thread blocks, as --direct does by itself.
    spread = ["--no-aggregate-local", "--spread-local"]
    twice = ["--max-thread-blocks", str(2 * int(instances))]
    chosen = {
        "direct": ["simple", "--direct"],
        "apart": ["simple", "--direct", "--no-multicast"],
        "beside": ["simple", "--direct", "--no-multicast"] + twice,
        "exchange": ["simple"] + spread + ["--depth", "2"] + twice,
        "chain": ["simple"] + spread + ["--depth", "4"] + twice,
    }.get(protocol, [protocol] + spread)
    return limited(["--instances", instances, "--protocol"] + chosen, limit)


def numbers_in(ranks):
    """Those of a list of numbers and ranges: "2,5-8"."""
    for part in ranks.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def shapes_in(ranks, most):
    """(ranks, islands) of "2,5-8", all on one island, or of "2-4x2-8": so many islands of so many ranks."""
    islands, _, of_each = ranks.rpartition("x")
    for n in numbers_in(islands or "1"):
        for size in numbers_in(of_each):
            if n * size <= (min(most, MAX_RANKS_ON_ISLANDS) if islands else most):
                yield n * size, n


def rows_of(path, where):
    """(collective, ranks, islands, algorithm, limit, options by class) of each row and shape, in their order. A row may be for one class."""
    for line in open(path, encoding="utf-8"):
        if line.startswith("#"):
            continue
        fields = line.rstrip("\n").split("\t")
        buffers = fields.pop() if fields[-1] in BUFFERS else None
        collective, ranks, algorithm = fields[:3]
        limit, protocol = fields[-2:]
        # What is not registered cannot be accessed by others: messages instead.
        ordinary = "simple" if protocol in ("direct", "apart", "beside") else protocol
        options = host_options if where == "host" else device_options
        options_of = {
            where + "-registered": options(*fields[3:-1], protocol),
            where + "-ordinary": options(*fields[3:-1], ordinary),
        }
        if buffers:
            options_of = {where + "-" + buffers: options_of[where + "-" + buffers]}
        for n, islands in shapes_in(ranks, MAX_RANKS[where]):
            yield collective, n, islands, algorithm, limit, options_of


def compile_plan(occlc, folder, collective, ranks, islands, algorithm, options, path):
    name, *parameters = algorithm.split(":")
    shape = [f"ranks={ranks}"] if islands == 1 else [f"nodes={islands}", f"gpus={ranks // islands}"]
    defines = [word for parameter in shape + parameters for word in ("-D", parameter)]
    subprocess.run([occlc, "compile", f"{folder}/{collective}/{name}.coll", *defines, *options, "-o", path], check=True)


def archive(occlc, pack_plans, folder, output):
    rows = [row for table in MAX_RANKS for row in rows_of(f"{folder}/{table}_plans.tsv", table)]
    files, jobs, lines = {}, [], []  # what is compiled once, though several rows have it
    with tempfile.TemporaryDirectory() as scratch:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for collective, ranks, islands, algorithm, limit, options_of in rows:
                for where, options in options_of.items():
                    key = (collective, ranks, islands, algorithm, *options)
                    if algorithm == "flat":
                        files[key] = "-"
                    elif key not in files:
                        files[key] = os.path.join(scratch, f"{len(files):05}.cbor")
                        jobs.append(pool.submit(compile_plan, occlc, folder, *key[:4], options, files[key]))
                    lines.append("\t".join(map(str, [where, collective, ranks, islands, limit, algorithm, files[key]])) + "\n")
            for job in jobs:
                job.result()
        plans = os.path.join(scratch, "plans")
        with open(plans, "w", encoding="utf-8") as out:
            out.writelines(lines)
        subprocess.run([pack_plans, plans, output], check=True)


def main(arguments):
    if arguments[:2] == ["options", "host"] and len(arguments) == 4:
        print(*host_options(*arguments[2:]))
    elif arguments[:2] == ["options", "device"] and len(arguments) == 5:
        print(*device_options(*arguments[2:]))
    elif arguments[:1] == ["archive"] and len(arguments) == 5:
        archive(*arguments[1:])
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
