#!/usr/bin/env python3
"""The command lines of occlc that pages show work as they stand there, one after the other, in a folder with the files that
they name. Arguments: occlc, occl-run, pages."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

OCCLC, OCCL_RUN, *PAGES = (os.path.abspath(path) for path in sys.argv[1:])
ROOT = pathlib.Path.cwd()

MINE = """
collective exchange(ranks: int, chunks: int) {
  input[r]: chunks;
  output[r]: chunks;
  post for r in 0..ranks, c in 0..chunks { output[r][c] == input[ranks - 1 - r][c]; }
}
algorithm swap(ranks: int = 2, chunks: int = 4) implements exchange(ranks, chunks) {
  for r in 0..ranks { input[r][0..chunks].copy(output[ranks - 1 - r][0]); }
}
"""
SYNTHESIZED = """{"sccl_type": "algorithm", "name": "ag", "collective":
{"sccl_type": "collective", "name": "Allgather(n=2)", "nodes": 2, "chunks": [
  {"sccl_type": "chunk", "pre": [0], "post": [0, 1], "addr": 0},
  {"sccl_type": "chunk", "pre": [1], "post": [0, 1], "addr": 1}]},
 "instance": {"sccl_type": "instance", "steps": 1},
 "steps": [{"sccl_type": "step", "rounds": 1, "sends": [[0, 0, 1], [1, 1, 0]]}]}
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def prepare() -> None:
    """What the pages' programs are called with."""
    for name in ("allreduce/ring", "allreduce/hierarchical"):
        shutil.copyfile(ROOT / f"algorithms/{name}.coll", f"{os.path.basename(name)}.coll")
    shutil.copytree(ROOT / "topologies", "topologies")
    shutil.copyfile("topologies/host.topo", "here.topo")  # as occl topo writes one
    pathlib.Path("mine.coll").write_text(MINE, encoding="utf-8")
    run(OCCLC, "fmt", "-i", "mine.coll")
    pathlib.Path("algo.json").write_text(SYNTHESIZED, encoding="utf-8")
    run(OCCLC, "compile", "ring.coll", "-D", "ranks=8", "-o", "ring.plan.json")
    run(OCCL_RUN, "--plan", "ring.plan.json", "--count", "100", "--iterations", "1", "--threads", "--trace", "job.trace.json")
    run(OCCLC, "export", "ring.plan.json", "-o", "algo.xml")
    run(OCCLC, "compile", "mine.coll", "--emit=msccl-xml", "-o", "mine.xml")
    run(OCCLC, "compile", str(ROOT / "algorithms/alltonext/direct.coll"), "-D", "ranks=4", "--emit=msccl-xml", "-o", "next.xml")


def shown_program(text: str) -> str | None:
    """The mine.coll that the page itself shows."""
    block = re.search(r"^`mine\.coll`[^\n]*\n\n((?:    [^\n]*\n)+)", text, re.M)
    return re.sub(r"^    ", "", block[1], flags=re.M) if block else None


def commands(text: str) -> list[str]:
    """Without what is said about them."""
    lines = re.findall(r"^(?:    )?(?:occlc|occl(?= (?:view|compile) )) .*", text, re.M)
    return [re.sub(r"\s(?:#|\s{3}).*", "", line.strip()) for line in lines]


number = programs = 0
for page in PAGES:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare()
        text = pathlib.Path(page).read_text(encoding="utf-8")
        if program := shown_program(text):
            pathlib.Path("mine.coll").write_text(program, encoding="utf-8")
            programs += 1
        for command in commands(text):
            done = subprocess.run(["bash", "-c", re.sub(r"^\w+", f"'{OCCLC}'", command)], capture_output=True, text=True)
            assert done.returncode == 0, f"{page}: {command}\n{done.stderr}"
            number += 1
        os.chdir(ROOT)
print(f"{number} command lines")
assert number >= 20, "the pages have more"
assert programs, "concepts.md shows a mine.coll"
