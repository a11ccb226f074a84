#!/usr/bin/env python3
"""Plans of all algorithms are those of before, byte for byte: compares plans.tsv with what hash_plans.py says of the compiler of today."""
import sys


def rows(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return {line.rsplit("\t", 2)[0]: line for line in lines[1:]}


def main() -> int:
    before, now = rows(sys.argv[1]), rows(sys.argv[2])
    plans = sum(int(line.split("\t")[2]) for line in now.values())
    changed = [key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)]
    for key in changed:
        print("before:", before.get(key, "none"))
        print("now:   ", now.get(key, "none"))
    print(f"{plans} plans in {len(now)} rows, {len(changed)} rows changed")
    if changed:
        print("If plans were to change, say why in the commit, measure (bench/schedules, bench/gpu), and let make reference write the hashes of today.")
    return 0 if not changed and plans > 2000 else 1


if __name__ == "__main__":
    sys.exit(main())
