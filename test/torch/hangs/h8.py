"""H8 (pytorch#175145): a thread reduces on one group while another sends and receives on a second."""
import threading

import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    g1, g2 = dist.new_group(), dist.new_group()
    errors: list[BaseException] = []

    def exchange() -> None:
        try:
            for i in range(100):
                x, y = torch.full((50000,), float(i)), torch.empty(50000)
                if rank == 0:
                    dist.send(x, 1, group=g2)
                    dist.recv(y, 1, group=g2)
                else:
                    dist.recv(y, 0, group=g2)
                    dist.send(x, 0, group=g2)
                assert y[0] == i and y[-1] == i
        except BaseException as error:
            errors.append(error)
    thread = threading.Thread(target=exchange)
    thread.start()
    for _ in range(100):
        x = torch.ones(50000)
        dist.all_reduce(x, group=g1)
        assert x[-1] == RANKS
    thread.join()
    if errors:
        raise errors[0]
