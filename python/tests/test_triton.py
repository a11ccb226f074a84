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


@triton.jit
def wait_inside(a, b, c, receive, K, SIZE: tl.constexpr):
    i, d = tl.arange(0, 128), tl.arange(0, 64)
    total = tl.zeros((128, 128), tl.float32)
    for k in range(0, K, 64):
        occl.triton.wait(receive, k // 64, SIZE)
        total = tl.dot(tl.load(a + i[:, None] * K + d[None, :] + k),
                       tl.load(b + (d[:, None] + k) * 128 + i[None, :]), total)
    tl.store(c + i[:, None] * 128 + i[None, :], total.to(tl.bfloat16))


@triton.jit
def wait_around(a, b, c, receive, K, SIZE: tl.constexpr):
    i, d = tl.arange(0, 128), tl.arange(0, 64)
    for t in range(0, K):
        total = tl.zeros((128, 128), tl.float32)
        occl.triton.wait(receive, t, SIZE)
        for k in range(0, K, 64):
            total = tl.dot(tl.load(a + i[:, None] * K + d[None, :] + k),
                           tl.load(b + (d[:, None] + k) * 128 + i[None, :]), total)
        tl.store(c + i[:, None] * 128 + i[None, :], total.to(tl.bfloat16))


def compiled(kernel, libraries, arch=90, **options):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"field": "*fp32", "send": "i64", "receive": "i64", "counter": "*i64",
             "a": "*bf16", "b": "*bf16", "c": "*bf16", "K": "i32"}
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    aligned = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(kernel.arg_names)
               if name in ("a", "b", "c", "K")}
    source = ASTSource(kernel, signature, {"SIZE": 1024}, aligned)
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


@pytest.mark.parametrize("kernel, is_right", [(wait_around, True), (wait_inside, False)])
def test_loads_of_a_pipelined_loop_begin_behind_a_wait_around_it(libraries, kernel, is_right):
    """And before one that is directly in it, as docs/partitioned.md says."""
    text = compiled(kernel, libraries, num_stages=3).asm["ttgir"]
    assert text.count("tt.extern_elementwise") == 1 and "ttg.async_copy_global_to_local" in text
    assert (text.index("tt.extern_elementwise") < text.index("ttg.async_copy_global_to_local")
            ) == is_right


@pytest.mark.parametrize("kernel, options, text", [
    (of_block, {}, "a block of shape \\[1024\\]"),
    (of_fraction, {}, "takes integers and pointers, and is given a fp32"),
    (one, {"num_ctas": 2}, "num_ctas=2"),
    (one, {"arch": 80}, "capability 9.0 or newer")])
def test_mistakes_are_said(libraries, kernel, options, text):
    with pytest.raises(triton.CompilationError) as error:
        compiled(kernel, libraries, **options)
    # Versions differ in whether they repeat the text of the exception that it comes from.
    assert re.search(text, f"{error.value} {error.value.__cause__}")



def test_without_the_file(monkeypatch):
    monkeypatch.setenv("OCCL_DEVICE_BITCODE", "/nowhere")
    with pytest.raises(occl.LibraryError, match="OCCL_DEVICE_BITCODE is '/nowhere'"):
        occl.triton.extern_libs()
