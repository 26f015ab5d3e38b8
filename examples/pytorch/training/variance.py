# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Squared error that compressed activations leave in the gradient of a trained net, with the same bits for every
tensor and with bits by sensitivity, over the bits that are kept; and the same of the gradient of which each parameter's
part is divided by its root mean square, as Adam does."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path
from typing import Callable, NamedTuple

import torch
from torch import Tensor, nn

import furl_torch
from data import load_images, load_text
from furl_torch.examine import Loss, compare, gradient
from nets import NETS
from train import optimizer_of

CODECS = {"rotated": {}, "min-max": {"window": 1, "group": 256}}  # furl's default, and ActNN's
MEANS = (1, 1.5, 2, 2.5, 3, 4)
SAME, AUTO, RELATIVE = "the same", "by sensitivity", "by relative sensitivity"
SEED = 1


class Point(NamedTuple):
    """One way to compress one net."""

    net: str
    codec: str
    kind: str
    mean_bits: float
    kept_bits: float  # for each value that autograd would have kept, masks and metadata included
    error: float      # squared, over the squared norm of the gradient
    projection: float
    relative_error: float  # with each parameter's gradient over its root mean square


def trained(net: str, steps: int, batch: int) -> tuple[nn.Module, Callable[[], Loss]]:
    """A net, and what draws a batch and returns its loss."""
    torch.manual_seed(SEED)
    furl_torch.manual_seed(SEED)
    inputs, labels = (load_text if net == "gpt" else load_images)("train", torch.device("cpu"))
    model = NETS[net]()
    optimizer = optimizer_of(net, model)

    def draw() -> Loss:
        chosen = torch.randint(len(labels), (batch // 8 if net == "gpt" else batch, ))

        def loss() -> Tensor:
            return nn.functional.cross_entropy(model(inputs[chosen]).flatten(0, -2), labels[chosen].flatten())

        return loss

    for _ in range(steps):
        loss = draw()()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, draw


def points_of(net: str, steps: int, batch: int, draws: int) -> list[Point]:
    """Bits are chosen on one batch, and errors taken on another."""
    model, draw = trained(net, steps, batch)
    measured, loss = draw(), draw()
    exact = gradient(model, loss, nullcontext())
    sizes = [p.numel() for p in model.parameters()]
    scale = torch.cat([part.square().mean().rsqrt().expand(len(part)) for part in exact.split(sizes)])
    points = []
    for codec, settings in CODECS.items():
        for mean_bits in MEANS:
            for kind in (SAME, AUTO, RELATIVE) if mean_bits == int(mean_bits) else (AUTO, RELATIVE):
                if kind == SAME:
                    context = furl_torch.compress_saved(int(mean_bits), **settings)
                else:
                    context = furl_torch.compress_saved("auto", mean_bits=mean_bits, **settings)
                    context.measure(measured, relative=kind == RELATIVE)
                found = compare(exact, lambda: gradient(model, loss, context), draws)
                relative = compare(exact * scale, lambda: gradient(model, loss, context) * scale, draws)
                kept = context.stats().total
                points.append(Point(net, codec, kind, mean_bits, 32 * kept.bytes_after / kept.bytes_before,
                                    found.error ** 2, found.projection, relative.error ** 2))
    return points


def print_points(points: list[Point]) -> None:
    """A table."""
    for p in points:
        print(f"{p.net:8} {p.codec:8} {p.mean_bits:4} bits, {p.kind:24} {p.kept_bits:6.3f} kept, "
              f"error {p.error:8.5f}, projection {p.projection:6.3f}, relative {p.relative_error:8.5f}", flush=True)


def plot(points: list[Point], path: Path) -> None:
    """A panel for each net."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    nets = list(dict.fromkeys(p.net for p in points))
    figure, axes = pyplot.subplots(1, len(nets), figsize=(4.2 * len(nets), 3.4), squeeze=False)
    for axis, net in zip(axes[0], nets):
        for codec, colour in zip(CODECS, ("tab:blue", "tab:orange")):
            for kind, label, line in ((SAME, "the same bits", "s--"), (AUTO, "bits by sensitivity", "o-")):
                some = [p for p in points if (p.net, p.codec, p.kind) == (net, codec, kind)]
                axis.plot([p.kept_bits for p in some], [p.error for p in some], line, color=colour, markersize=4,
                          linewidth=1, label=f"{codec}, {label}")
        axis.set(title=net, xlabel="bits kept per value", yscale="log")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("squared error of the gradient\nover its squared norm")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=72, pil_kwargs={"optimize": True})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    parser.add_argument("--steps", type=int, default=100, help="of training, without compression")
    parser.add_argument("--batch", type=int, default=64, help="images; and an eighth as many texts")
    parser.add_argument("--draws", type=int, default=8, help="of noise")
    parser.add_argument("--plot", type=Path, help="a PNG")
    arguments = parser.parse_args()
    points = []
    for net in arguments.nets:
        points += points_of(net, arguments.steps, arguments.batch, arguments.draws)
        print_points([p for p in points if p.net == net])
    if arguments.plot:
        plot(points, arguments.plot)


if __name__ == "__main__":
    main()
