"""H8 (pytorch#175145): a thread reduces on one group while another sends and receives on a second.
On devices each thread has a stream, as what is in one stream has that stream's order."""
import contextlib
import threading

import torch
import torch.distributed as dist

RANKS = 2


def own_stream():
    if torch.get_default_device().type == "cpu":
        return contextlib.nullcontext()
    return torch.cuda.stream(torch.cuda.Stream())


def body(rank: int) -> None:
    g1, g2 = dist.new_group(), dist.new_group()
    errors: list[BaseException] = []

    def exchange() -> None:
        try:
            with own_stream():
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
    with own_stream():
        for _ in range(100):
            x = torch.ones(50000)
            dist.all_reduce(x, group=g1)
            assert x[-1] == RANKS
    thread.join()
    if errors:
        raise errors[0]
