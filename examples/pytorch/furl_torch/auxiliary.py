# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Auxiliary activation learning (Woo and Jeon, ICLR 2023). A layer gets the sum of its input and an auxiliary
activation, and keeps that alone: the gradient of its weight is made from it, that of its input stays exact. What the
model computes changes, in evaluation too, so that a converted model wants training."""

from __future__ import annotations

from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Callable, Iterator, Optional, Sequence, Union

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.nn.grad import conv2d_input, conv2d_weight

from .checkpoints import autocast_dtype
from .codec import CODED
from ._ops import ops
from .stand_ins import Residual, Run, Signs, StandIn

__all__ = ["AuxConv2d", "AuxLinear", "Residual", "Run", "Signs", "convert", "learning_indicators"]

class _Product(torch.autograd.Function):
    """The layer's product of x and the weight, whose gradient is made from `kept`, or from x, if it is wanted."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Optional[Tensor], weight: Tensor, bias: Optional[Tensor], layer: Any,
                keeps_x: bool, casts: bool) -> Tensor:
        ctx.layer, ctx.stand_in = layer, layer.stand_in
        ctx.like = torch.empty_strided(x.shape, ops.dense_stride(x), dtype=x.dtype, device="meta")
        ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
        # The weight itself, not the copy that autocast wants: that can be made again.
        ctx.save_for_backward(weight if ctx.needs_input_grad[0] else None, x if keeps_x else kept)
        if casts:
            weight, bias = weight.to(x.dtype), None if bias is None else bias.to(x.dtype)
        return layer.multiply(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Optional[Tensor], ...]:
        weight, kept = ctx.saved_tensors
        of_input = of_weight = of_bias = None
        if ctx.needs_input_grad[0]:
            of_input = ctx.layer.gradient_of_input(ctx.like.shape, weight.to(g.dtype), g)
        if ctx.needs_input_grad[2]:
            of_weight = ctx.layer.gradient_of_weight(ctx.stand_in.restore(kept, ctx.like), g).to(ctx.dtypes[0])
        if ctx.needs_input_grad[3]:
            of_bias = ctx.layer.by_features(g).sum(0).to(ctx.dtypes[1])
        return of_input, None, of_weight, of_bias, None, None, None


class _Auxiliary(nn.Module):
    """What both kinds of layers have."""

    stand_in: StandIn
    report: Optional[Callable[[float], None]] = None  # of the learning indicator of every call

    def forward(self, x: Tensor) -> Tensor:
        dtype = autocast_dtype(x.device.type) if x.dtype in CODED else None
        keeps = torch.is_grad_enabled() and bool(self.weight.requires_grad)
        total, kept = self.stand_in.add(x, dtype or x.dtype, keeps or self.report is not None)
        if self.report is not None and kept is not None:
            known = total.detach()
            error = known.float() - self.stand_in.restore(kept.detach(), total)
            self.report(1.0 - float(error.square().sum() / known.float().square().sum()))
        is_total = kept is total  # torch.compile wants no tensor twice
        return _Product.apply(total, kept if keeps and not is_total else None, self.weight, self.bias, self,
                              keeps and is_total, dtype is not None)


class AuxLinear(_Auxiliary, nn.Linear):
    """As torch.nn.Linear, of the sum of the input and a stand-in, which alone is kept."""

    def __init__(self, *arguments: Any, stand_in: StandIn = Signs(), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.stand_in = stand_in

    @staticmethod
    def multiply(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return F.linear(x, weight, bias)

    def gradient_of_input(self, size: Sequence[int], weight: Tensor, g: Tensor) -> Tensor:
        return g @ weight

    def gradient_of_weight(self, x: Tensor, g: Tensor) -> Tensor:
        return self.by_features(g).t() @ self.by_features(x)

    @staticmethod
    def by_features(x: Tensor) -> Tensor:
        return x.reshape(-1, x.shape[-1])


class AuxConv2d(_Auxiliary, nn.Conv2d):
    """As torch.nn.Conv2d with zeros around the image, as many on both sides; of the sum of the input and a stand-in,
    which alone is kept."""

    def __init__(self, *arguments: Any, stand_in: StandIn = Signs(), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        if _padding(self) is None:
            raise ValueError(f"padding is {self.padding!r} and padding_mode {self.padding_mode!r}: must be zeros, as "
                             "many before the image as behind it")
        self.stand_in = stand_in

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.dim() == 4 else super().forward(x.unsqueeze(0)).squeeze(0)

    def _how(self) -> tuple[Any, ...]:
        return self.stride, _padding(self), self.dilation, self.groups

    def multiply(self, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return F.conv2d(x, weight, bias, *self._how())

    def gradient_of_input(self, size: Sequence[int], weight: Tensor, g: Tensor) -> Tensor:
        return conv2d_input(size, weight, g, *self._how())  # type: ignore[no-untyped-call,unused-ignore]

    def gradient_of_weight(self, x: Tensor, g: Tensor) -> Tensor:
        return conv2d_weight(x, self.weight.shape, g, *self._how())  # type: ignore[no-untyped-call,unused-ignore]

    @staticmethod
    def by_features(x: Tensor) -> Tensor:
        return x.transpose(1, -1).flatten(0, -2)


def _padding(layer: nn.Conv2d) -> Optional[tuple[int, int]]:
    """Zeros above and on the left, if there are as many below and on the right."""
    left, right, top, bottom = layer._reversed_padding_repeated_twice
    return (top, left) if layer.padding_mode == "zeros" and (top, left) == (bottom, right) else None


@contextmanager
def learning_indicators(model: nn.Module) -> Iterator[dict[str, float]]:
    """Inside the `with`, every forward pass writes the learning indicator of each of these layers of the model, by
    name: 1 - |x - a|^2 / |x|^2, where x is what the layer multiplies and a what its weight learns from. Above 0, a can
    do for x. Where x is smaller than its signs it is below 0, as if the rate of learning were too large. It waits for
    the device."""
    found: dict[str, float] = {}
    layers = {name: m for name, m in model.named_modules() if isinstance(m, _Auxiliary)}
    try:
        for name, layer in layers.items():
            layer.report = partial(found.__setitem__, name)
        yield found
    finally:
        for layer in layers.values():
            layer.report = None


_Call = tuple[str, nn.Module, Sequence[int], Signs]  # name, layer, shape of the input, and the signs that fit it


def _calls(model: nn.Module, inputs: Sequence[Any]) -> list[_Call]:
    """Of the linear layers and convolutions that the model calls once, in their order."""
    seen: list[_Call] = []

    def see(name: str, layer: nn.Module, given: Any) -> None:
        if given:  # not called by keyword
            seen.append((name, layer, given[0].shape, _signs_for(given[0])))

    handles = [m.register_forward_pre_hook(partial(see, name)) for name, m in model.named_modules()
               if type(m) is nn.Linear or type(m) is nn.Conv2d and _padding(m) is not None]
    training = [(m, m.training) for m in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            model(*inputs)
    finally:
        for m, before in training:
            m.training = before
        for handle in handles:
            handle.remove()
    return [call for call in seen if sum(other[1] is call[1] for other in seen) == 1]


def _signs_for(x: Tensor) -> Signs:
    """Which of both is nearer to the direction of x: for the output of a ReLU or GELU that without -1."""
    x = x.float()
    above = x.clamp_min(0).sum().square() / (x > 0).sum().clamp_min(1)
    return Signs(negative=bool(x.abs().sum().square() / max(x.numel(), 1) > above))


def _runs(calls: Sequence[_Call], length: int) -> list[list[nn.Module]]:
    """Layers whose inputs have one shape, in the order of their calls, up to `length` in a run."""
    runs: list[list[nn.Module]] = []
    last: dict[Sequence[int], list[nn.Module]] = {}
    for _, layer, shape, _ in calls:
        if len(last.get(shape, ())) % length == 0:
            last[shape] = []
            runs.append(last[shape])
        last[shape].append(layer)
    return [run for run in runs if len(run) > 1]


def _end_runs(runs: Sequence[Run], *call: Any) -> None:
    """A hook before and after a forward pass: its last layer may have been left out, and the next pass's first one."""
    for run in runs:
        run.end()


def convert(model: nn.Module, kind: str, *inputs: Any, names: Union[str, Sequence[str]] = (),
            run_length: int = 3) -> int:
    """Turns linear layers and convolutions of a model, made of blocks of a ResNet or a transformer, say, into layers of
    this module, and says how many. They keep their parameters.

    kind: "asa", signs, or "ara", runs of up to run_length layers with inputs of the same shape.
    inputs: of one forward pass, which is done in evaluation and shows which layers are called in which order.
    names: patterns of the layers to convert ("blocks.*.mlp.*"), or one; with none, all but the first and the last.

    Layers that are called more than once or by keyword, and those of a subclass, stay as they are. Of a run, a forward
    pass of the model may leave out any layers but the first.
    """
    if kind not in ("asa", "ara"):
        raise ValueError(f"kind is {kind!r}: must be 'asa' or 'ara'")
    if run_length < 2:
        raise ValueError(f"run_length is {run_length}: must be at least 2")
    if not inputs:
        raise ValueError("inputs is empty: must have what the model is called with")
    encoders = [(m, m.activation_relu_or_gelu) for m in model.modules() if isinstance(m, nn.TransformerEncoderLayer)]
    try:
        for m, _ in encoders:  # their short way in evaluation would not call the layers
            m.activation_relu_or_gelu = 0
        calls = _calls(model, inputs)
    except BaseException:
        for m, before in encoders:
            m.activation_relu_or_gelu = before
        raise
    patterns = [names] if isinstance(names, str) else names
    calls = [c for c in calls if any(fnmatchcase(c[0], p) for p in patterns)] if patterns else calls[1:-1]
    stand_ins: dict[nn.Module, StandIn] = {}
    if kind == "asa":
        stand_ins = {layer: signs for _, layer, _, signs in calls}
    else:
        layers_of_runs = _runs(calls, run_length)
        runs = [Run(len(layers)) for layers in layers_of_runs]
        for run, layers in zip(runs, layers_of_runs):
            stand_ins.update((layer, Residual(run, i)) for i, layer in enumerate(layers))
        model.register_forward_pre_hook(partial(_end_runs, runs))
        model.register_forward_hook(partial(_end_runs, runs))
    for layer, stand_in in stand_ins.items():
        layer.__class__ = AuxLinear if isinstance(layer, nn.Linear) else AuxConv2d
        layer.stand_in = stand_in  # type: ignore[assignment]
    return len(stand_ins)
