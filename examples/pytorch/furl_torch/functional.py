# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Operators that keep for their backward pass only what it needs, where hooks cannot know it. They
work with and without compress_saved, which lets their blobs pass. None can be differentiated twice.
"""

from __future__ import annotations

from typing import Any, Sequence, Union

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .contents import laid_out
from .graph import eagerly
from .losses import cross_entropy
from .noise import next_key, operator_key
from ._ops import ops
from .policy import GROUP

__all__ = ["activity_penalty", "cross_entropy", "dropout", "gelu", "max_pool2d", "relu"]


LEAST_OF_ALL = 1 - 2**-17  # the probability that is rounded to 1


def _is_batched(g: Tensor) -> bool:
    """Whether g stands for many gradients, which torch takes at once."""
    return "Batched" in str(torch._C._dispatch_keys(g))  # of vmap, or of the older one of is_grads_batched


class _Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y, mask = ops.relu(x)
        ctx.save_for_backward(mask)
        ctx.strides = y.stride()
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        mask, = ctx.saved_tensors
        return ops.relu_backward(laid_out(g, ctx.strides), mask)


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bits: int) -> Tensor:
        ctx.bits = bits
        ctx.strides = ops.dense_stride(x)
        ctx.save_for_backward(ops.pack_gelu(x, bits))
        return torch.nn.functional.gelu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        codes, = ctx.saved_tensors
        return ops.gelu_backward(laid_out(g, ctx.strides), codes, ctx.bits), None


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        ctx.p = p
        ctx.key = operator_key()
        y = ops.dropout(x, p, *ctx.key)
        ctx.strides = y.stride()
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ops.dropout(laid_out(g, ctx.strides), ctx.p, *ctx.key), None


class _MaxPool2d(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *window: list[int]) -> Tensor:
        y, places = ops.max_pool2d(x, *window)
        ctx.save_for_backward(places)
        ctx.size = x.shape
        ctx.window = window
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        places, = ctx.saved_tensors
        return ops.max_pool2d_backward(g, places, ctx.size, *ctx.window), None, None, None


class _ActivityPenalty(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float, bits: int) -> Tensor:
        ctx.bits = bits
        ctx.strides = ops.dense_stride(x)
        ctx.save_for_backward(ops.compress(x * strength, bits, [], GROUP, *next_key()))
        return x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        blob, = ctx.saved_tensors
        if _is_batched(g):
            return g + ops.decompress(blob, g.shape, ctx.strides, g.dtype, ctx.bits, [], GROUP), None, None
        sum_of_both = torch.empty_strided(g.shape, ctx.strides, dtype=g.dtype, device=g.device)
        ops.decompress_add_(sum_of_both.copy_(g), blob, ctx.bits, [], GROUP)
        return sum_of_both, None, None


def relu(x: Tensor) -> Tensor:
    """max(x, 0); keeps 1 bit per element."""
    return _Relu.apply(x)


def gelu(x: Tensor, bits: int = 3) -> Tensor:
    """GELU; keeps 1 to 4 bits per element, which name one of 2**bits derivatives (few-bit backward)."""
    return _Gelu.apply(x, bits)


@eagerly  # a graph would have its key for good
def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zeroes elements with probability p, which is rounded to a multiple of 2**-16, and scales the others; keeps
    nothing but a key, which it draws from torch's generator of the CPU, whatever the device."""
    if not 0 <= p <= 1:
        raise ValueError(f"p is {p}: must be 0 to 1")
    if not training or p == 0:
        return x
    return _Dropout.apply(x, p) if p < LEAST_OF_ALL else x * 0.0


def _pair(v: Union[int, Sequence[int]]) -> list[int]:
    return [v, v] if isinstance(v, int) else list(v)


def max_pool2d(x: Tensor, kernel_size: Union[int, Sequence[int]],
               stride: Union[int, Sequence[int], None] = None,
               padding: Union[int, Sequence[int]] = 0) -> Tensor:
    """Max pooling; keeps the place of each maximum in its window: 2 bits for 2 x 2, 4 for 3 x 3."""
    kernel = _pair(kernel_size)
    return _MaxPool2d.apply(x, kernel, kernel if stride is None else _pair(stride), _pair(padding))


def activity_penalty(x: Tensor, strength: float, bits: int = 2) -> Tensor:
    """x itself; the backward pass adds the gradient of strength / 2 * (x ** 2).sum() to that of x. What
    it keeps is compressed, and added to the gradient while it is decompressed."""
    return _ActivityPenalty.apply(x, strength, bits)
