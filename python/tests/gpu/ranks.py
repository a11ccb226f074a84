"""Cases that run on GPUs: each in processes of its own, one a rank, on device rank % devices. A case
that needs a package that is not there, or two devices, is skipped."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

import occl
from occl._cuda.driver import driver

LIMIT = float(os.environ.get("LIMIT", "90"))  # seconds, of a case
SIZE = int(os.environ.get("OCCL_TEST_RANKS", "2"))
ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

_cases: dict[str, tuple[Callable[..., None], str, int, bool]] = {}


def case(package: str = "", devices: int = 1,
         alone: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A case: function(comm), or function() in one process. package: what it needs."""
    def add(function: Callable[..., None]) -> Callable[..., None]:
        _cases[function.__name__] = function, package, devices, alone
        return function
    return add


def device_of(rank: int) -> int:
    return rank % driver().device_count()


def expect(found: Any, wanted: Any, dtype: str = "float32", terms: int = SIZE) -> None:
    """found, in numpy, is wanted, in float64, up to rounding of each of the terms."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    if dtype not in ROUNDING:
        np.testing.assert_array_equal(found, wanted)
        return
    bound = ROUNDING[dtype] * (terms + 1)
    np.testing.assert_allclose(found.astype("f8"), wanted.astype("f8"), rtol=bound, atol=bound * 8)


def raises(kind: type[BaseException], text: str, call: Callable[[], Any]) -> None:
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
        return
    raise AssertionError(f"no {kind.__name__}, which should say '{text}'")


def _rank(name: str, rank: int, job: str) -> None:
    function, _, _, alone = _cases[name]
    try:
        if alone:
            function()
        else:
            with occl.init(rank=rank, size=SIZE, name=job, device=device_of(rank), timeout=LIMIT / 2,
                           heap_bytes=64 << 20) as comm:
                function(comm)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _run(name: str) -> str:
    """'' or what is wrong."""
    job = f"case-{uuid.uuid4().hex[:12]}"
    is_alone = _cases[name][3]
    number = 1 if is_alone else SIZE
    # Ranks of one process must load no kernel while one waits for the other.
    environment = os.environ | {"OCCL_CASE": job} | ({"CUDA_MODULE_LOADING": "EAGER"} if is_alone else {})
    processes = [subprocess.Popen([sys.executable, sys.argv[0], name, str(rank), job],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=environment)
                 for rank in range(number)]
    end, wrong = time.monotonic() + LIMIT, ""
    for rank, process in enumerate(processes):
        try:
            output = process.communicate(timeout=max(1.0, end - time.monotonic()))[0]
            status = f"status {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            output, status = process.communicate()[0], f"longer than {LIMIT:g} s"
        if process.returncode:
            wrong += f"  rank {rank}: {status}\n" + "".join(
                f"    {line}\n" for line in output.splitlines()[-25:])
    return wrong


def main() -> None:
    """[WORD]...: the cases that have one of the words in their names, or all; and what they use to
    start themselves: NAME RANK JOB."""
    if len(sys.argv) == 4 and sys.argv[1] in _cases:
        _rank(sys.argv[1], int(sys.argv[2]), sys.argv[3])
        return
    words, devices = sys.argv[1:], driver().device_count()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, (_, package, needed, _) in _cases.items():
        if words and not any(word in name for word in words):
            continue
        begin = time.monotonic()
        missing = [one for one in package.split() if importlib.util.find_spec(one) is None]
        if missing or devices < needed:
            outcome, why = "skipped", f": no {', '.join(missing)}" if missing else ": one GPU"
        else:
            why = _run(name)
            outcome = "failed" if why else "passed"
            why = "\n" + why.rstrip("\n") if why else ""
        counts[outcome] += 1
        print(f"{outcome} {name}, {time.monotonic() - begin:.0f} s{why}", flush=True)
    print(", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    sys.exit(1 if counts["failed"] else 0)
