"""occl.triton: kernels are compiled and linked with occl_device.bc by Triton, which needs no GPU for
that. What they do on GPUs is tested by gpu/triton_kernels.py. Skipped without Triton, or without
clang 19, with which the file is made."""

from __future__ import annotations

import re

import pytest

import occl

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

import occl.triton  # noqa: E402


@pytest.fixture
def libraries():
    try:
        return occl.triton.extern_libs()
    except occl.LibraryError as error:
        pytest.skip(str(error))


@triton.jit
def exchange(field, send, receive, counter, SIZE: tl.constexpr):
    p = tl.program_id(0)
    at = p * SIZE + tl.arange(0, SIZE)
    tl.store(field + at, tl.load(field + at) * 2)
    occl.triton.ready(send, p)
    if occl.triton.wait(receive, p, 1_000_000_000) == occl.triton.ARRIVED:
        tl.store(field + at, tl.load(field + at) + 1)
    occl.triton.ready_counted(send, 3, counter + p, tl.num_programs(0))
    if occl.triton.arrived(receive, 7) == occl.triton.FAILED:
        occl.triton.start(send)
    tl.store(counter + p, occl.triton.flush(send, 1000).to(tl.int64))


@triton.jit
def of_block(send, SIZE: tl.constexpr):
    occl.triton.ready(send, tl.arange(0, SIZE))


@triton.jit
def of_fraction(send, SIZE: tl.constexpr):
    occl.triton.ready(send, 1.5)


@triton.jit
def one(send, SIZE: tl.constexpr):
    occl.triton.ready(send, SIZE)


def compiled(kernel, libraries, arch=90, **options):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"field": "*fp32", "send": "i64", "receive": "i64", "counter": "*i64"}
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature, {"SIZE": 1024})
    return triton.compile(source, GPUTarget("cuda", arch, 32), {"extern_libs": libraries, **options})


def test_a_kernel_has_the_functions_inside(libraries):
    ptx = compiled(exchange, libraries).asm["ptx"]
    assert not re.search(r"^\s*(call|\.func|\.extern \.func)", ptx, flags=re.M), "a function is left"
    assert not re.search(r"^\s*\.shared", ptx, flags=re.M), "shared memory that Triton does not know"
    for word in ("st.release.sys.global.u64", "ld.acquire.sys.global.u64", "bar.red.popc.u32"):
        assert word in ptx
    # Stores come before the mark, loads of what has arrived behind the wait.
    at = [found.start() for found in re.finditer(r"cp.async.bulk.wait_group 0", ptx)]
    assert len(at) == 2 and "st.global" in ptx[:at[0]] and "fence.proxy.async" in ptx[at[0]:at[1]]


@pytest.mark.parametrize("kernel, options, text", [
    (of_block, {}, "a block of shape \\[1024\\]"),
    (of_fraction, {}, "takes integers and pointers, and is given a fp32"),
    (one, {"num_ctas": 2}, "num_ctas=2"),
    (one, {"arch": 80}, "capability 9.0 or newer")])
def test_what_is_wrong_is_said(libraries, kernel, options, text):
    with pytest.raises(triton.CompilationError, match=text):
        compiled(kernel, libraries, **options)


def test_without_the_file(monkeypatch):
    monkeypatch.setenv("OCCL_DEVICE_BITCODE", "/nowhere")
    with pytest.raises(occl.LibraryError, match="OCCL_DEVICE_BITCODE is '/nowhere'"):
        occl.triton.extern_libs()
