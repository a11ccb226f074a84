"""Arrays on CUDA devices: what is read of them, in which stream calls are made and behind what, how
long arrays are kept, what is refused. Without a GPU: see fake_cuda."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path
from types import SimpleNamespace

import fake_cuda
import numpy as np
import pytest
from conftest import STAR

import occl
from occl import _library, _running
from occl._cuda import dlpack, streams
from occl._cuda.work import Work


@pytest.fixture
def cuda(monkeypatch):
    driver = fake_cuda.Driver()
    monkeypatch.setattr("occl._cuda.driver._driver", driver)
    return driver


@pytest.fixture
def library(monkeypatch):
    found = fake_cuda.Library(_library.library())
    monkeypatch.setattr(_library, "_loaded", found)
    return found


@pytest.fixture
def pair(cuda, library, job):
    """Two ranks, both on device 0."""
    made = job(2, timeout=60)
    fake_cuda.on_devices(made.comms, [0, 0])
    return made


@pytest.fixture
def kinds(cuda, monkeypatch):
    return fake_cuda.frameworks(cuda, monkeypatch)


def test_collectives_and_transfers_on_the_interface(cuda, library, pair):
    def body(comm):
        mine = fake_cuda.Array(cuda, np.arange(4.0) + comm.rank, stream=0x700)
        out = fake_cuda.Array(cuda, np.zeros(4), stream=0x700)
        assert comm.all_reduce(mine, out=out) is out
        np.testing.assert_array_equal(out.array, 2 * np.arange(4.0) + 1)
        comm.broadcast(mine, 1)
        np.testing.assert_array_equal(mine.array, np.arange(4.0) + 1)
        both = fake_cuda.Array(cuda, np.zeros(8), stream=0x700)
        comm.all_gather(mine, out=both)
        half = fake_cuda.Array(cuda, np.zeros(4), stream=0x700)
        comm.reduce_scatter(both, "max", out=half)
        with occl.group():
            comm.send(out, 1 - comm.rank)
            comm.recv(half, 1 - comm.rank)
        np.testing.assert_array_equal(half.array, out.array)
        comm.all_to_all_v(out, [2, 2], half, [2, 2])
        request = comm.start("all_reduce", mine, id=3, out=out)
        assert request.wait_in_stream() is out and request.result() is out
        comm.call(occl.compile(STAR, ranks=2), mine, out=out, timeout=30, scale=2.0)
        np.testing.assert_array_equal(out.array, 4 * (np.arange(4.0) + 1))

    pair(body)
    assert set(library.streams) == {0x700, ("wait", 0x700)}
    assert len(library.streams) == 2 * 10
    assert not [what for what in cuda.said if what[0] in ("order", "mark", "synchronize")]


def test_every_element_type(cuda, pair):
    for dtype in ("u1", "i1", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?"):
        def body(comm, dtype=dtype):
            array = fake_cuda.Array(cuda, np.ones(3, dtype), stream=0x700)
            comm.all_reduce(array, "max", out=array)
            comm.all_reduce(fake_cuda.Dlpack(array.array), "max", out=fake_cuda.Dlpack(array.array))
            return array.array
        for result in pair(body):
            np.testing.assert_array_equal(result, np.ones(3, dtype))
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def body(comm):  # typestr is '<V2'
        array = fake_cuda.Array(cuda, np.full(3, 1.5, ml_dtypes.bfloat16), stream=0x700)
        comm.all_reduce(array, out=array)
        return array.array.astype("f4")
    np.testing.assert_array_equal(pair(body), [[3, 3, 3]] * 2)


def test_a_new_array_is_one_of_the_framework(cuda, library, pair, kinds):
    def body(comm):
        for array in (kinds.cupy(cuda, np.ones((2, 3)), stream=0x700), kinds.torch(np.ones((2, 3))),
                      kinds.jax(np.ones((2, 3)))):
            out = comm.all_gather(array)
            assert type(out) is type(array), out
            np.testing.assert_array_equal(out.array, np.ones((4, 3)))
        with pytest.raises(occl.InvalidArgumentError, match="the kind Array: give out="):
            comm.all_reduce(fake_cuda.Array(cuda, np.ones(1)))
        # JAX's are constant: what is stored to is new.
        mine = kinds.jax(np.full(3, comm.rank, "f4"))
        sent = comm.broadcast(mine, 1)
        np.testing.assert_array_equal(sent.array, [1, 1, 1])
        assert (sent is mine) == (comm.rank == 1) and mine.array[0] == comm.rank
        with pytest.raises(occl.InvalidArgumentError, match="read-only"):
            comm.all_reduce(mine, out=mine)
        with pytest.raises(occl.InvalidArgumentError, match="read-only"):
            comm.recv(mine, 0)
        request = comm.start("all_reduce", mine, id=1)
        with pytest.raises(occl.InvalidArgumentError, match="cannot be told"):
            request.wait_in_stream()
        np.testing.assert_array_equal(request.result().array, [1, 1, 1])

    pair(body)


def test_the_stream_is_the_framework_s_or_the_caller_s(cuda, library, pair, kinds):
    def stream_of(array, **more):
        del library.streams[:], cuda.said[:]
        pair(lambda comm: comm.all_reduce(array, "max", out=array, **more))
        assert len(set(library.streams)) == 1
        return library.streams[0]

    legacy = fake_cuda.Array(cuda, np.ones(1), stream=1)
    assert stream_of(legacy) == 0
    assert stream_of(fake_cuda.Array(cuda, np.ones(1))) == 0  # says none
    assert stream_of(kinds.torch(np.ones(1))) == 0x700
    # Of what is DLPack's alone the communicator has a stream, and the call ends.
    both = fake_cuda.Dlpack(np.ones(1))
    assert stream_of(both) == 0x5000
    assert set(both.asked) == {0x5000} and ("synchronize", 0, 0x5000) in cuda.said
    other = SimpleNamespace(__cuda_stream__=lambda: (0, 0x900))
    for given in (0x900, SimpleNamespace(cuda_stream=0x900), SimpleNamespace(ptr=0x900), other,
                  SimpleNamespace(handle=SimpleNamespace(value=0x900))):
        assert stream_of(kinds.torch(np.ones(1)), stream=given) == 0x900
        # It begins behind what the framework has in its own stream.
        assert cuda.said.count(("order", 0, 0x700, 0x900)) == 2
    assert stream_of(legacy, stream=0x900) == 0x900 and ("order", 0, 0, 0x900) in cuda.said
    assert stream_of(legacy, stream=0) == 0 and not [w for w in cuda.said if w[0] == "order"]
    assert stream_of(both, stream=1) == 0 and both.asked[-1] == 1  # DLPack's legacy default stream


@pytest.mark.parametrize("stream, kind, text", [
    ("7", TypeError, "stream is a str"), (1.5, TypeError, "stream is a float"),
    (True, TypeError, "stream is a bool"), (-1, ValueError, "stream is -1"),
    (2, ValueError, "per-thread default stream"),
    (SimpleNamespace(ptr="x"), TypeError, "stream is a SimpleNamespace")])
def test_streams_that_are_none(stream, kind, text):
    with pytest.raises(kind, match=text):
        streams.handle_of(stream)


@pytest.mark.parametrize("changes, kind, text", [
    ({"stream": 0}, ValueError, "stream 0, which that does not allow"),
    ({"stream": "a"}, ValueError, "stream 'a'"),
    ({"stream": 2}, ValueError, "per-thread default stream"),
    ({"strides": (16,)}, ValueError, r"not contiguous \(shape \(4,\), strides \(16,\) bytes\)"),
    ({"mask": object()}, ValueError, "has a mask"),
    ({"typestr": "<c16"}, ValueError, "no element type 'complex128'"),
    ({"typestr": ">f8"}, ValueError, "other byte order"),
    ({"typestr": "what"}, TypeError, "__cuda_array_interface__ that is none"),
    ({"shape": "ab"}, TypeError, "__cuda_array_interface__ that is none"),
    ({"data": (12345678, False)}, ValueError, "no memory of one CUDA device"),
])
def test_interfaces_that_are_refused(cuda, pair, changes, kind, text):
    array = fake_cuda.Array(cuda, np.ones(4), **changes)
    with pytest.raises(kind, match=text):
        pair.comms[0].all_reduce(array, out=array)


def test_contiguous_is_what_counts(cuda, pair):
    """Strides of dimensions of length 1, and of no elements, are anything."""
    for shape, strides in (((4,), (8,)), ((2, 1, 2), (16, 999, 8)), ((1, 4), (7, 8)), ((0, 4), (1, 1))):
        data = np.ones(shape)
        pair(lambda comm, d=data, s=strides: comm.all_reduce(
            fake_cuda.Array(cuda, d, strides=s), "max", out=fake_cuda.Array(cuda, d.copy())))


def test_where_arrays_are_has_to_fit(cuda, pair, kinds, job):
    comm, host = pair.comms[0], job(1).comms[0]
    away = fake_cuda.Array(cuda, np.ones(4), 1)
    near = fake_cuda.Array(cuda, np.ones(4))
    for call, text in (
            (lambda: comm.all_reduce(away, out=near), "the array is on CUDA device 1, and this rank's"
                                                      " is CUDA device 0"),
            (lambda: comm.all_reduce(near, out=away), "out is on CUDA device 1"),
            (lambda: comm.all_reduce(kinds.torch(np.ones(4), 1)), "the array is on CUDA device 1"),
            (lambda: comm.all_reduce(kinds.jax(np.ones(4), 1)), "the array is on CUDA device 1"),
            (lambda: comm.all_reduce(np.ones(4)), "the array is in memory of the host"),
            (lambda: comm.all_reduce(near, out=np.ones(4)), "out is in memory of the host"),
            (lambda: comm.all_reduce(np.ones(4), out=near), "the array is in memory of the host"),
            (lambda: comm.send(np.ones(4), 1), "the array is in memory of the host"),
            (lambda: comm.scatter_v(near, out=bytearray(4), send_counts=[2, 2]), "out is in memory"),
            (lambda: comm.all_reduce(fake_cuda.Dlpack(np.ones(4), 0, 3)), "pinned or managed"),
            (lambda: comm.all_reduce(fake_cuda.Dlpack(np.ones(4), 0, 13)), "pinned or managed"),
            (lambda: host.all_reduce(near), "ranks are on CPUs: occl.init"),
            (lambda: host.all_reduce(np.ones(4), out=near), "out is on a CUDA device"),
            (lambda: host.all_reduce(kinds.torch(np.ones(4))), "ranks are on CPUs"),
            (lambda: host.all_reduce(kinds.jax(np.ones(4))), "ranks are on CPUs"),
            (lambda: host.recv(near, 0), "ranks are on CPUs"),
            (lambda: host.all_reduce(np.ones(4), stream=0), "stream is for communicators on CUDA"),
            (lambda: host.send(np.ones(4), 0, stream=7), "stream is for communicators on CUDA"),
            (lambda: host.empty(3), "any numpy array will do"),
            (lambda: comm.start_group().__enter__(), "start_group is for communicators on CPUs"),
    ):
        with pytest.raises(occl.InvalidArgumentError, match=text):
            call()
    request = host.start("all_reduce", np.ones(4), id=1)
    with pytest.raises(occl.InvalidArgumentError, match="wait_in_stream is for"):
        request.wait_in_stream()
    request.wait()


def test_arrays_live_until_their_stream_has_come_so_far(cuda, pair):
    def body(comm):
        array = fake_cuda.Array(cuda, np.ones(4), stream=0x700)
        comm.all_reduce(array, "max", out=array, stream=0x900)
        return weakref.ref(array)

    kept = pair(body)
    gc.collect()
    assert all(array() is not None for array in kept)
    pair(body)
    gc.collect()
    assert all(array() is not None for array in kept)  # not yet
    cuda.running.clear()
    pair(body)
    gc.collect()
    assert all(array() is None for array in kept)
    pair.close()
    assert len([what for what in cuda.said if what[0] == "forget"]) == 6
    # In their own stream their frameworks see to it.
    comm = SimpleNamespace(buffers=[SimpleNamespace(current=0x700, pointer=1)])
    assert not Work(0).is_to_hold(comm.buffers, 0x700) and Work(0).is_to_hold(comm.buffers, 0)


def test_arrays_go_with_a_later_call_that_holds_nothing(cuda, pair, monkeypatch):
    def call(comm, **more):
        array = fake_cuda.Array(cuda, np.ones(4), stream=0x700)
        comm.all_reduce(array, "max", out=array, **more)
        return weakref.ref(array)

    def transfer(comm):
        array = fake_cuda.Array(cuda, np.ones(4), stream=0x700)
        with occl.group():
            comm.send(array, 1 - comm.rank)
            comm.recv(array, 1 - comm.rank)

    for later in (call, transfer):
        kept = pair(lambda comm: call(comm, stream=0x900))
        cuda.running.clear()
        with monkeypatch.context() as captured:  # then events must not be asked
            captured.setattr(cuda, "is_captured", lambda device, stream: True)
            pair(later)
            gc.collect()
            assert all(array() is not None for array in kept)
        pair(later)
        gc.collect()
        assert all(array() is None for array in kept)


def test_memory_that_all_ranks_can_access(cuda, pair):
    def body(comm):
        array = comm.empty((2, 3), "float64")
        said = array.__cuda_array_interface__
        assert said["shape"] == (2, 3) and said["typestr"] == "<f8" and said["version"] == 3
        assert array.pointer % 128 == 0 and array.device == 0 and array.bytes == 48
        assert repr(array) == "<occl.DeviceArray float64 (2, 3) on CUDA device 0>"
        mine = fake_cuda.Array(cuda, np.full((2, 3), comm.rank + 1.0))
        comm.all_reduce(mine, out=array)
        comm.all_reduce(array, out=mine)
        np.testing.assert_array_equal(mine.array, np.full((2, 3), 6.0))
        # A view, as of a framework, has it live until its stream has come so far.
        view = fake_cuda.Array(cuda, mine.array, stream=0x700, data=(array.pointer + 8, False),
                               shape=(2,))
        cuda.memory[array.pointer + 8] = 0
        del cuda.said[:]
        comm.all_reduce(view, out=view)
        assert ("mark", 0, 0x700) in cuda.said
        assert comm.empty(0).bytes == 0
        view.owner = array
        return array.pointer, comm

    for where, comm in pair(body):
        gc.collect()
        assert where in comm._work.memories  # what is in the stream keeps it
        left = comm.empty(3, "bfloat16")
        comm.close()
        gc.collect()
        assert where not in comm._work.memories
        with pytest.raises(occl.ClosedError, match="ended with its communicator"):
            left.pointer
    for shape, kind, text in (("3", TypeError, "length of the shape is a str"),
                              ((2, -1), ValueError, "is -1"), (1.5, TypeError, "a float")):
        with pytest.raises(kind, match=text):
            pair.comms[0].empty(shape)


def test_barrier_ends_with_what_is_in_streams(cuda, library, pair):
    pair(lambda comm: comm.barrier())
    assert library.streams == [0x5000] * 2
    assert cuda.said.count(("synchronize", 0, 0x5000)) == 2


def test_a_failure_is_said_by_what_waits(cuda, pair):
    pair.comms[1].abort()
    with pytest.raises(occl.AbortedError):
        pair.comms[0].barrier()


def test_divided_ones_are_on_the_same_device(cuda, pair):
    def body(comm):
        with comm.split(0) as part, part.shrink() as rest:
            array = fake_cuda.Array(cuda, np.ones(2))
            rest.all_reduce(array, out=array)
            return part.device, rest.device, array.array[0]
    assert pair(body) == [(0, 0, 2.0)] * 2
    away = occl.init_all(1)
    fake_cuda.on_devices(away, [1])
    with away[0] as comm:  # what the library demands: the same device
        config = comm._config({"registered_buffers": True})
        assert (config.deviceKind, config.device, config.registeredBuffers) == (1, 1, 1)
        assert comm._config({"as_needed": True}).asNeeded == 1
        assert comm._config({}) is None


def test_run_on_devices(cuda, library, kinds, monkeypatch):
    def init_all(size, device):
        comms = occl.init_all(size)
        fake_cuda.on_devices(comms, [(device + rank) % 2 for rank in range(size)])
        return comms

    monkeypatch.setattr(_running, "init_all", init_all)
    plan = occl.compile(STAR, ranks=2)
    inputs = [kinds.torch(np.full(5, rank + 1.0), rank) for rank in range(2)]
    result = occl.run(plan, inputs)
    assert not result.checked and [type(output) for output in result.outputs] == [kinds.torch] * 2
    np.testing.assert_array_equal(result.outputs[1].array, np.full(5, 3.0))
    assert set(library.streams) == {0x5000, 0x5001}
    for rank in range(2):
        assert ("order", rank, 0x700, 0x5000 + rank) in cuda.said
        assert ("synchronize", rank, 0x5000 + rank) in cuda.said
    for wrong, text in (([inputs[0], kinds.torch(np.ones(5), 0)], "input 1 on 0"),
                        ([inputs[0], np.ones(5)], "in memory of the host")):
        with pytest.raises(occl.InvalidArgumentError, match=text):
            occl.run(plan, wrong)
    with pytest.raises(occl.InvalidArgumentError, match="check is for arrays in memory of the host"):
        occl.run(plan, inputs, check=True)


def test_dlpack_is_read_as_it_is():
    array = np.arange(12, dtype="i4").reshape(3, 4)[1:]
    found = dlpack.read(array.__dlpack__(), "the array")
    assert (found.pointer, found.shape, found.dtype) == (array.ctypes.data, (2, 4), "int32")
    with pytest.raises(occl.InvalidArgumentError, match="not contiguous"):
        fake = fake_cuda.Dlpack(np.ones(1))
        fake.array = np.ones((4, 4))[:, 1]
        from occl._cuda import arrays
        arrays.of_dlpack(fake, 0, "the array")
    with pytest.raises(occl.InvalidArgumentError, match="a type that OCCL does not have"):
        dlpack.read(np.ones(3, "c16").__dlpack__(), "the array")
    with pytest.raises(TypeError, match="no capsule of DLPack"):
        dlpack.read(7, "the array")
    assert dlpack.device_of(np.ones(1)) is None and dlpack.device_of(7) is None


def test_devices_that_are_not_there():
    for make in (lambda: occl.init_all(2, device=0),
                 lambda: occl.init(rank=0, size=1, name="devices", device=99)):
        with pytest.raises(occl.Error, match="CUDA|device"):
            make()
    with pytest.raises(TypeError, match="device is a str"):
        occl.init_all(2, device="cuda:0")
    with pytest.raises(ValueError, match="device is -1"):
        occl.init_all(2, device=-1)


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_the_driver_is_called_as_it_is_declared(tmp_path):
    source = Path(__file__).with_name("fake_libcuda.c")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", tmp_path / "libcuda.so.1"], check=True)
    program = """
        import ctypes, occl
        from occl._cuda.driver import driver
        d = driver()
        assert d is driver() and d.device_count() == 2
        assert [d.device_of(p) for p in (0, 0x1000, 0x10000000, 0x20000000)] == [None, None, 1, None]
        d.order(0, 0, 0x99); d.order(1, 0x99, 0); d.order(1, 1, 2)
        assert d.mark(1, 0xca) is None  # captured
        event = d.mark(1, 0x99)
        assert not d.has_ended(1, event)
        d.forget(1, event)
        stream = d.make_stream(0)
        assert d.synchronize(0, stream) == 0
        d.end_stream(0, stream)
        for call, text in ((lambda: d.order(0, 0xbad, 7), "cuEventRecord: CUDA_ERROR (400)"),
                           (lambda: d.order(0, 7, 0xbad), "cuStreamWaitEvent: CUDA_ERROR (400)"),
                           (lambda: d.check("x", d.synchronize(0, 0xbad)), "x: CUDA_ERROR_ILLEGAL"),
                           (lambda: d.make_stream(2), "cuDeviceGet: CUDA_ERROR (101)")):
            try:
                call()
                raise AssertionError(text)
            except occl.SystemError as error:
                assert str(error).startswith(text), error
        assert ctypes.CDLL("libcuda.so.1").alive() == 0
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True,
                   env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)})


def test_without_a_driver_that_is_said():
    program = ("import occl\nfrom occl._cuda.driver import driver\n"
               "try:\n  driver()\nexcept occl.LibraryError as error:\n  print(error)")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    if said.stdout:  # else there is one
        assert said.stdout.startswith("arrays on CUDA devices need NVIDIA's driver: libcuda.so.1")


def test_partitioned_requests_are_work_of_streams(cuda, library, kinds, pair):
    def body(comm):
        field = kinds.torch(np.arange(8.0) if comm.rank == 0 else np.zeros(8))
        if comm.rank == 0:
            with comm.psend(field, 4, 1) as send:
                send.start_on()
                send.prepare_on(SimpleNamespace(cuda_stream=0x710))
                send.ready_on(range(1, 4), 0x720)
                send.ready_on(0)
                send.ready_on(range(0))
                assert send.wait_on() is None
                assert ("synchronize", 0, 0x700) not in cuda.said
            return None
        with comm.precv(field, 2, 0) as receive:
            receive.start_on(0x730)
            assert receive.wait_on(0x730) is field
        assert receive.is_closed and ("synchronize", 0, 0x730) in cuda.said
        return field.array.tolist()

    assert pair(body)[1] == list(range(8))
    assert ("synchronize", 0, 0x700) in cuda.said
    assert sorted(one for one in library.streams if isinstance(one, tuple)) == sorted([
        ("occlPstartOn", 0x700), ("occlPprepareOn", 0x710), ("occlPreadyOn", 0x720),
        ("occlPreadyOn", 0x700), ("occlPwaitOn", 0x700), ("occlPstartOn", 0x730),
        ("occlPwaitOn", 0x730)])


def test_a_partitioned_collective_is_work_of_streams(cuda, library, kinds, pair):
    def body(comm):
        with comm.pcall("all_reduce", kinds.torch(np.full(6, comm.rank + 1.0)), 3) as total:
            total.start_on()
            total.ready_on(range(3))
            return total.wait_on().array.tolist()

    assert pair(body) == [[3.0] * 6] * 2


def test_partitioned_requests_on_devices_that_are_refused(cuda, library, kinds, pair):
    def body(comm):
        for call, text in [
                (lambda: comm.psend(np.zeros(8), 4, 0), "in memory of the host"),
                (lambda: comm.precv(kinds.torch(np.zeros(8), 1), 4, 0), "on CUDA device 1"),
                (lambda: comm.pcall("all_reduce", np.zeros(8), 4), "in memory of the host")]:
            with pytest.raises(occl.InvalidArgumentError, match=text):
                call()
        with comm.psend(kinds.torch(np.zeros(8)), 4, comm.rank) as send, \
                comm.precv(kinds.torch(np.zeros(8)), 4, comm.rank) as receive:
            with pytest.raises(occl.InvalidArgumentError, match="step 1"):
                send.ready_on(range(0, 4, 2))
            with pytest.raises(occl.InvalidArgumentError, match="per-thread"):
                send.start_on(2)
            assert not send._is_active
            receive.start_on()
            send.start_on()
            with pytest.raises(occl.InvalidArgumentError):  # it lives on: it has no wait yet
                send.close()
            assert not send.is_closed
            send.ready_on(range(4))
            send.wait_on()
            receive.wait_on()

    pair(body)


def test_on_hosts_there_are_no_partitioned_requests_in_streams(job):
    def body(comm):
        with comm.psend(np.zeros(8), 4, 0) as send:
            for call in (send.start_on, lambda: send.ready_on(0), send.prepare_on, send.wait_on,
                         send.device_pointer):
                with pytest.raises(occl.InvalidArgumentError, match="the communicator is on hosts"):
                    call()
            assert "not started" in repr(send)

    job(1)(body)
