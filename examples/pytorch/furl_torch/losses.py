# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The cross entropy of many classes, as that of a language model over its vocabulary."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._ops import ops
from .noise import next_key
from .policy import GROUP, MANY_CLASSES

FEW_CLASSES_BITS = 8  # of fewer than MANY_CLASSES, where rows share a group


class CrossEntropy(torch.autograd.Function):
    """Of logits [n, c] and targets [n]. Keeps the probability of each target exactly, and all others as codes:
    without the largest probability of a row among them, the others' codes have a fine step."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, weight: Optional[Tensor], ignore_index: int,
                reduction: str, smoothing: float, bits: int) -> Tensor:
        logs = torch.log_softmax(logits, 1, dtype=torch.float32)
        counted = target != ignore_index
        place = target.where(counted, torch.zeros_like(target)).unsqueeze(1)
        weights = logs.new_ones(logs.shape[1]) if weight is None else weight.float()
        of_target = weights[place[:, 0]] * counted
        loss = -(1 - smoothing) * of_target * logs.gather(1, place)[:, 0]
        if smoothing > 0:
            loss -= smoothing / logs.shape[1] * counted * (logs @ weights)
        scale = of_target.sum().reciprocal() if reduction == "mean" else of_target.new_ones(())
        probabilities = logs.exp_()
        chosen = probabilities.gather(1, place)
        probabilities.scatter_(1, place, 0)
        bits = max(bits, FEW_CLASSES_BITS) if logits.shape[1] < MANY_CLASSES else bits
        blob = ops.compress(probabilities, bits, [], GROUP, *next_key())
        ctx.save_for_backward(blob, place, chosen, of_target, counted, weights, scale)
        ctx.like = logits.shape, logits.dtype
        ctx.settings = smoothing, bits
        return (loss if reduction == "none" else loss.sum() * scale).to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Optional[Tensor], ...]:
        """Of -sum(t * log p), where t are the targets' weights: p * sum(t) - t, times g."""
        blob, place, chosen, of_target, counted, weights, scale = ctx.saved_tensors
        shape, dtype = ctx.like
        smoothing, bits = ctx.settings
        g = (g * scale).reshape(-1, 1)
        of_target = (of_target * (1 - smoothing)).unsqueeze(1)
        each = smoothing / shape[1]
        total = of_target + each * weights.sum() * counted.unsqueeze(1)
        p = ops.decompress(blob, shape, [shape[1], 1], torch.float32, bits, [], GROUP)
        gradient = p.mul_(g * total).scatter_(1, place, (chosen * total - of_target) * g)
        if smoothing > 0:
            gradient.addcmul_(g * counted.unsqueeze(1), weights, value=-each)
        return gradient.to(dtype), None, None, None, None, None, None


def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, *, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0, bits: int = 4) -> Tensor:
    """As torch's, of logits [n, c] or [n, c, ...] and a class for each row. It keeps `bits` for each logit, in
    place of their logarithms in f32, and the probability of the right class exactly."""
    if target.is_floating_point():
        raise TypeError("target has probabilities: it must have the number of a class for each row")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction is {reduction!r}: must be 'none', 'mean' or 'sum'")
    if input.dim() < 2 or target.shape != input.shape[:1] + input.shape[2:]:
        raise ValueError(f"target has the shape {list(target.shape)}: for input of {list(input.shape)} it must "
                         f"have {list(input.shape[:1] + input.shape[2:])}")
    if weight is not None and weight.shape != input.shape[1:2]:
        raise ValueError(f"weight has the shape {list(weight.shape)}: must have [{input.shape[1]}], one for each class")
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing is {label_smoothing}: must be 0 to 1")
    logits = input.movedim(1, -1).reshape(-1, input.shape[1])
    loss = CrossEntropy.apply(logits, target.reshape(-1), weight, ignore_index, reduction, label_smoothing, bits)
    return loss.view(target.shape) if reduction == "none" else loss
