"""Tensors of the CPU, as far as torch is there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import PATIENCE, STAR

import occl

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16,
                                   torch.int32, torch.int64, torch.uint8, torch.int8])
def test_all_reduce(job, dtype):
    results = job(2)(lambda c: c.all_reduce(torch.tensor([[1, 2], [3, c.rank]], dtype=dtype)))
    for result in results:
        assert isinstance(result, torch.Tensor) and result.dtype == dtype
        assert result.tolist() == [[2, 4], [6, 1]]


def test_float8(job):
    def body(comm):
        return comm.all_reduce(torch.ones(4).to(torch.float8_e4m3fn)).float().tolist()

    assert job(2)(body) == [[2, 2, 2, 2]] * 2


def test_in_place_and_mixed_with_numpy(job):
    import numpy as np

    def body(comm):
        tensor = torch.ones(3)
        assert comm.all_reduce(tensor, out=tensor) is tensor
        target = np.empty(3, "f4")
        assert comm.all_reduce(tensor, out=target) is target
        request = comm.start("all_gather", tensor, id=1)
        return tensor.tolist(), target.tolist(), tuple(request.result().shape)

    assert job(2)(body) == [([2, 2, 2], [4, 4, 4], (6,))] * 2


@pytest.mark.parametrize("tensor, text", [
    (lambda: torch.ones(4, 4).T, "not contiguous.*tensor.contiguous()"),
    (lambda: torch.ones(4, dtype=torch.complex64), "no element type 'complex64'"),
    (lambda: torch.ones(4, dtype=torch.complex64).conj().imag, "not contiguous|negated"),
    (lambda: torch.ones(4, device="meta"), "is on meta"),
    (lambda: torch.eye(4).to_sparse(), "torch.sparse_coo.*to_dense"),
])
def test_tensors_that_do_not_do(job, tensor, text):
    comm = job(2).comms[0]
    with pytest.raises(occl.InvalidArgumentError, match=text):
        comm.all_reduce(tensor())


def test_run():
    result = occl.run(STAR, [torch.full((10,), float(r), dtype=torch.bfloat16) for r in range(4)],
                      ranks=4, check=True)
    assert result.outputs[3].tolist() == [6.0] * 10


@pytest.mark.parametrize("compiler, part", [
    (None, "install it (Debian: g++)"),
    ("echo 'x.h:1:10: fatal error: Python.h: No such file or directory' >&2; exit 1",
     "install Python's headers (Debian: python3-dev)"),
    ("echo 'x.cpp:1: error: something else' >&2; exit 1", "something else")])
def test_a_backend_that_cannot_be_built_says_what_it_takes(monkeypatch, tmp_path, compiler, part):
    from occl.torch import build

    path = tmp_path / "compiler"
    if compiler is not None:
        path.write_text(f"#!/bin/sh\n{compiler}\n")
        path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setenv("OCCL_TORCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(build.BuildError) as raised:
        build.build()
    assert part in str(raised.value)


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    """A file in the place of a folder: root may write in any folder."""
    from occl.torch import build

    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("OCCL_TORCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(build.BuildError, match="OCCL_TORCH_CACHE") as raised:
        build.build()
    assert str(tmp_path / "cache" / "extensions") in str(raised.value)


def test_a_user_without_a_home_names_the_cache(monkeypatch, tmp_path):
    """As in containers that run with the number of a user that the system does not know."""
    from occl.torch import build

    def nowhere():
        raise RuntimeError("Could not determine home directory.")
    monkeypatch.setattr(build.Path, "home", nowhere)
    for unset in (lambda: monkeypatch.delenv("OCCL_TORCH_CACHE", raising=False),
                  lambda: monkeypatch.setenv("OCCL_TORCH_CACHE", "")):
        unset()
        with pytest.raises(build.BuildError, match="OCCL_TORCH_CACHE"):
            build.build()
    monkeypatch.setattr(build, "_compile", lambda output, *headers: output.write_text(""))
    monkeypatch.setenv("OCCL_TORCH_CACHE", str(tmp_path))
    assert tmp_path in build.build().parents


def test_an_extension_in_the_package_is_of_one_python(monkeypatch, tmp_path):
    from occl.torch import build

    version = "%s_%s.so" % tuple(torch.__version__.split(".")[:2])
    own = "cp%d%d" % sys.version_info[:2]
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    monkeypatch.setattr(build, "_headers", lambda: tmp_path)
    monkeypatch.setattr(build, "_compile", lambda output, *headers: output.write_text(""))
    monkeypatch.setenv("OCCL_TORCH_CACHE", str(tmp_path / "cache"))
    for name in (f"_c10d_cp310_{version}", f"_c10d_{version}"):
        (tmp_path / name).write_text("")
    assert build.build().parent.parent == tmp_path / "cache" / "extensions"
    packaged = tmp_path / f"_c10d_{own}_{version}"
    packaged.write_text("")
    assert build.build() == packaged


NO_COMPILER = """
    import sys, warnings
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        import torch, torch.distributed as dist, occl.torch
        for _ in range(2):
            dist.init_process_group("occl", store=dist.HashStore(), rank=0, world_size=1)
            x = torch.ones(3)
            dist.all_reduce(x)
            assert x.tolist() == [1, 1, 1]
            dist.destroy_process_group()
    texts = [str(one.message) for one in said if issubclass(one.category, RuntimeWarning)]
    assert occl.torch.Backend.__module__ == "occl.torch.fallback"
    assert len(texts) == 1 and "install it (Debian: g++)" in texts[0], texts
"""


@pytest.mark.parametrize("asked, status", [("", 0), ("0", 1)])
def test_without_a_compiler_the_backend_in_python_is_used(tmp_path, asked, status):
    """It says so once; OCCL_TORCH_FALLBACK=0 refuses it."""
    environment = os.environ | {"CXX": str(tmp_path / "none"), "OCCL_TORCH_FALLBACK": asked,
                                "OCCL_TORCH_CACHE": str(tmp_path / "cache"),
                                "PYTHONPATH": str(Path(occl.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(NO_COMPILER)], env=environment,
                          capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == status, done.stderr
    assert status == 0 or "BuildError" in done.stderr and "Debian: g++" in done.stderr


def test_a_pytorch_that_drops_works_of_python_has_no_backend_in_python(monkeypatch, tmp_path):
    from occl.torch import fallback

    assert fallback.is_possible()
    headers = tmp_path / "include/torch/csrc/distributed/c10d"
    headers.mkdir(parents=True)
    (headers / "PyProcessGroup.hpp").write_text("class PyProcessGroup : public ProcessGroup {};")
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "__init__.py"))
    assert not fallback.is_possible()
