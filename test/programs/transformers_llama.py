#!/usr/bin/env python3
"""A Llama of random weights by transformers, with tensor parallelism (tp_plan="auto"): generates the
tokens that one process generates, and has its logits within 1e-10, in float64."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM

from torch_ranks import DEVICE, close, equal, run

TOKENS = 24
BOUND = 1e-10


def make(place: Path) -> None:
    torch.manual_seed(8)
    config = LlamaConfig(vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=3,
                         num_attention_heads=8, num_key_value_heads=8, max_position_embeddings=128,
                         bos_token_id=1, eos_token_id=None, pad_token_id=0)
    LlamaForCausalLM(config).double().save_pretrained(place)


def generate(model: LlamaForCausalLM, prompt: torch.Tensor) -> torch.Tensor:
    return model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                          max_new_tokens=TOKENS, min_new_tokens=TOKENS)


def body(rank: int, size: int) -> None:
    place = Path(os.environ["OCCL_MEETING"]) / "llama"
    if rank == 0:
        make(place)
    dist.barrier()
    prompt = torch.arange(2, 18, device=DEVICE).view(2, 8)
    alone = LlamaForCausalLM.from_pretrained(place, dtype=torch.float64).to(DEVICE).eval()
    together = LlamaForCausalLM.from_pretrained(place, dtype=torch.float64, tp_plan="auto").eval()
    part = together.model.layers[0].mlp.up_proj.weight
    local = part.to_local() if hasattr(part, "to_local") else part
    assert size == 1 or local.shape[0] == 128 // size, f"it is not divided: {local.shape}"
    with torch.no_grad():
        worst = close(together(prompt).logits, alone(prompt).logits, BOUND)
        tokens = generate(together, prompt)
        equal(tokens, generate(alone, prompt))
    assert tokens.shape == (2, 8 + TOKENS), tokens.shape
    if rank == 0:
        print(f"logits differ by up to {worst:.2g}")


run(body)
