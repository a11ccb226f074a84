"""U6: ranks that disagree in the type, and in the kind, of a collective."""
import torch
import torch.distributed as dist

RANKS = 2
ERROR = [r"^(?=.*ranks disagree)(?=.*rank 0 has allreduce)(?=.*rank 1 has allgather)"]


def body(rank: int) -> None:
    group = dist.new_group()
    try:
        dist.all_reduce(torch.ones(8, dtype=torch.float32 if rank == 0 else torch.int32),
                        group=group)
        dist.barrier(group)
    except dist.DistBackendError as error:
        text = str(error)
        assert "float32" in text.lower() and "int32" in text.lower(), text
    else:
        raise AssertionError("no error")
    # Transfers beside a collective: also those are told.
    if rank == 0:
        dist.all_reduce(torch.ones(8))
    else:
        dist.all_gather([torch.empty(8) for _ in range(RANKS)], torch.ones(8))
    dist.barrier()
