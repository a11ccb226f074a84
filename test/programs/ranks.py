"""Programs whose ranks are processes, with OCCL in the place of NCCL. All use the first GPU, or, with
OCCL_TEST_GPUS in the environment, take turns at so many. With OCCL_TEST_MACHINES=1 ranks are as on
two machines, in turn, and OCCL joins them.

A program calls main(body): started by itself it starts SIZE copies of itself, waits for them at
most LIMIT seconds, and prints OK. body(rank) is executed by each copy.

Without OCCL_NCCL_LIBRARY in the environment, which run.sh sets, the programs of PyTorch run on CPUs
with gloo, or BACKEND, which may be occl, and that of JAX does with JAX_PLATFORMS=cpu: so their own
mistakes are found without a GPU.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

SIZE = int(os.environ.get("OCCL_TEST_RANKS", "2"))
GPUS = int(os.environ.get("OCCL_TEST_GPUS", "1"))
LIMIT = float(os.environ.get("LIMIT", "60"))  # seconds
LIBRARY = os.environ.get("OCCL_NCCL_LIBRARY", "")


def mapped(name: str) -> list[str]:
    """The files of that name, whatever follows it, that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/") > 0}
    return sorted(path for path in paths if Path(path).name.startswith(name))


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dladdr(3)."""
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def called() -> str:
    """The file whose functions are called by who looks them up as the dynamic linker does."""
    program = ctypes.CDLL(None)
    info = _SymbolInfo()
    found = program.dladdr(ctypes.cast(program.ncclAllReduce, ctypes.c_void_p), ctypes.byref(info))
    return os.path.realpath(info.file.decode()) if found else ""


def device_of(rank: int) -> int:
    return rank % GPUS


def machine_of(rank: int) -> dict[str, str]:
    """Variables of the environment by which a rank is on another machine than the one before."""
    if os.environ.get("OCCL_TEST_MACHINES") != "1":
        return {}
    host = f"machine{rank % 2}"
    return {"OCCL_HOSTID": host, "NCCL_HOSTID": host, "NCCL_SOCKET_IFNAME": "lo",
            "OCCL_NCCL_FALLBACK": "0"}


def check_library(rank: int, size: int, device: int | None = None) -> None:
    """OCCL's library was used by this process, which has made a communicator: it has written that
    down (NCCL_DEBUG=INFO), and functions of NCCL are its. PyTorch, CuPy and JAX may load the file of
    their own wheel as well, whatever is preloaded."""
    if not LIBRARY:
        return
    libraries = mapped("libnccl.so")
    ours = os.path.realpath(LIBRARY)
    assert ours in [os.path.realpath(path) for path in libraries], libraries
    assert called() == ours, f"NCCL's functions are those of {called()}"
    log = Path(os.environ["NCCL_DEBUG_FILE"].replace("%p", str(os.getpid())))
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    number = device_of(rank) if device is None else device
    assert f"rank {rank} of {size}, device {number}" in text, f"{log} has: {text}"


def port(rank: int) -> str:
    """One that rank 0 has found free, for all."""
    import socket
    place = Path(os.environ["OCCL_MEETING"]) / "port"
    if rank == 0:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            text = str(free.getsockname()[1])
        place.with_suffix(".tmp").write_text(text, encoding="utf-8")
        place.with_suffix(".tmp").rename(place)
    while not place.exists():
        time.sleep(0.02)
    return place.read_text(encoding="utf-8")


def finish(ranks: list[subprocess.Popen[bytes]], limit: float) -> str:
    """Waits for all, or for one that fails, and ends the others. "" or what is wrong."""
    end = time.monotonic() + limit
    wrong = ""
    while not wrong and any(process.poll() is None for process in ranks):
        if time.monotonic() > end:
            wrong = f"it takes longer than {limit:g} seconds"
        for rank, process in enumerate(ranks):
            if not wrong and process.poll() not in (None, 0):
                time.sleep(1)  # for the others to say what they know
                wrong = f"rank {rank} ended with status {process.returncode}"
        time.sleep(0.05)
    for process in ranks:
        if process.poll() is None:
            process.kill()
        process.wait()
    statuses = [process.returncode for process in ranks]
    return wrong or ("" if not any(statuses) else f"the ranks ended with {statuses}")


def main(body: Callable[[int], None], size: int = SIZE) -> None:
    """Of a rank, body(rank); of the program, all ranks, and its end."""
    if "RANK" in os.environ:
        body(int(os.environ["RANK"]))
        sys.stdout.flush()
        return
    name = Path(sys.argv[0]).name
    with tempfile.TemporaryDirectory() as place:
        ranks = []
        for rank in range(size):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size),
                               LOCAL_RANK=str(device_of(rank)),
                               OCCL_MEETING=place, **machine_of(rank))
            ranks.append(subprocess.Popen([sys.executable, *sys.argv], env=environment))
        wrong = finish(ranks, LIMIT - 5)
    if wrong:
        sys.exit(f"{name}: {wrong}")
    print(f"OK {name}")
