# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a small ViT on Fashion-MNIST in several processes. Gradients travel as they are, by torch's hooks that
compress them, and by furl's."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch import multiprocessing, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import furl_torch
from data import load_images
from furl_torch.comm import AllReduceState, all_reduce_hook
from nets import ViT
from train import accuracy_of, optimizer_of

POWER_SGD_BEGINS = 10  # step; it sends gradients as they are before


def _power_sgd(rank: int) -> tuple[Any, Callable[..., Any]]:
    return PowerSGDState(None, rank, POWER_SGD_BEGINS, random_seed=0), powerSGD_hook


HOOKS: dict[str, Callable[[], tuple[Any, Any]]] = {  # state and hook
    "f32": lambda: (None, None),
    "fp16_compress_hook": lambda: (None, fp16_compress_hook),
    "PowerSGD, rank 1": lambda: _power_sgd(1),
    "PowerSGD, rank 4": lambda: _power_sgd(4),
    "8 bits": lambda: (AllReduceState(8), all_reduce_hook),
    "4 bits": lambda: (AllReduceState(4), all_reduce_hook),
    "2 bits": lambda: (AllReduceState(2), all_reduce_hook),
    "2 bits, error feedback": lambda: (AllReduceState(2, error_feedback=True), all_reduce_hook),
}


@dataclass
class Run:
    """One training."""

    hook: str
    loss: float      # mean over the last quarter of the steps, and over the ranks
    accuracy: float  # of the test images, in percent
    bytes_written: float  # by a process, to its sockets, in a step of the second half
    error: float     # squared, of the last gradient, in parts of the exact one's square; with what was fed back
    is_equal: bool   # whether all ranks have the same parameters, bit for bit


def bytes_written() -> int:
    """By this process, so far: to sockets, since it writes no files."""
    with open("/proc/self/io", encoding="ascii") as file:
        return int(dict(line.split(": ") for line in file)["wchar"])


def mean_of(x: torch.Tensor) -> torch.Tensor:
    """Over the ranks, exactly."""
    x = x.clone()
    dist.all_reduce(x)
    return x.div_(dist.get_world_size())


def gradient_of(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def error_of_gradient(model: DistributedDataParallel, backward: Callable[[], Any]) -> float:
    """Squared, in parts of the exact one's square."""
    model.zero_grad()
    with model.no_sync():
        backward()
    exact = mean_of(gradient_of(model))
    model.zero_grad()
    backward()
    return float((gradient_of(model) - exact).square().sum() / exact.square().sum())


def train(hook: str, seed: int, steps: int, batch: int) -> Run:
    """The same weights and batches for every hook. batch: images of all ranks together."""
    rank, num_ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(seed)
    furl_torch.manual_seed(seed)
    images, labels = load_images("train", torch.device("cpu"))
    order = torch.randint(len(labels), (steps + 1, num_ranks, batch // num_ranks))[:, rank]
    model = DistributedDataParallel(ViT())  # which has no buffers to be sent
    state, function = HOOKS[hook]()
    if function is not None:
        model.register_comm_hook(state, function)
    optimizer = optimizer_of("vit", model)
    losses, begin = [], 0

    def backward(step: int) -> torch.Tensor:
        loss = nn.functional.cross_entropy(model(images[order[step]]), labels[order[step]])
        loss.backward()
        return loss.detach()

    for step in range(steps):
        if step == steps // 2:
            begin = bytes_written()
        optimizer.zero_grad()
        losses.append(backward(step))
        optimizer.step()
    written = (bytes_written() - begin) / (steps - steps // 2)
    error = error_of_gradient(model, lambda: backward(steps))
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
    others = [torch.empty_like(parameters) for _ in range(num_ranks)]
    dist.all_gather(others, parameters)
    loss = float(mean_of(torch.stack(losses[-(steps // 4):]).mean()))
    accuracy = accuracy_of(model.module, *load_images("t10k", torch.device("cpu"))) if rank == 0 else 0.0
    return Run(hook, loss, accuracy, written, error, all(torch.equal(o, parameters) for o in others))


def mean_and_deviation(values: list[float]) -> str:
    return f"{statistics.mean(values):6.3f} +- {statistics.stdev(values) if len(values) > 1 else 0:.3f}"


def report(runs: list[Run], exact: list[Run]) -> str:
    """A line of the table: one hook."""
    mb = statistics.mean(r.bytes_written for r in runs) / 1e6
    ratio = mb * 1e6 / statistics.mean(r.bytes_written for r in exact)
    return (f"| {runs[0].hook} | {mean_and_deviation([r.loss for r in runs])} | "
            f"{mean_and_deviation([r.accuracy for r in runs])} | {mb:.4f} | {ratio:.3f} | "
            f"{statistics.mean(r.error for r in runs):.2e} | {'yes' if all(r.is_equal for r in runs) else 'no'} |")


def be_rank(rank: int, num_ranks: int, file: str, arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=num_ranks)
    runs: dict[str, list[Run]] = {hook: [] for hook in arguments.hooks}
    if rank == 0:
        print(f"\n{num_ranks} processes, torch {torch.__version__}\n"
              "| hook | loss | accuracy, % | MB written per step | of f32 | error of a gradient | equal parameters |\n"
              "|---|---|---|---|---|---|---|", flush=True)
    for hook in arguments.hooks:
        for seed in arguments.seeds:
            runs[hook].append(train(hook, seed, arguments.steps, arguments.batch))
        if rank == 0:
            print(report(runs[hook], runs[arguments.hooks[0]]), flush=True)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], help="numbers of processes")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64, help="images of all processes together")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--hooks", nargs="+", choices=HOOKS, default=list(HOOKS),
                        help="the others are compared with the first")
    arguments = parser.parse_args()
    for num_ranks in arguments.ranks:
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "store")
            multiprocessing.spawn(be_rank, (num_ranks, file, arguments), nprocs=num_ranks)


if __name__ == "__main__":
    main()
