#!/usr/bin/env python3
"""JAX: psum, all_gather, psum_scatter and pmax over processes, each with one GPU as its own.

JAX numbers the devices of all processes apart, so that two processes may have one GPU; it is NCCL
that refuses that."""

from __future__ import annotations

import os

import ranks

COUNT = 5003


def body(rank: int) -> None:
    import jax
    import jax.numpy as jnp
    import numpy
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    size = ranks.SIZE
    jax.distributed.initialize(f"127.0.0.1:{ranks.port(rank)}", num_processes=size, process_id=rank,
                               local_device_ids=[ranks.device_of(rank)])
    devices = jax.devices()
    assert not ranks.LIBRARY or devices[0].platform != "cpu", devices
    assert len(devices) == size and len(jax.local_devices()) == 1, devices
    mesh = Mesh(numpy.array(devices), ("ranks",))
    rows = PartitionSpec("ranks")

    def collectives(x):  # of a rank: 1 x COUNT
        total = jax.lax.psum(x, "ranks")
        most = jax.lax.pmax(x, "ranks")
        gathered = jax.lax.all_gather(x[0, :7], "ranks", tiled=True)
        part = jax.lax.psum_scatter(jnp.arange(size * 4.) + x[0, 0], "ranks", tiled=True)
        return total, most, gathered[None], part[None]

    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    program = jax.jit(shard_map(collectives, mesh=mesh, in_specs=rows,
                                out_specs=(rows, rows, rows, rows)))
    mine = numpy.full((1, COUNT), rank + 1, dtype=numpy.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, rows), mine, (size, COUNT))
    for _ in range(3):
        results = [result.addressable_shards[0].data for result in program(x)]
    total, most, gathered, part = (numpy.asarray(result) for result in results)
    sums = size * (size + 1) / 2
    assert (total == sums).all() and total.shape == (1, COUNT), total
    assert (most == size).all(), most
    assert (gathered == numpy.repeat(numpy.arange(size) + 1., 7)).all(), gathered
    assert (part == (numpy.arange(size * 4.) * size + sums)[rank * 4:rank * 4 + 4]).all(), part
    ranks.check_library(rank, size)
    jax.distributed.shutdown()


os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
ranks.main(body)
