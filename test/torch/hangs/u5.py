"""U5: both ranks receive before they send; each error names whom the rank waits for."""
import torch
import torch.distributed as dist

RANKS = 2
SECONDS = 4
ERROR = [r"timeout: rank 1 has not sent a message with tag 0", r"timeout: rank 0 has not sent"]


def body(rank: int) -> None:
    x = torch.ones(10)
    dist.recv(x, 1 - rank)
    dist.send(x, 1 - rank)
