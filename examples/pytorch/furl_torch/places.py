# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Indices of max pooling as places in their windows: 2 bits for 2 x 2 and 4 for 3 x 3, in place of 64."""

from __future__ import annotations

from typing import NamedTuple, Optional, Sequence

import torch
from torch import Tensor

from ._ops import ops

MOST_PLACES = 256


class Dimension(NamedTuple):
    """Of a pooling."""

    size: int  # of the input
    kernel: int
    stride: int
    padding: int
    dilation: int


def running_pooling() -> Optional[list[Dimension]]:
    """Of the max pooling that is saving a tensor, if one is, outermost dimension first."""
    numbers = ops.operator_settings()
    rank = len(numbers) // 5
    return [Dimension(*numbers[d::rank]) for d in range(rank)] or None


def bits_of(pooling: Sequence[Dimension]) -> Optional[int]:
    """Of a place, or None where they need more than a code has."""
    places = 1
    for d in pooling:
        places *= d.kernel
    return max(1, (places - 1).bit_length()) if places <= MOST_PLACES else None


def _first(indices: Tensor, pooling: Sequence[Dimension], d: int) -> Tensor:
    """Coordinates at which windows begin in dimension d, padding included, to be broadcast."""
    axis = indices.dim() - len(pooling) + d
    count = indices.shape[axis]
    shape = [1] * indices.dim()
    shape[axis] = count
    steps = torch.arange(count, device=indices.device) * pooling[d].stride
    return (steps - pooling[d].padding).view(shape)


def places_of(indices: Tensor, pooling: Sequence[Dimension]) -> Tensor:
    """One byte per index, of its shape and order in memory."""
    places = torch.zeros_like(indices, dtype=torch.uint8)  # of the same order in memory
    rest, weight = indices, 1
    for d in reversed(range(len(pooling))):
        at = rest % pooling[d].size
        rest = torch.div(rest, pooling[d].size, rounding_mode="floor")
        at = at.sub_(_first(indices, pooling, d))
        if pooling[d].dilation > 1:
            at = torch.div(at, pooling[d].dilation, rounding_mode="floor")
        places += at.mul_(weight).to(torch.uint8)
        weight *= pooling[d].kernel
    return places


def indices_of(places: Tensor, pooling: Sequence[Dimension]) -> Tensor:
    """The inverse."""
    indices = torch.zeros_like(places, dtype=torch.int64)
    rest, weight = places.to(torch.int64), 1
    for d in reversed(range(len(pooling))):
        at = (rest % pooling[d].kernel).mul_(pooling[d].dilation).add_(_first(places, pooling, d))
        rest = torch.div(rest, pooling[d].kernel, rounding_mode="floor")
        indices += at.mul_(weight)
        weight *= pooling[d].size
    return indices
