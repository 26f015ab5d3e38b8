# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What compress_saved does to the gradient of a model, operator by operator:

    python -m furl_torch.examine timm:vit_small_patch16_224
    python -m furl_torch.examine torchvision:resnet50 --batch 16 --steps 100
    python -m furl_torch.examine transformers:gpt2 --set n_layer=2 --set n_embd=256
    python -m furl_torch.examine package.module:function

A function returns a model, and another function that draws a batch and returns its loss:

    def example():
        model = nn.Linear(64, 10)
        def draw():
            x, labels = torch.randn(32, 64), torch.randint(10, (32, ))
            return lambda: F.cross_entropy(model(x), labels)
        return model, draw
"""

from __future__ import annotations

import argparse
import ctypes
import gc
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Callable, ContextManager, NamedTuple, Optional, Sequence

import torch
from torch import Tensor, nn

from . import contents, policy
from ._ops import ops
from .context import compress_saved
from .meter import Count
from .policy import AS_IS, Demand
from .saved import Saved, SavedView
from .subjects import Draw, Loss, Wanted, setting, subject_of

SEED = 1  # of the step that is examined


class Comparison(NamedTuple):
    """Gradients of several draws of the noise with the exact one, all over its norm."""

    projection: float = 1  # on the exact one, mean: 1 where there is no bias
    error: float = 0       # norm of the difference, root mean square
    norm: float = 1        # root mean square


@dataclass
class Note:
    """One tensor that one operator saved."""

    operator: str
    asked: Demand      # by this operator
    kept: Saved  # as all operators together ask that save the tensor
    before: int        # bytes; 0 for parameters, which are not counted


@dataclass
class Row:
    """All that one operator saved. The bytes of a tensor count where the most is asked for it."""

    operator: str
    kinds: "Counter[str]" = field(default_factory=Counter)
    before: int = 0
    after: int = 0
    comparison: Comparison = Comparison()


class Observer(compress_saved):
    """Notes who saves what. With a plan, keeps the n-th tensor as the plan says."""

    def __init__(self, bits: int, plan: Optional[Sequence[Demand]] = None) -> None:
        super().__init__(bits)
        self.notes: list[Note] = []
        self._plan = plan
        self._asked = AS_IS
        self._is_parameter = False

    def _pack(self, x: Tensor) -> SavedView:
        if self._plan is not None:
            self._known.clear()  # the plan has joined the demands of all operators already
        packed = super()._pack(x)
        before = 0 if self._is_parameter else contents.tensor_bytes(x)
        self.notes.append(Note(self._operator(x), self._asked, packed.saved, before))
        return packed

    def _demand(self, x: Tensor, action: int, operators: Sequence[str], argument: int) -> Demand:
        self._is_parameter = action == contents.PARAMETER
        asked = super()._demand(x, action, operators, argument)
        self._asked = asked if self._plan is None else self._plan[len(self.notes)]
        return self._asked

    def _operator(self, x: Tensor) -> str:
        """The innermost that the table has, or else the innermost."""
        operators: list[str] = ops.consumers(x)[0] or ["outside operators"]
        return next((o for o in operators if o in self._table), operators[0])


def gradient(model: nn.Module, loss: Loss, context: ContextManager[object]) -> Tensor:
    """Of all parameters, as one row. Dropout is the same in every call."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(SEED)
    with context:
        value = loss()
    value.backward()  # type: ignore[no-untyped-call,unused-ignore]
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def compare(exact: Tensor, draw: Callable[[], Tensor], draws: int) -> Comparison:
    """The exact gradient with those that draw makes."""
    square = float(exact @ exact)
    projection = error = norm = 0.0
    for _ in range(draws):
        g = draw()
        projection += float(g @ exact) / square / draws
        norm += float(g @ g) / square / draws
        error += float((g - exact).square().sum()) / square / draws
    return Comparison(projection, error ** 0.5, norm ** 0.5)


class _MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def allocated(device: torch.device) -> int:
    """Bytes at this moment by the count of the allocator, which knows nothing of furl; 0 where it has none."""
    gc.collect()
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2  # glibc 2.33
    except (AttributeError, TypeError, OSError):
        return 0
    mallinfo.restype = _MallInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


class Memory(NamedTuple):
    """Bytes of one step."""

    exact: int      # kept for the backward pass without furl, by the count of the allocator
    kept: int       # with it
    counted: Count  # both by furl's count
    peak: int       # of what is kept and what is restored, in the backward pass


def kept_by(loss: Loss, device: torch.device, context: ContextManager[object]) -> int:
    """Bytes that a forward pass leaves allocated for the backward pass, by the count of the allocator."""
    with context:  # what stays allocated after the first step is not of a step
        loss().backward()  # type: ignore[no-untyped-call,unused-ignore]
    before = allocated(device)
    with context:
        value = loss()
    after = allocated(device)
    value.backward()  # type: ignore[no-untyped-call,unused-ignore]
    return after - before


def memory_of(loss: Loss, device: torch.device, bits: int) -> Memory:
    """Of one step, without furl and with it."""
    context = compress_saved(bits)
    return Memory(kept_by(loss, device, nullcontext()), kept_by(loss, device, context), context.stats().total,
                  context.live.backward_peak)


def describe(kept: Saved) -> str:
    """As what a tensor is kept, in words."""
    bits, window, group = kept.demand[:3]
    if isinstance(kept.content, contents.SavedAsIs):
        return "as it is"
    if kept.content.dtype == torch.bool:
        return "1 bit, exact"
    if kept.demand.classes is not None:
        return f"{bits} bits of exp in groups of {group}"
    if bits in (policy.EXACT, policy.SHAPE, policy.SIGNS):
        return {policy.EXACT: "packed, exact", policy.SHAPE: "shape", policy.SIGNS: "signs"}[bits]
    means = f", means of {' x '.join(str(w) for w in window[2:])}" if window else ""
    if group != policy.ROTATED:
        return f"{bits} bits in groups of {group}{means}"
    if isinstance(kept.content, contents.SavedBlob) and kept.content.has_mask:
        means = ", mean of positives"
    return f"{bits} bits rotated{', normalised' if kept.demand.token else means}"


def planned(note: Note) -> Demand:
    """What is kept, for the operator that asked."""
    kept = note.kept.demand
    return kept if kept.bits == policy.EXACT else kept._replace(signs=note.asked.signs)


def rows_of(notes: Sequence[Note]) -> list[Row]:
    """One for each operator."""
    rows: dict[str, Row] = {}
    strictest: dict[int, Note] = {}
    for note in notes:
        if note.before:
            rows.setdefault(note.operator, Row(note.operator)).kinds[describe(note.kept)] += 1
            other = strictest.get(id(note.kept))
            if other is None or note.asked.bits > other.asked.bits:
                strictest[id(note.kept)] = note
    for note in strictest.values():
        rows[note.operator].before += note.before
        rows[note.operator].after += note.kept.num_bytes
    return list(rows.values())


def examine(model: nn.Module, loss: Loss, bits: int = 2, draws: int = 16) -> str:
    """The report on one step."""
    exact = gradient(model, loss, nullcontext())
    observer = Observer(bits)
    gradient(model, loss, observer)
    rows = rows_of(observer.notes)
    for row in rows:
        plan = [planned(n) if n.operator == row.operator else AS_IS for n in observer.notes]
        if any(demand != AS_IS for demand in plan):
            row.comparison = compare(exact, lambda: gradient(model, loss, Observer(bits, plan)),
                                     max(1, draws // 4))
    del observer
    total = compare(exact, lambda: gradient(model, loss, compress_saved(bits)), draws)
    del exact
    return report(rows, total, memory_of(loss, next(model.parameters()).device, bits))


def report(rows: list[Row], total: Comparison, memory: Memory) -> str:
    """A table, and a few sentences."""
    rows.sort(key=lambda row: -row.comparison.error)
    lines = [f"{'saved by':44} {'MB':>9} {'kept':>8} {'error':>8} {'projection':>10}  tensors"]
    for row in rows:
        lines.append(f"{row.operator:44} {row.before / 1e6:9.3f} {row.after / 1e6:8.3f} "
                     f"{row.comparison.error:8.3f} {row.comparison.projection:10.3f}  "
                     + "; ".join(f"{n} x {kind}" for kind, n in row.kinds.most_common()))
    lines.append(f"\nThe gradient has a projection of {total.projection:.3f} on the exact one, an error of "
                 f"{total.error:.3f} and a norm of {total.norm:.3f} times the exact norm.")
    if memory.exact > 0:
        lines.append(f"Autograd keeps {memory.kept / 1e6:.2f} MB in place of {memory.exact / 1e6:.2f}: "
                     f"{memory.exact / memory.kept:.1f} times less.")
    lines.append(f"By furl's count it keeps {memory.counted.bytes_after / 1e6:.2f} MB in place of "
                 f"{memory.counted.bytes_before / 1e6:.2f}; with what is restored, at most "
                 f"{memory.peak / 1e6:.2f} MB in the backward pass.")
    if rows and rows[0].comparison.error > 0:
        lines.append(f"The most comes from what {rows[0].operator} saves: alone, an error of "
                     f"{rows[0].comparison.error:.3f} and a projection of {rows[0].comparison.projection:.3f}.")
    return "\n".join(lines)


def train(model: nn.Module, draw: Draw, steps: int, rate: float) -> None:
    """Without compression, each step on a batch of its own."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(steps):
        loss = draw()
        optimizer.zero_grad(set_to_none=True)
        loss().backward()  # type: ignore[no-untyped-call,unused-ignore]
        optimizer.step()


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """The command."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(prog="python -m furl_torch.examine", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="torchvision:NAME, timm:NAME, transformers:TYPE or module:function")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--length", type=int, default=64, help="of sequences")
    parser.add_argument("--steps", type=int, default=0, help="of training before")
    parser.add_argument("--rate", type=float, default=1e-3, help="of learning, in these steps")
    parser.add_argument("--bits", type=int, default=2)
    parser.add_argument("--draws", type=int, default=16, help="of noise; a fourth of them for each operator")
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    parser.add_argument("--set", type=setting, action="append", default=[], metavar="NAME=VALUE",
                        help="of the model or its configuration, any number of times")
    a = parser.parse_args(arguments)
    torch.manual_seed(SEED)
    model, draw = subject_of(a.model, Wanted(a.batch, a.image_size, a.length, a.device, dict(a.set)))
    train(model, draw, a.steps, a.rate)
    print(examine(model, draw(), a.bits, a.draws))


if __name__ == "__main__":
    main()
