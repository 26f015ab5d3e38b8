# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Trains a small ResNet and ViT on Fashion-MNIST and a small GPT on text, with and without compressed activations, or
with auxiliary ones."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Optional

import torch
from torch import Tensor, nn

import furl_torch
from data import load_images, load_text
from nets import NETS
from report import plot, print_table

CODECS: dict[str, Optional[dict[str, int]]] = {
    "none": None,
    "2 bits, min-max": {"bits": 2, "window": 1, "group": 256},  # as ActNN has them
    "2 bits": {"bits": 2},
    "1 bit": {"bits": 1},
}
# With the modules of furl_torch in place of torch's ReLU and GELU, so that only the inputs of layers differ.
AUXILIARY: dict[str, tuple[Optional[str], Optional[dict[str, int]]]] = {  # stand-in, codec
    "none": (None, None),
    "signs": ("asa", None),
    "residuals": ("ara", None),
    "2 bits": (None, {"bits": 2}),
    "signs, rest 2 bits": ("asa", {"bits": 2}),
    "residuals, 2 bits": ("ara", {"bits": 2}),
}


@dataclass
class Run:
    """One training."""

    net: str
    codec: str
    seed: int
    losses: list[float] = field(default_factory=list)  # of every step
    accuracy: float = 0.0           # of the test set, in percent: of classes or of next characters
    seconds_per_step: float = 0.0   # median
    saved_bytes: int = 0            # per step, all that autograd kept but parameters
    original_bytes: int = 0         # the same as it would have been
    modules: dict[str, tuple[int, int]] = field(default_factory=dict)  # original and saved bytes
    indicators: list[dict[str, float]] = field(default_factory=list)  # of the first and the last step, by layer
    cuda_peak_bytes: int = 0        # max_memory_allocated, where there is a GPU

    def final_loss(self) -> float:
        """Mean over the last quarter of the steps."""
        return statistics.mean(self.losses[-max(1, len(self.losses) // 4):])


def optimizer_of(net: str, model: nn.Module) -> torch.optim.Optimizer:
    if net == "resnet":
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    return torch.optim.Adam(model.parameters(), lr=1e-3)


@torch.no_grad()
def accuracy_of(model: nn.Module, inputs: Tensor, labels: Tensor) -> float:
    model.eval()
    right = sum(int((model(x).argmax(-1) == y).sum())
                for x, y in zip(inputs.split(500), labels.split(500)))
    return 100.0 * right / labels.numel()


def indicators_of(model: nn.Module, inputs: Tensor) -> dict[str, float]:
    with torch.no_grad(), furl_torch.auxiliary.learning_indicators(model) as found:
        model(inputs)
    return dict(found)


def saved_bytes_of(model: nn.Module, inputs: Tensor) -> int:
    """What autograd keeps where nothing is compressed."""
    with furl_torch.compress_saved() as context, furl_torch.skip():
        model(inputs)
    return context.stats().total.bytes_after


def train(net: str, codec: str, seed: int, steps: int, batch: int,
          training: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], is_auxiliary: bool = False) -> Run:
    """The same weights and batches for every codec, one of CODECS or AUXILIARY."""
    run = Run(net, codec, seed)
    torch.manual_seed(seed)
    furl_torch.manual_seed(seed)
    inputs, labels = training
    is_cuda = inputs.is_cuda
    model = NETS[net]().to(inputs.device)
    kind, settings = AUXILIARY[codec] if is_auxiliary else (None, CODECS[codec])
    if is_auxiliary:
        furl_torch.modules.replace_modules(model)
    if kind:
        furl_torch.auxiliary.convert(model, kind, inputs[:batch])
    optimizer = optimizer_of(net, model)
    order = torch.randint(len(labels), (steps, batch))
    context = furl_torch.compress_saved(**settings, model=model) if settings else None
    if is_cuda:
        torch.cuda.reset_peak_memory_stats()
    if kind:
        run.indicators.append(indicators_of(model, inputs[order[0]]))
    times = []
    for chosen in order.to(inputs.device):
        begin = time.perf_counter()
        with context or nullcontext():
            logits = model(inputs[chosen])
            loss = nn.functional.cross_entropy(logits.flatten(0, -2), labels[chosen].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.losses.append(loss.item())
        times.append(time.perf_counter() - begin)
    run.seconds_per_step = statistics.median(times)
    if is_cuda:
        run.cuda_peak_bytes = torch.cuda.max_memory_allocated()
    if context:
        stats = context.stats()
        run.original_bytes, run.saved_bytes = stats.total.bytes_before, stats.total.bytes_after
        run.modules = {n: (c.bytes_before, c.bytes_after) for n, c in stats.modules.items()}
    else:
        run.original_bytes = run.saved_bytes = saved_bytes_of(model, inputs[order[-1]])
    if kind:
        run.indicators.append(indicators_of(model, inputs[order[-1]]))
    with torch.no_grad():
        for chosen in order[-20:].to(inputs.device):  # batch statistics lag behind the weights
            model(inputs[chosen])
    run.accuracy = accuracy_of(model, *test)
    return run


def failures(runs: list[Run]) -> list[str]:
    """What is not as it should be: 2 bits at least 9 times smaller, and losses like those without."""
    num_seeds = len({r.seed for r in runs})
    most = 1 + 0.25 / num_seeds ** 0.5  # losses of two seeds differ by a tenth
    found = []
    for net in sorted({r.net for r in runs}):
        mine = [r for r in runs if r.net == net]
        plain = statistics.mean(r.final_loss() for r in mine if r.codec == "none")
        for codec in CODECS:
            some = [r for r in mine if r.codec == codec]
            loss = statistics.mean(r.final_loss() for r in some)
            if loss > most * plain:
                found.append(f"{net}, {codec}: loss {loss:.4f}, without {plain:.4f}")
            for r in some:
                if codec.startswith("2 bits") and r.original_bytes < 9 * r.saved_bytes:
                    found.append(f"{net}, {codec}: {r.saved_bytes} bytes of {r.original_bytes}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64, help="images; and an eighth as many texts")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--auxiliary", action="store_true", help="signs and residuals in place of inputs of layers")
    parser.add_argument("--json", type=Path, help="write all runs to this file")
    parser.add_argument("--plot", type=Path, help="draw loss curves and bytes per layer: a PNG")
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    runs = []
    for net in arguments.nets:
        load = load_text if net == "gpt" else load_images
        batch = arguments.batch // 8 if net == "gpt" else arguments.batch
        training, test = load("train", device), load("t10k", device)
        for seed in arguments.seeds:
            for codec in AUXILIARY if arguments.auxiliary else CODECS:
                runs.append(train(net, codec, seed, arguments.steps, batch, training, test, arguments.auxiliary))
        print_table(net, [r for r in runs if r.net == net], batch)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(r) for r in runs]))
    if arguments.plot:
        plot(runs, arguments.plot)
    wrong = [] if arguments.auxiliary else failures(runs)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
