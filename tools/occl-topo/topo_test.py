#!/usr/bin/env python3
"""What `occl topo` writes for recorded machines, that occlc takes it, and its errors."""

import os
import pathlib
import subprocess
import sys
import tempfile

TOPO, OCCLC, NVML = (os.path.abspath(path) for path in sys.argv[1:4])


def topo(*words: str, status: int = 0, **settings: str) -> str:
    """Standard output, or errors."""
    done = subprocess.run([TOPO, *words], capture_output=True, text=True, env={**os.environ, "HWLOC_COMPONENTS": "-x86", **settings})
    assert done.returncode == status, (words, done)
    return done.stderr if status else done.stdout


def accept(text: str, ranks: int, algorithm: str = "algorithms/allreduce/ring.coll") -> None:
    """It is what occlc takes, in its layout."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/machine.topo"
        pathlib.Path(path).write_text(text, encoding="utf-8")
        subprocess.run([OCCLC, "fmt", "--check", path], check=True)
        subprocess.run([OCCLC, "check", algorithm, "-D", f"ranks={ranks}", "--topology", path], check=True)


def sysfs(root: str, nodes: list[int], distances: list[list[int]] | None = None) -> None:
    """The part of /sys that hwloc reads, of a machine whose memories have so many cores with two threads each."""
    def write(path: str, text: str) -> None:
        place = pathlib.Path(root, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n", encoding="ascii")

    def mask(cpus: list[int]) -> str:
        return f"{sum(1 << cpu for cpu in cpus):08x}"

    total = 2 * sum(nodes)
    write("sys/devices/system/cpu/online", f"0-{total - 1}")
    write("sys/devices/system/node/online", f"0-{len(nodes) - 1}")
    write("proc/cpuinfo", "\n".join(f"processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nmodel name\t: A processor\n" for cpu in range(total)))
    first = 0
    for node, cores in enumerate(nodes):
        of_node = list(range(first, first + 2 * cores))
        first += 2 * cores
        here = f"sys/devices/system/node/node{node}"
        write(f"{here}/cpumap", mask(of_node))
        write(f"{here}/meminfo", f"Node {node} MemTotal: 1000000 kB")
        if distances:
            write(f"{here}/distance", " ".join(map(str, distances[node])))
        for cpu in of_node:
            core = [one for one in of_node if one // 2 == cpu // 2]
            topology = f"sys/devices/system/cpu/cpu{cpu}/topology"
            write(f"{topology}/physical_package_id", str(node))
            write(f"{topology}/core_id", str(cpu // 2))
            for name, cpus in (("thread_siblings", core), ("core_siblings", of_node), ("core_cpus", core),
                               ("package_cpus", of_node)):
                write(f"{topology}/{name}", mask(cpus))


def test_one_memory() -> None:
    with tempfile.TemporaryDirectory() as root:
        sysfs(root, [4])
        text = topo("--host", HWLOC_FSROOT=root)
    head, body = text.split("\n", 1)
    assert head.startswith("// A processor: 4 cores at one memory (hwloc "), head
    assert body == """topology this_machine(ranks: int = 4) {
  machine host;
  cost cores = 4;
  node ranks;
  switch memory of 0..ranks bandwidth 100 GB/s latency 100 ns;
}
""", body
    accept(text, 4)
    accept(text, 6)


def test_two_memories() -> None:
    with tempfile.TemporaryDirectory() as root:
        sysfs(root, [2, 3], [[10, 21], [21, 10]])
        text = topo("--host", "--name", "two", HWLOC_FSROOT=root)
    assert text.split("\n", 1)[1] == """topology two() {
  machine host;
  cost cores = 5;
  node 5;
  switch memory0 of 0..2 bandwidth 100 GB/s latency 100 ns;
  switch memory1 of 2..5 bandwidth 100 GB/s latency 100 ns;
  for a in 0..2 {
    for b in 2..5 { link a -> b duplex bandwidth 100 GB/s latency 210 ns; }
  }
}
""", text
    accept(text, 5)


def gpus(description: str, status: int = 0) -> str:
    return topo(status=status, FAKE_GPUS=description, LD_LIBRARY_PATH=os.path.dirname(NVML))


def test_gpus_at_a_switch() -> None:
    text = gpus("switch 4")
    assert text == """// 4 x A GPU. Bandwidths are 80 % of what NVML says of links; latencies and costs are typical, not measured.
topology this_machine() {
  machine gpu;
  node 4;
  switch nvlink of 0..4 bandwidth 360000 MB/s latency 1 us;
}
""", text
    accept(text, 4)


def test_gpus_with_links_to_some() -> None:
    text = gpus("ring 4")
    assert text.split("\n", 1)[1] == """topology this_machine() {
  machine gpu;
  node 4;
  link 0 -> 1 duplex bandwidth 40000 MB/s latency 1500 ns;
  link 0 -> 3 duplex bandwidth 40000 MB/s latency 1500 ns;
  link 1 -> 2 duplex bandwidth 40000 MB/s latency 1500 ns;
  link 2 -> 3 duplex bandwidth 40000 MB/s latency 1500 ns;
  switch pcie of 0..4 bandwidth 25203 MB/s latency 2500 ns;
}
""", text
    accept(text, 4, "algorithms/allreduce/all_pairs.coll")


def test_gpus_without_links() -> None:
    text = gpus("pcie 2")
    assert "link" not in text.split("\n", 1)[1] and "switch pcie of 0..2" in text, text
    accept(text, 2)
    accept(gpus("pcie 1"), 1)


def test_this_machine() -> None:
    text = topo("--host")
    assert "cost cores = " in text, text
    with tempfile.TemporaryDirectory() as folder:
        assert topo("--host", "-o", f"{folder}/here.topo") == ""
        assert pathlib.Path(f"{folder}/here.topo").read_text(encoding="utf-8") == text


def test_errors() -> None:
    assert "nvidia-smi" in gpus("broken", status=1)
    assert "cannot write 'missing/x.topo': No such file or directory" in topo("--host", "-o", "missing/x.topo", status=1)
    assert "HWLOC_FSROOT names '/no/such/folder'" in topo("--host", HWLOC_FSROOT="/no/such/folder", status=1)
    for what in ("/no/such/file", "/dev/null", "/"):
        assert "HWLOC_XMLFILE names" in topo("--host", HWLOC_XMLFILE=what, status=1), what
    assert "'2 x' is no name" in topo("--name", "2 x", status=2)
    for word in ("for", "topology", "while"):
        assert f"'{word}' is a word of the language" in topo("--host", "--name", word, status=2), word
    assert "--wrong" in topo("--wrong", status=2)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        print(name, flush=True)
        test()
