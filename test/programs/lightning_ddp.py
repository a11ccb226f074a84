#!/usr/bin/env python3
"""A training loop of Lightning, strategy ddp, with a logged metric of all ranks: the parameters of
one process with the whole batch, within 1e-10, in float64."""

from __future__ import annotations

import os
import warnings

import torch

import ranks

STEPS = 10
BOUND = 1e-10


def make(net: torch.nn.Module, losses: list[float]):
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net

        def training_step(self, x, index):
            loss = self.net(x).square().mean()
            losses.append(self.all_gather(loss.detach()).mean().item())
            self.log("loss", loss, sync_dist=True)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.net.parameters(), lr=0.05)

    return Module()


def body(rank: int) -> None:
    warnings.filterwarnings("ignore")
    import lightning
    from lightning.pytorch.plugins.environments import LightningEnvironment
    from lightning.pytorch.strategies import DDPStrategy

    from torch_ranks import DEVICE, ON_GPU, batch, close, mlp, train

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=ranks.port(rank),
                      NODE_RANK=str(rank), LOCAL_RANK="0")  # each rank is a node of one device
    size, rows = ranks.SIZE, 4
    parts = [batch(size, step, 16)[rank * rows:(rank + 1) * rows].cpu() for step in range(STEPS)]
    losses: list[float] = []
    module = make(mlp(), losses)
    trainer = lightning.Trainer(
        accelerator="gpu" if ON_GPU else "cpu", devices=[DEVICE.index] if ON_GPU else 1,
        num_nodes=size, max_epochs=1, precision="64-true", logger=False, barebones=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        use_distributed_sampler=False, plugins=[LightningEnvironment()],
        strategy=DDPStrategy(process_group_backend="nccl" if ON_GPU else "gloo"))
    trainer.fit(module, torch.utils.data.DataLoader(parts, batch_size=None))
    ranks.check_library(rank, size)
    alone = mlp()
    train(alone, lambda step: batch(size, step, 16), STEPS)
    for got, wanted in zip(module.net.parameters(), alone.parameters()):
        close(got.to(DEVICE), wanted, BOUND)
    assert len(losses) == STEPS and losses[-1] < losses[0] * 10, losses
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


ranks.main(body)
