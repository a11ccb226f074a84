#!/usr/bin/env python3
"""Times of programs of PyTorch on GPUs, with OCCL's libnccl.so.2 and with NCCL, in turns; prints rows
for bench/report.py --add torch, and a table with ratios on standard error.

    bench/torch/programs.py DIR_OF_LIBNCCL [--ranks 2] [--rounds 3] [--limit 100] [WORD]...

Ranks are processes, each with a GPU of its own. A time is the median over rounds of a step's on the
slowest rank; in each round every library has processes of its own, and the next round begins with
the other one. WORDs: only programs with one of them in the name. NVLink multicast is off
(NCCL_NVLS_ENABLE=0). Programs whose packages are missing are left out. test/programs/run.sh checks
what such programs compute.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Iterator

LIBRARIES = ("OCCL", "NCCL")
WIDTH, LAYERS, BATCH = 8192, 32, 8  # of a model of which tokens are decoded


def timed(steps: int, step: Callable[[], object]) -> float:
    """Microseconds a step on the slowest rank."""
    import torch
    import torch.distributed as dist

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    mean = torch.tensor([(time.perf_counter() - began) / steps * 1e6], device="cuda")
    dist.all_reduce(mean, dist.ReduceOp.MAX)
    return mean.item()


def all_reduces(size: int) -> Iterator[tuple[str, int, float]]:
    import torch
    import torch.distributed as dist

    for count, steps in ((1 << 10, 400), (128 << 10, 400), (1 << 20, 400), (16 << 20, 100), (256 << 20, 20)):
        x = torch.ones(count // 2, dtype=torch.bfloat16, device="cuda")
        dist.all_reduce(x)
        assert (x == size).all(), x
        x.zero_()
        yield "all_reduce of bfloat16", count, timed(steps, lambda: dist.all_reduce(x))


def decoding(size: int) -> Iterator[tuple[str, int, float]]:
    """A step of tensor-parallel decoding: of each layer both halves end with an all-reduce."""
    import torch
    import torch.distributed as dist

    def weight(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, dtype=torch.bfloat16, device="cuda") / rows ** 0.5

    halves = [(weight(WIDTH, inner // size), weight(inner // size, WIDTH))
              for _ in range(LAYERS) for inner in (WIDTH, 12288)]
    x = torch.randn(BATCH, WIDTH, dtype=torch.bfloat16, device="cuda")
    dist.broadcast(x, 0)

    def step(communicates: bool = True) -> torch.Tensor:
        y = x
        for into, out in halves:
            part = torch.relu(y @ into) @ out
            if communicates:
                dist.all_reduce(part)
            y = torch.nn.functional.rms_norm(y + part, (WIDTH,))
        return y

    def captured(communicates: bool) -> torch.cuda.CUDAGraph:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            step(communicates)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(communicates)
        return graph

    what = f"decoding, {LAYERS} layers of {WIDTH}"
    bytes_each = 2 * BATCH * WIDTH
    with torch.no_grad():
        yield f"{what}, eager", bytes_each, timed(20, step)
        yield f"{what}, eager, no communication", bytes_each, timed(20, lambda: step(False))
        graphs = [captured(True), captured(False)]
        yield f"{what}, CUDA graph", bytes_each, timed(50, graphs[0].replay)
        yield f"{what}, CUDA graph, no communication", bytes_each, timed(50, graphs[1].replay)
        torch.cuda.synchronize()
        graphs.clear()


def data_parallel(size: int) -> Iterator[tuple[str, int, float]]:
    import torch
    from torch import nn

    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test/programs"))
    from resnet import resnet50

    torch.backends.cudnn.benchmark = True
    net = resnet50().cuda().to(memory_format=torch.channels_last)
    images = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (64,), device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def step(of) -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            loss = nn.functional.cross_entropy(of(images), labels)
        loss.backward()
        optimizer.step()

    what = "training ResNet-50, 64 images a GPU"
    yield f"{what}, alone", 0, timed(10, lambda: step(net))
    parallel = nn.parallel.DistributedDataParallel(net)
    yield f"{what}, DDP", 0, timed(10, lambda: step(parallel))


def sharded(size: int) -> Iterator[tuple[str, int, float]]:
    import torch
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    def encoder() -> nn.Module:
        return nn.Sequential(*(nn.TransformerEncoderLayer(2048, 16, 8192, dropout=0, batch_first=True)
                               for _ in range(8))).cuda().bfloat16()

    words = torch.randn(8, 512, 2048, dtype=torch.bfloat16, device="cuda")

    def step(net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        net(words).square().mean().backward()
        optimizer.step()

    what = "training 8 encoder layers of 2048"
    alone = encoder()
    optimizer = torch.optim.SGD(alone.parameters(), lr=0.01)
    yield f"{what}, alone", 0, timed(10, lambda: step(alone, optimizer))
    net = encoder()
    mesh = init_device_mesh("cuda", (size,))
    for layer in net:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    of_net = torch.optim.SGD(net.parameters(), lr=0.01)
    yield f"{what}, FSDP2", 0, timed(10, lambda: step(net, of_net))


def llama(size: int) -> Iterator[tuple[str, int, float]]:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokens = 32
    place = Path(os.environ["MEETING"]) / "llama"
    if os.environ["RANK"] == "0":
        torch.manual_seed(8)
        LlamaForCausalLM(LlamaConfig(
            vocab_size=4096, hidden_size=4096, intermediate_size=11008, num_hidden_layers=8,
            num_attention_heads=32, num_key_value_heads=8, bos_token_id=1, eos_token_id=None,
            pad_token_id=0)).bfloat16().save_pretrained(place)
    torch.distributed.barrier()
    net = LlamaForCausalLM.from_pretrained(place, dtype=torch.bfloat16, tp_plan="auto").eval()
    prompt = torch.arange(2, 34, device="cuda").view(1, 32)

    def step() -> None:
        net.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                     max_new_tokens=tokens, min_new_tokens=tokens)

    with torch.no_grad():
        yield "a token of Llama, 8 layers of 4096, tensor-parallel", 0, timed(2, step) / tokens


def beside_products(size: int) -> Iterator[tuple[str, int, float]]:
    """Matrix products in one stream, all-reduces in the group's, which both want multiprocessors."""
    import torch
    import torch.distributed as dist

    width, count = 8192, 256 << 20
    a, b, c = (torch.randn(width, width, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    x = torch.zeros(count // 2, dtype=torch.bfloat16, device="cuda")

    def both(products: int, sums: int) -> None:
        works = [dist.all_reduce(x, async_op=True) for _ in range(sums)]
        for _ in range(products):
            torch.mm(a, b, out=c)
        for work in works:
            work.wait()

    def product_beside(sums: int) -> Callable[[], float]:
        def milliseconds() -> float:
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            works = [dist.all_reduce(x, async_op=True) for _ in range(sums)]
            torch.mm(a, b, out=c)  # the first one begins before the all-reduces do
            began.record()
            for _ in range(4):
                torch.mm(a, b, out=c)
            ended.record()
            for work in works:
                work.wait()
            torch.cuda.synchronize()
            return began.elapsed_time(ended) / 4
        return milliseconds

    what = f"products of {width}^3 in bfloat16"
    for sums, how in ((0, "alone"), (16, "beside all-reduces")):
        each = product_beside(sums)
        each()
        slowest = torch.tensor([statistics.median(each() for _ in range(7)) * 1000], device="cuda")
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        yield f"{what}, each, {how}", count if sums else 0, slowest.item()
    yield f"12 {what}", 0, timed(3, lambda: both(12, 0))
    yield f"8 all-reduces of bfloat16, beside 12 {what}", count, timed(3, lambda: both(12, 8))


PROGRAMS = (all_reduces, decoding, beside_products, data_parallel, sharded, llama)


def rank_main(words: list[str]) -> None:
    import torch
    import torch.distributed as dist

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # With every library the same ones: on some machines cores differ by 40 %.
    cores = sorted(os.sched_getaffinity(0))
    each = max(1, min(8, len(cores) // size))
    os.sched_setaffinity(0, cores[rank * each:(rank + 1) * each] or cores)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{os.environ['MEETING']}/store", rank=rank,
                            world_size=size, device_id=torch.device("cuda", rank))
    for program in PROGRAMS:
        if words and not any(word in program.__name__ for word in words):
            continue
        try:
            for what, count, time_of_step in program(size):
                if rank == 0:
                    print(f"FIGURE {what}|{count or ''}|{time_of_step:.1f}", flush=True)
        except ImportError as error:
            if rank == 0:
                print(f"{program.__name__}: {error}", file=sys.stderr, flush=True)
        torch.cuda.empty_cache()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        ours = os.environ.get("LD_PRELOAD")
        assert not ours or ours in maps.read(), f"{ours} is not used"
    sys.stdout.flush()
    os._exit(0)  # what is captured and cached goes with the process


def run(library: str | None, ranks: int, limit: float, words: list[str]) -> dict[tuple[str, str], float]:
    """The figures of processes with that library, or with the NCCL that PyTorch finds."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as ended:
        processes = []
        for rank in range(ranks):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
                               MEETING=place, NCCL_NVLS_ENABLE="0")
            if library:
                environment["LD_PRELOAD"] = library
            process = subprocess.Popen([sys.executable, __file__, "--rank", "-", *words],
                                       env=environment, stdout=subprocess.PIPE, text=True)
            ended.callback(process.kill)
            processes.append(process)
        outputs = [process.communicate(timeout=limit)[0] for process in processes]
        if any(process.returncode for process in processes):
            sys.exit(f"with {library or 'NCCL'} the ranks ended with "
                     f"{[process.returncode for process in processes]}")
    figures = {}
    for line in outputs[0].splitlines():
        if line.startswith("FIGURE "):
            what, count, value = line.removeprefix("FIGURE ").split("|")
            figures[what, count] = float(value)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="with libnccl.so.2")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=100, help="seconds of a round of a library")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.rank:
        return rank_main(options.words)
    library = str((Path(options.folder) / "libnccl.so.2").resolve(strict=True))
    rounds: dict[str, list[dict[tuple[str, str], float]]] = {name: [] for name in LIBRARIES}
    # A machine that has done nothing yet is slow: what comes first is not counted, and neither
    # library is always the first of a round.
    run(None, options.ranks, options.limit, ["all_reduces"])
    for number in range(options.rounds):
        for name in LIBRARIES[::-1 if number % 2 else 1]:
            rounds[name].append(
                run(library if name == "OCCL" else None, options.ranks, options.limit, options.words))
    print("case,place,ranks,bytes,way,library,metric,unit,value", flush=True)
    print("| what | bytes | OCCL, us | NCCL, us | NCCL / OCCL |\n|---|---:|---:|---:|---:|", file=sys.stderr)
    for what, count in rounds["OCCL"][0]:
        times = [statistics.median(figures[what, count] for figures in rounds[name])
                 for name in LIBRARIES]
        for name, value in zip(LIBRARIES, times):
            print(f'"{what}",,{options.ranks},{count},,{name},time,us,{value:.1f}', flush=True)
        print(f"| {what} | {count} | {times[0]:,.1f} | {times[1]:,.1f} | {times[1] / times[0]:.2f} |",
              file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
