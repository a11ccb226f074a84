#!/usr/bin/env python3
"""What programs print for people has at most 80 columns: help, what plans do and how long they are predicted to take, counters,
what `occl doctor` finds. A word that is longer, as a path, stands alone in its line. Arguments: programs."""
import os
import pathlib
import re
import subprocess
import sys

PROGRAMS = {pathlib.Path(path).name: os.path.abspath(path) for path in sys.argv[1:]}
COLUMNS = 80
ALGORITHMS, H200 = os.path.abspath("algorithms"), os.path.abspath("topologies/h200.topo")
# Signals and many operands; waits for other thread blocks; several channels; long names of ports; many candidates.
PLANS = [
    ("allreduce/ring", ["-D", "ranks=4"]),
    ("allreduce/all_pairs", ["-D", "ranks=8", "--direct"]),
    ("allreduce/hierarchical", []),
    ("allgather/all_pairs", ["-D", "ranks=16", "--instances", "2", "--max-thread-blocks", "30"]),
    ("allgather/all_pairs", ["-D", "ranks=8", "--topology", H200, "-D", "gpus=8", "--max-thread-blocks", "7"]),
]


def run(name: str, *words: str, status: int = 0) -> str:
    """Both of its outputs."""
    done = subprocess.run([PROGRAMS[name], *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=200, check=False)
    assert done.returncode == status, (name, words, done)
    return done.stdout


def check(what: str, text: str, least: int = 2) -> None:
    """`least`: lines that it has at least."""
    lines = text.splitlines()
    assert len(lines) >= least, f"{what} prints too little:\n{text}"
    for line in lines:
        assert len(line) <= COLUMNS or len(line.split()) == 1, f"{what}, {len(line)} columns:\n{line}"


def test_help() -> None:
    for name in PROGRAMS:
        if name == "occl-opt":  # LLVM's, with all options of MLIR
            continue
        text = run(name, "--help")
        check(f"{name} --help", text, 4)
        block = re.search(r"^Subcommands:\n((?: .*\n?)+)", text, re.M)
        words = re.findall(r"^  ([a-z]\S*)", block[1], re.M) if block else []
        assert (len(words) >= 10) == (name == "occlc"), words
        for word in words:
            check(f"{name} {word} --help", run(name, word, "--help"), 4)


def test_plans() -> None:
    for number, (algorithm, options) in enumerate(PLANS):
        plan = f"{number}.plan.json"
        source = os.path.join(ALGORITHMS, f"{algorithm}.coll")
        check(f"compile --stats {algorithm}", run("occlc", "compile", source, *options, "--stats", "-o", plan), 6)
        check(f"check {algorithm}", run("occlc", "check", source, *options), 1)
        for command, least in (("stats", 6), ("explain", 30), ("verify", 1)):
            check(f"{command} {algorithm}", run("occlc", command, plan), least)


def test_counters() -> None:
    text = run("occl-run", "--plan", "0.plan.json", "--count", "4096", "--iterations", "20", "--stats", "--threads")
    text = text[text.index("OCCL: rank "):]
    check("occl-run --stats", text, 4 * 5)
    (head,) = set(re.findall(r"^ +times .*$", text, re.M))
    assert {"total us", "start us", "peers us", "run us"} <= set(re.findall(r"\w+ us", head)), head
    (row, *_) = re.findall(r"^ +20 [\d. ]+$", text, re.M)
    assert len(row) == len(head), "numbers stand below their heads"
    assert re.search(r"^ +waits: .*data [\d.]+ us \([\d.]+\)", text, re.M), text


def test_doctor() -> None:
    check("occl doctor", run("occl-doctor"), 8)


os.chdir(os.environ["TEST_TMPDIR"])
for name, test in list(globals().items()):
    if name.startswith("test_"):
        print(name, flush=True)
        test()
