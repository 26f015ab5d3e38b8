# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Memory and throughput of models with nothing, checkpoints, save_on_cpu, autocast, furl, and several of them together:

    python benchmarks/memory_and_speed.py            # tiny models, seconds on a CPU
    python benchmarks/memory_and_speed.py torchvision:resnet50 transformers:gpt2 --image-size 224 --length 1024 \\
        --batches 16 32 64 128 256 --steps 20 --device cuda --plot figure.png

Each step is a forward and a backward pass and one of SGD. "kept" is what the forward pass leaves allocated for the
backward pass, by the count of the allocator, on a GPU of its memory alone; "peak" is the most that is allocated in a
step, where a GPU counts it. Seconds are medians, on a CPU of the processor.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint as torch_checkpoint

import furl_torch
from furl_torch.examine import kept_by
from furl_torch.subjects import LIBRARIES, Subject, Wanted, setting, subject_of

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tiny  # noqa: E402

LIBRARIES["tiny"] = lambda name, wanted: getattr(tiny, name)(wanted)


class Method(NamedTuple):
    """A way to train."""

    furl: Optional[dict[str, Any]] = None  # settings of compress_saved
    checkpoint: bool = False               # furl's where furl is, else torch's
    autocast: bool = False                 # to bfloat16
    on_cpu: bool = False                   # save_on_cpu


METHODS: dict[str, Method] = {
    "none": Method(),
    "checkpoint": Method(checkpoint=True),
    "save_on_cpu": Method(on_cpu=True),
    "autocast": Method(autocast=True),
    "furl, 4 bits": Method({"bits": 4}),
    "furl, 2 bits": Method({"bits": 2}),
    "furl, 1 bit": Method({"bits": 1}),
    "furl, 2 bits, as ActNN": Method({"bits": 2, "window": 1, "group": 256}),
    "furl, 2 bits, as DIVISION": Method({"bits": 2, "group": 256}),
    "furl, 2 bits, offload": Method({"bits": 2, "offload": True}),
    "furl, 2 bits, autocast": Method({"bits": 2}, autocast=True),
    "furl, 2 bits, checkpoint": Method({"bits": 2}, checkpoint=True),
    "furl, 2 bits, checkpoint, autocast": Method({"bits": 2}, checkpoint=True, autocast=True),
}


class Result(NamedTuple):
    """Of one model, one way to train it and one batch; bytes and seconds are None where memory did not suffice."""

    subject: str
    method: str
    batch: int
    kept: Optional[int] = None
    peak: Optional[int] = None  # 0 where nobody counts it
    seconds: Optional[float] = None


def blocks_of(model: nn.Module) -> list[nn.Module]:
    """The outermost modules with parts of types that are not torch's and that come more than once."""
    counts = Counter(type(m) for m in model.modules())

    def found(module: nn.Module) -> list[nn.Module]:
        own = not type(module).__module__.startswith("torch.nn")
        if own and counts[type(module)] > 1 and any(True for _ in module.children()):
            return [module]
        return [block for child in module.children() for block in found(child)]

    return found(model)


def add_checkpoints(model: nn.Module, is_furl: bool) -> None:
    """Around every block."""
    if hasattr(model, "config"):
        model.config.use_cache = False  # of transformers: a second run would fill the cache again
    blocks = blocks_of(model)
    if not blocks:
        raise ValueError(f"no blocks to checkpoint in {type(model).__name__}")
    for block in blocks:
        def call(*args: Any, forward: Callable[..., Any] = block.forward, **kwargs: Any) -> Any:
            if is_furl:
                return furl_torch.checkpoint(forward, *args, **kwargs)
            return torch_checkpoint(forward, *args, use_reentrant=False, **kwargs)

        block.forward = call  # type: ignore[method-assign]


class Surrounding(ExitStack):
    """All contexts of a method; may be entered again."""

    def __init__(self, method: Method, device: str) -> None:
        super().__init__()
        self._furl = furl_torch.compress_saved(**method.furl) if method.furl is not None else None
        self._method, self._device = method, device

    def __enter__(self) -> "Surrounding":
        if self._method.autocast:
            self.enter_context(torch.autocast(self._device, dtype=torch.bfloat16))
        if self._method.on_cpu:
            self.enter_context(save_on_cpu(pin_memory=self._device == "cuda"))
        if self._furl is not None:
            self.enter_context(self._furl)
        return super().__enter__()


def seconds_of(subject: Subject, context: ExitStack, steps: int, device: str) -> float:
    """Of one step, after one that is not counted."""
    model, draw = subject
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    times = []
    for _ in range(steps + 1):
        loss = draw()
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter() if device == "cuda" else time.process_time()
        with context:
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append((time.perf_counter() if device == "cuda" else time.process_time()) - begin)
    return statistics.median(times[1:])


def measure(spec: str, name: str, wanted: Wanted, steps: int) -> Result:
    """With a model of its own, and the same weights every time."""
    method, device = METHODS[name], wanted.device
    try:
        torch.manual_seed(0)
        model, draw = subject_of(spec, wanted)
        if method.checkpoint:
            add_checkpoints(model, method.furl is not None)
        context = Surrounding(method, device)
        kept = kept_by(draw(), torch.device(device), context)
        model.zero_grad()
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds = seconds_of((model, draw), context, steps, device)
        peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
        return Result(spec, name, wanted.batch, kept, peak, seconds)
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return Result(spec, name, wanted.batch)


def line_of(result: Result, plain: Optional[Result]) -> str:
    """Of the table. plain: the same without any method."""
    start = f"{result.method:36} {result.batch:5}"
    if result.kept is None or result.seconds is None or result.peak is None:
        return start + "  out of memory"
    ratio = f"{plain.kept / result.kept:6.1f}x" if plain and plain.kept and result.kept > 0 else " " * 7
    peak = f"{result.peak / 1e6:10.1f}" if result.peak else " " * 10
    return f"{start} {result.kept / 1e6:10.2f} {ratio} {peak} {result.batch / result.seconds:12.1f}"


def plot(results: Sequence[Result], path: Path) -> None:
    """Examples per second over bytes, a line of batches for each method."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    subjects = list(dict.fromkeys(r.subject for r in results))
    figure, axes = pyplot.subplots(1, len(subjects), figsize=(7 * len(subjects), 5), squeeze=False)
    for axis, subject in zip(axes[0], subjects):
        for number, method in enumerate(METHODS):
            some = [r for r in results if r.subject == subject and r.method == method and r.kept and r.seconds]
            if some:
                axis.plot([(r.kept or 0) / 1e6 for r in some], [r.batch / (r.seconds or 1) for r in some],
                          marker="os^vD<>"[number % 7], linewidth=1, label=method)
        axis.set(title=subject, xlabel="kept for the backward pass, MB", ylabel="examples per second", xscale="log")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main(arguments: Optional[Sequence[str]] = None) -> list[Result]:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["tiny:convolutions", "tiny:transformer"],
                        help="as for furl_torch.examine, or tiny:convolutions, tiny:transformer")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--batches", type=int, nargs="+", default=[4])
    parser.add_argument("--image-size", type=int, default=64)
    parser.add_argument("--length", type=int, default=128, help="of sequences")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--plot", type=Path, help="writes a figure there")
    a = parser.parse_args(arguments)
    results: list[Result] = []
    for spec in a.models:
        print(f"{spec + ', ' + a.device:36} {'batch':>5} {'kept, MB':>10} {'ratio':>7} {'peak, MB':>10} "
              f"{'examples/s':>12}")
        for batch in a.batches:
            plain = None
            for name in a.methods:
                wanted = Wanted(batch, a.image_size, a.length, a.device, dict(a.set))
                results.append(measure(spec, name, wanted, a.steps))
                plain = results[-1] if name == "none" else plain
                print(line_of(results[-1], plain), flush=True)
    if a.plot:
        plot(results, a.plot)
    return results


if __name__ == "__main__":
    main()
