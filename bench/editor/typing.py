#!/usr/bin/env python3
"""What occl-lsp takes while somebody types: from each change until it has published what is wrong with the text, in the files of
the library. At a time a letter of a name is replaced, or put back, so that every other text has a mistake.

  bench/editor/typing.py [--server occl-lsp] [--changes 200] [FILE...]

Prints a row for each file, the largest of the library if none is named: its bytes, and of the changes the median, the 99th
percentile and the longest, in milliseconds."""
import argparse
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/occl-lsp"))
from lsp_client import Client, position, uri_of  # noqa: E402


def largest() -> pathlib.Path:
    return max((ROOT / "algorithms").rglob("*.coll"), key=lambda path: path.stat().st_size)


def measure(server: str, path: pathlib.Path, changes: int) -> list[float]:
    text = path.read_text(encoding="utf-8")
    offset = text.index("input")  # a name that has no declaration once it is changed
    place = {"start": position(text, offset), "end": position(text, offset + 1)}
    client, uri = Client(server), uri_of(str(path))
    client.open(uri, text)
    assert not client.diagnostics(uri), "the file has mistakes of its own"
    times = []
    for number in range(changes):
        is_wrong = number % 2 == 0
        begun = time.perf_counter()
        client.change(uri, {"range": place, "text": "x" if is_wrong else "i"})
        found = client.diagnostics(uri)
        times.append((time.perf_counter() - begun) * 1e3)
        assert bool(found) == is_wrong, found
    client.stop()
    return sorted(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default=str(ROOT / "bazel-bin/tools/occl-lsp/occl-lsp"))
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--changes", type=int, default=200)
    options = parser.parse_args()
    print(f"{options.changes} changes\n\n| file | bytes | median, ms | 99 %, ms | longest, ms |\n|---|---:|---:|---:|---:|")
    for path in options.files or [largest()]:
        times = measure(options.server, path, options.changes)
        print(f"| {path.name} | {path.stat().st_size} | {statistics.median(times):.1f} | {times[int(0.99 * (len(times) - 1))]:.1f} | {times[-1]:.1f} |")


if __name__ == "__main__":
    main()
