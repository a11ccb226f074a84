"""U7: a stream, on CPUs a thread, waits for what a collective writes that is called behind it."""
import ctypes
import time

import torch
import torch.distributed as dist

RANKS = 2
SECONDS = 8
ERROR = [r"rank", r"rank 0"]


def wait_in_stream(word: torch.Tensor) -> None:
    """The current stream waits until the word is 2 or more; on CPUs this thread, until the others have
    given up."""
    if not word.is_cuda:
        until = time.monotonic() + SECONDS + 2
        while word[0] < 2 and time.monotonic() < until:
            time.sleep(0.01)
        return
    driver = ctypes.CDLL("libcuda.so.1")
    status = driver.cuStreamWaitValue32_v2(
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), ctypes.c_uint64(word.data_ptr()),
        ctypes.c_uint32(2), ctypes.c_uint(0))
    assert status == 0, f"cuStreamWaitValue32 is {status}"


def body(rank: int) -> None:
    x = torch.ones(4, dtype=torch.int32)
    stream = torch.cuda.Stream() if x.is_cuda else None
    with torch.cuda.stream(stream):  # nothing, for None
        dist.all_reduce(torch.ones(4, dtype=torch.int32), async_op=True).wait()
        if stream:
            stream.synchronize()
        if rank == 0:
            wait_in_stream(x)
        work = dist.all_reduce(x, async_op=True)
        if rank != 0 or not stream:
            work.wait()
        if rank != 0 and stream:
            stream.synchronize()
