"""All-gather and product in one kernel of Triton: C = [A of rank 0; A of rank 1; ...] @ B, of which
each rank has a part of the rows of A, and a B of its own.

A rank sends its rows in bands, begins with the tiles of its own rows, and waits for each band of the
others' inside the kernel, with a bound. The grid is persistent and fits on the device, so thread
blocks that wait keep none from beginning that others wait for; a rank's own sends are the first
thing that some of its programs do. Tiles are taken from a counter: programs that send begin later.

And the other way around: a product each of whose bands of rows is sent once all its tiles are made.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import occl
import occl.triton

ROWS, COLUMNS, DEPTH = 128, 256, 64  # of a tile
WARPS, STAGES, GROUP = 8, 3, 8
PIECE = 16  # rows of a partition of the sends
PATIENCE = 10_000_000_000  # nanoseconds, of a wait inside the kernel


@triton.jit
def _tile(a, b, c, row, column, N, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
          DEPTH: tl.constexpr):
    """Tile (row, column) of c = a @ b, all of them row-major and without remainders."""
    rows = row * ROWS + tl.arange(0, ROWS)
    columns = column * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    of_a = a + rows.to(tl.int64)[:, None] * K + depth[None, :]
    of_b = b + depth.to(tl.int64)[:, None] * N + columns[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _ in range(0, K, DEPTH):
        total = tl.dot(tl.load(of_a), tl.load(of_b), total)
        of_a += DEPTH
        of_b += DEPTH * N
    tl.store(c + rows.to(tl.int64)[:, None] * N + columns[None, :],
             total.to(c.dtype.element_ty))


@triton.jit
def _place(tile, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of a tile: column by column within GROUP rows, so that they share their operands
    in the cache."""
    wide = N // COLUMNS
    first = tile // (GROUP * wide) * GROUP
    high = tl.minimum(M // ROWS - first, GROUP)
    inside = tile % (GROUP * wide)
    return first + inside % high, inside // high


@triton.jit
def all_gather_matmul(own, peer, b, c_own, c_peer, send, receive, next_tile, outcome, pieces, M, N, K,
                      SENDERS: tl.constexpr, PATIENCE: tl.constexpr, ROWS: tl.constexpr,
                      COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    """own, peer: M x K, of this rank and of the other one; c_own, c_peer: the products, M x N. outcome
    is stored to if a band has not come: FAILED or NOT_YET."""
    if tl.program_id(0) < SENDERS:
        for piece in range(tl.program_id(0), pieces, SENDERS):
            occl.triton.ready(send, piece)
    tiles = (M // ROWS) * (N // COLUMNS)
    tile = tl.atomic_add(next_tile, 1)
    while tile < 2 * tiles:
        row, column = _place(tile % tiles, M, N, ROWS, COLUMNS, GROUP)
        if tile < tiles:
            _tile(own, b, c_own, row, column, N, K, ROWS, COLUMNS, DEPTH)
            tile = tl.atomic_add(next_tile, 1)
        else:
            found = occl.triton.wait(receive, row, PATIENCE)
            if found == occl.triton.ARRIVED:
                _tile(peer, b, c_peer, row, column, N, K, ROWS, COLUMNS, DEPTH)
                tile = tl.atomic_add(next_tile, 1)
            else:
                tl.store(outcome, found)
                tile = 2 * tiles


@triton.jit
def matmul_send(a, b, c, send, counters, next_tile, M, N, K, ROWS: tl.constexpr,
                COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    """c = a @ b, whose bands of ROWS rows are the partitions of `send`: the program that makes the last
    tile of one sends it. counters: an int64 for each band, 0 at first."""
    wide = N // COLUMNS
    tile = tl.atomic_add(next_tile, 1)
    while tile < (M // ROWS) * wide:
        row, column = _place(tile, M, N, ROWS, COLUMNS, GROUP)
        _tile(a, b, c, row, column, N, K, ROWS, COLUMNS, DEPTH)
        occl.triton.ready_counted(send, row, counters + row, wide)
        tile = tl.atomic_add(next_tile, 1)


def landing(comm: occl.Communicator, model: torch.Tensor) -> torch.Tensor:
    """A tensor like the model in which sends arrive: it keeps the memory of comm.empty."""
    memory = comm.empty(model.numel() * model.element_size(), "uint8")
    return torch.as_tensor(memory, device=model.device).view(model.dtype).view(model.shape)


class AllGatherMatmul:
    """Of one of two ranks. own: M x K of its device, which may be changed between calls. M is a
    multiple of 128, N of 256, K of 64."""

    def __init__(self, comm: occl.Communicator, own: torch.Tensor, senders: int = 24,
                 patience: int = PATIENCE):
        if comm.size != 2:
            raise ValueError(f"the communicator has {comm.size} ranks; it is for two")
        if own.shape[0] % ROWS or own.shape[1] % DEPTH:
            raise ValueError(f"A is {tuple(own.shape)}; rows go by {ROWS}, columns by {DEPTH}")
        self.comm, self.own = comm, own
        self.peer = landing(comm, own)
        self.pieces = own.shape[0] // PIECE
        other = 1 - comm.rank
        self.send = comm.psend(own, self.pieces, other)
        self.receive = comm.precv(self.peer, own.shape[0] // ROWS, other)
        self.words = torch.zeros(2, dtype=torch.int32, device=own.device)
        processors = torch.cuda.get_device_properties(own.device).multi_processor_count
        self.grid, self.senders, self.patience = (processors,), senders, patience

    def __call__(self, b: torch.Tensor, c: torch.Tensor) -> None:
        """c = [A of rank 0; A of rank 1] @ b, as the current stream's next work."""
        (M, K), N = self.own.shape, b.shape[1]
        if N % COLUMNS:
            raise ValueError(f"B is {tuple(b.shape)}; columns go by {COLUMNS}")
        parts = c.chunk(2)
        self.receive.start_on()
        self.send.start_on()
        self.words.zero_()
        all_gather_matmul[self.grid](
            self.own, self.peer, b, parts[self.comm.rank], parts[1 - self.comm.rank],
            self.send.device_pointer(), self.receive.device_pointer(), self.words, self.words[1:],
            self.pieces, M, N, K, self.senders, self.patience, ROWS, COLUMNS, DEPTH, GROUP,
            num_warps=WARPS, num_stages=STAGES, extern_libs=occl.triton.extern_libs())
        self.send.wait_on()
        self.receive.wait_on()

    def close(self) -> None:
        self.send.close()
        self.receive.close()
