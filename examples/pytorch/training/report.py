# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""A table and a plot of trainings."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Mapping, Sequence

import torch

if TYPE_CHECKING:
    from train import Run


def mean_and_deviation(values: Sequence[float]) -> str:
    """Over seeds."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):7.3f} +- {deviation:5.3f}"


def _range_and_middle(indicators: Mapping[str, float]) -> str:
    values = indicators.values()
    return f"{min(values):.2f} to {max(values):.2f} ({statistics.median(values):.2f})"


def print_table(net: str, runs: "Sequence[Run]", batch: int) -> None:
    """Means over the seeds, with their standard deviation."""
    print(f"{net:20} {torch.__version__:>8} {'loss':>9} {'':8} {'accuracy, %':>12} {'':5} "
          f"{'saved, MB':>10} {'ratio':>7} {'s/step':>8}")
    for codec in dict.fromkeys(r.codec for r in runs):
        some = [r for r in runs if r.codec == codec]
        one = some[0]
        saved = f"{one.saved_bytes / 1e6:10.3f} {max(r.original_bytes for r in runs) / one.saved_bytes:6.2f}x"
        seconds = statistics.median(r.seconds_per_step for r in some)
        line = (f"{codec:29} {mean_and_deviation([r.final_loss() for r in some])} "
                f"{mean_and_deviation([r.accuracy for r in some])} {saved} {seconds:8.4f}")
        if one.cuda_peak_bytes:
            line += f"  peak {one.cuda_peak_bytes / 1e6:.1f} MB, {batch / seconds:.0f} examples/s"
        if one.indicators:
            line += "  indicators " + ", ".join(_range_and_middle(i) for i in one.indicators)
        print(line, flush=True)


def smooth(losses: Sequence[float], width: int = 15) -> list[float]:
    """Each is the mean of itself and up to `width` before it."""
    return [statistics.mean(losses[max(0, i - width):i + 1]) for i in range(len(losses))]


def plot(runs: "Sequence[Run]", path: Path) -> None:
    """Loss curves, each a mean over the seeds, and the bytes that layers keep in a step."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    nets = list(dict.fromkeys(r.net for r in runs))
    codecs = list(dict.fromkeys(r.codec for r in runs))
    figure, axes = pyplot.subplots(len(nets), 2, figsize=(12, 4 * len(nets)), squeeze=False)
    for (left, right), net in zip(axes, nets):
        for codec in codecs:
            curves = [r.losses for r in runs if r.net == net and r.codec == codec]
            left.plot(smooth([statistics.mean(c) for c in zip(*curves)]), label=codec, linewidth=1)
        left.set(title=f"{net}: training loss", xlabel="step", ylabel="cross entropy", yscale="log")
        left.legend()
        some = [r for r in runs if r.net == net and r.modules]
        names = [n for n, (before, _) in some[0].modules.items() if before >= 10000]
        right.bar(range(len(names)), [some[0].modules[n][0] / 1e6 for n in names], color="lightgrey",
                  label="as they are")
        for codec in codecs:
            shown = [r for r in some if r.codec == codec][:1]
            for r in shown:
                right.plot([r.modules[n][1] / 1e6 for n in names], ".", label=codec)
        right.set(title=f"{net}: bytes kept per layer and step", ylabel="MB", yscale="log")
        right.set_xticks(range(len(names)))
        right.set_xticklabels(names, rotation=90, fontsize=6)
        right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=80)
