#!/usr/bin/env python3
"""JAX with all devices of one process, at least two of them: psum, all_gather, ppermute by shard_map,
and a product of matrices that jit divides by columns and by rows; exact, as numbers are small.

On CPUs: JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=2."""

from __future__ import annotations

import os

import ranks

COUNT = 5003

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def collectives(jax, mesh, size: int) -> None:
    import jax.numpy as jnp
    import numpy
    from jax.sharding import PartitionSpec

    def body(x):  # of a device: 1 x COUNT
        total = jax.lax.psum(x, "ranks")
        gathered = jax.lax.all_gather(x[0, :7], "ranks", tiled=True)
        turned = jax.lax.ppermute(x, "ranks", [(r, (r + 1) % size) for r in range(size)])
        return total, gathered[None], turned

    shard_map = getattr(jax, "shard_map", None)
    if shard_map is None:
        from jax.experimental.shard_map import shard_map
    rows = PartitionSpec("ranks")
    program = jax.jit(shard_map(body, mesh=mesh, in_specs=rows, out_specs=(rows, rows, rows)))
    x = jnp.repeat(jnp.arange(size, dtype=jnp.float32)[:, None] + 1, COUNT, axis=1)
    for _ in range(3):
        total, gathered, turned = (numpy.asarray(each) for each in program(x))
    assert (total == size * (size + 1) / 2).all(), total
    assert (gathered == numpy.repeat(numpy.arange(size) + 1., 7)).all(), gathered
    assert (turned[:, 0] == (numpy.arange(size) - 1) % size + 1).all(), turned[:, 0]


def divided_product(jax, mesh, size: int) -> None:
    """An MLP whose first matrix is divided by columns and the second by rows."""
    import jax.numpy as jnp
    import numpy
    from jax.sharding import NamedSharding, PartitionSpec

    numbers = numpy.random.default_rng(4)
    x, a, b = (numbers.integers(-3, 4, shape).astype(numpy.float32)
               for shape in ((6, 32), (32, 16 * size), (16 * size, 8)))
    place = lambda array, *axes: jax.device_put(array, NamedSharding(mesh, PartitionSpec(*axes)))
    replicated = NamedSharding(mesh, PartitionSpec())
    product = jax.jit(lambda x, a, b: jnp.maximum(x @ a, 0) @ b, out_shardings=replicated)
    with jax.default_matmul_precision("highest"):
        got = numpy.asarray(product(place(x), place(a, None, "ranks"), place(b, "ranks", None)))
    assert (got == numpy.maximum(x @ a, 0) @ b).all(), got


def main() -> None:
    import jax
    import numpy
    from jax.sharding import Mesh

    devices = jax.devices()
    if len(devices) < 2:
        print(f"SKIPPED jax_devices.py: there is one device, {devices[0]}")
        return
    assert not ranks.LIBRARY or devices[0].platform != "cpu", devices
    mesh = Mesh(numpy.array(devices), ("ranks",))
    collectives(jax, mesh, len(devices))
    divided_product(jax, mesh, len(devices))
    for rank in range(len(devices)):
        ranks.check_library(rank, len(devices), device=rank)
    print("OK jax_devices.py")


main()
