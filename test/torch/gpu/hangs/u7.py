"""U7: a stream waits for what a collective writes that is called behind it in the same stream."""
import ctypes

import torch
import torch.distributed as dist

RANKS = 2
SECONDS = 8
ERROR = [r"rank", r"rank 0"]


def wait_in_stream(word: torch.Tensor) -> None:
    """The current stream waits until the word is 2 or more."""
    driver = ctypes.CDLL("libcuda.so.1")
    status = driver.cuStreamWaitValue32_v2(
        ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), ctypes.c_uint64(word.data_ptr()),
        ctypes.c_uint32(2), ctypes.c_uint(0))
    assert status == 0, f"cuStreamWaitValue32 is {status}"


def body(rank: int) -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(4, dtype=torch.int32)
        dist.all_reduce(torch.ones(4, dtype=torch.int32), async_op=True).wait()
        stream.synchronize()
        if rank == 0:
            wait_in_stream(x)
        work = dist.all_reduce(x, async_op=True)
        if rank != 0:
            work.wait()
            stream.synchronize()
