#!/usr/bin/env python3
"""README.md names tests that there are, each once. Arguments: the page, then the sources."""

import pathlib
import re
import sys

page, *sources = (pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[1:])
defined = {
    f"{suite}.{name}"
    for source in sources
    for suite, name in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", source, re.M)
}
rows = re.findall(r"^\| (\d+) \|.*\| `(\w+\.\w+)` \|$", page, re.M)
named = [test for _, test in rows]
wrong = [f"there is no test {test}" for test in named if test not in defined]
wrong += [f"{test} is named twice" for test in set(named) if named.count(test) > 1]
if [int(number) for number, _ in rows] != list(range(1, len(rows) + 1)) or len(rows) < 20:
    wrong.append(f"rows are not numbered from 1, or are less than 20: {len(rows)}")
for line in wrong:
    print(f"README.md: {line}")
sys.exit(1 if wrong else 0)
