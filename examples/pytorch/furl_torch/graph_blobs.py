# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What graph.py puts into compiled graphs: a tensor packed, and unpacked again."""

from __future__ import annotations

from typing import Any, Sequence

import torch
from torch import Tensor

from . import places, policy
from ._ops import KEY_BYTES, TILE, ops
from .graph import CAN_TRACE, Recipe, stand_in


def _is_dense(x: Tensor) -> bool:
    now = stand_in(x)
    return bool(ops.dense_stride(now) == list(now.stride()))


def pack(x: Tensor, recipe: Recipe) -> tuple[Any, ...]:
    """Traced at the end of the forward graph: the blobs, then size and stride."""
    x = x if _is_dense(x) else x.contiguous()
    bits, window, group, _, classes = recipe.demand[:5]
    blobs = []
    if classes is not None:
        x, largest, place = policy.without_largest(x, classes)
        blobs = [largest, place]
    elif recipe.largest:
        largest, place = x.max(-1, keepdim=True)
        blobs = [largest, place.to(torch.int32)]
    if recipe.pooling is not None:
        x = places.places_of(x, recipe.pooling) if x.dtype == torch.int64 else x.to(torch.uint8)
    if bits != policy.SHAPE:
        blobs.append(ops.graph_pack(x, bits, window, group))
    if recipe.signs:
        blobs.append(ops.graph_pack(x, policy.SIGNS, [], 32))
    return (*blobs, *_without_repeats([*x.shape, *x.stride()], recipe)) or (0, )


def _without_repeats(numbers: Sequence[Any], recipe: Recipe) -> list[Any]:
    """Symbolic numbers, each once, as the compiler wants them; how to put them back is noted."""
    symbols: dict[str, tuple[int, Any]] = {}
    assert recipe.numbers is not None
    recipe.numbers.clear()
    for n in numbers:
        if isinstance(n, int):
            recipe.numbers.append((n, None))
        else:
            place, _ = symbols.setdefault(str(n), (len(symbols), n))
            recipe.numbers.append((None, place))
    return [n for _, n in symbols.values()]


def unpack(packed: Sequence[Any], like: Tensor, recipe: Recipe) -> Tensor:
    """Traced at the beginning of the backward graph. Of like, only dtype, rank and device are read."""
    bits, window, group, _, classes = recipe.demand[:5]
    rank = like.dim()
    assert recipe.numbers is not None
    num_symbols = len({place for _, place in recipe.numbers if place is not None})
    blobs, symbols = packed[:len(packed) - num_symbols], packed[len(packed) - num_symbols:]
    numbers = [symbols[place] if place is not None else n for n, place in recipe.numbers]
    size, stride = numbers[:rank], numbers[rank:]
    if bits == policy.SHAPE:
        return torch.zeros(size, dtype=like.dtype, device=like.device)
    dtype = like.dtype if recipe.pooling is None else torch.uint8
    y: Tensor = ops.graph_unpack(blobs[-2 if recipe.signs else -1], size, stride, dtype, bits, window, group)
    if recipe.pooling is not None:
        return places.indices_of(y, recipe.pooling) if like.dtype == torch.int64 else y.to(like.dtype)
    if classes is not None:
        return policy.with_largest(y, classes, blobs[0], blobs[1])
    if recipe.signs:
        signs = ops.graph_unpack(blobs[-1], size, stride, like.dtype, policy.SIGNS, [], 32)
        least = 2.0**-14 if like.dtype == torch.float16 else 2.0**-64  # as restore_positive_
        return torch.where(signs > 0, y.clamp_min(least), y.clamp_max(0))
    if recipe.largest:
        y = y.scatter(-1, blobs[1].to(torch.int64), blobs[0])
    return y if recipe.limits is None else y.clamp(*recipe.limits)


def _blob_bytes(x: Tensor, bits: int, group: int) -> Any:
    codes = (x.numel() + TILE - 1) // TILE * (TILE // 8) * max(bits, 1)
    if bits < 0 or not x.dtype.is_floating_point:
        return codes
    if group == policy.ROTATED:
        return codes + (codes // (TILE // 8 * bits) * 8 + 15) // 16 * 16 + KEY_BYTES
    return codes + ((x.numel() + group - 1) // group * 4 + 15) // 16 * 16


if CAN_TRACE:
    @torch.library.register_fake("furl::graph_pack")  # type: ignore
    def _fake_pack(x: Tensor, bits: int, window: list[int], group: int) -> Tensor:
        if window:  # then the shape is not symbolic
            like = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
            size = ops.compress(like, bits, window, group, 0, 0).shape
            return x.new_empty(size, dtype=torch.uint8)
        return x.new_empty([_blob_bytes(x, bits, group)], dtype=torch.uint8)

    @torch.library.register_fake("furl::graph_unpack")  # type: ignore
    def _fake_unpack(blob: Tensor, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, bits: int,
                     window: list[int], group: int) -> Tensor:
        return torch.empty_strided(size, stride, dtype=dtype, device=blob.device)
