# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in the graph for a tensor that autograd saved."""

from __future__ import annotations

from typing import Callable, Optional, Union

import torch
from torch import Tensor

from .meter import Count, LiveBytes, Stats
from ._ops import ops
from .policy import Demand

# What the operator `inspect` says may be done with a tensor.
KEEP, COPY, PARAMETER, VALUES, POSITIVES, BOUNDED, MASK, CONSTANT, SIGNED_BOUNDED = range(9)


class SavedAsIs:
    """A tensor that passed through. Torch leaves it to hooks to see that nobody modified it."""

    __slots__ = ("tensor", "version", "num_bytes")

    def __init__(self, tensor: Tensor, num_bytes: int) -> None:
        self.tensor = tensor.detach()  # not the tensor itself: its graph would hold itself
        self.version = tensor._version
        self.num_bytes = num_bytes

    def restore(self) -> Tensor:
        """The tensor itself."""
        if self.tensor._version != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a {self.tensor.dtype} tensor of shape "
                f"{list(self.tensor.shape)} is at version {self.tensor._version}; expected version "
                f"{self.version}")
        return self.tensor


class SavedBlob:
    """A tensor that `unpack` makes of a blob."""

    __slots__ = ("blob", "size", "stride", "dtype", "num_bytes", "unpack")

    def __init__(self, x: Tensor, blob: Tensor, extra_bytes: int,
                 unpack: Callable[["SavedBlob"], Tensor]) -> None:
        self.num_bytes = blob.numel() + extra_bytes
        self.blob = blob
        self.size = x.shape
        self.stride = ops.dense_stride(x)
        self.dtype = x.dtype
        self.unpack = unpack

    def restore(self) -> Tensor:
        """A tensor of the same shape, strides and dtype, made anew."""
        return self.unpack(self)


Content = Union[SavedAsIs, SavedBlob]


class Saved:
    """What stands in the graphs of all operators that saved one tensor. It holds neither the tensor nor its
    graph, can be restored any number of times, and counts its bytes as long as it lives. An operator
    that needs more than those before it makes it keep more, for all of them."""

    __slots__ = ("content", "demand", "_live", "_counts", "__weakref__")

    def __init__(self, content: Content, demand: Demand, live: LiveBytes) -> None:
        self.content = content
        self.demand = demand
        self._live = live
        self._counts: Optional[tuple[Stats, Count]] = None
        live.add(content.num_bytes)

    def __del__(self) -> None:
        self._live.add(-self.content.num_bytes)

    @property
    def num_bytes(self) -> int:
        """Of what is kept."""
        return self.content.num_bytes

    def count_in(self, stats: Stats, module: Count, before: int) -> None:
        """Counts it as one tensor of `before` bytes, also when it keeps more later."""
        self._counts = stats, module
        for count in (stats.total, module, self._kind(stats)):
            count.add(before, self.num_bytes)

    def replace(self, content: Content, demand: Demand) -> None:
        """Keeps this instead."""
        change = content.num_bytes - self.num_bytes
        self.content, self.demand = content, demand
        self._live.add(change)
        if self._counts is not None:
            stats, module = self._counts
            stats.total.bytes_after += change
            module.bytes_after += change
            stats.compressed.bytes_after += change
            if isinstance(content, SavedAsIs):
                stats.compressed.add(-content.num_bytes, -content.num_bytes, -1)
                stats.kept.add(content.num_bytes, content.num_bytes)

    def restore(self) -> Tensor:
        """The tensor, as autograd wants it: of its shape, strides and dtype, without a graph."""
        return self.content.restore()

    def _kind(self, stats: Stats) -> Count:
        return stats.kept if isinstance(self.content, SavedAsIs) else stats.compressed


def save_shape(x: Tensor) -> Content:
    """No element: they are restored as zeros."""
    def unpack(s: SavedBlob) -> Tensor:
        like = torch.empty_strided(s.size, s.stride, dtype=s.dtype, device=s.blob.device)
        return like.zero_()

    return SavedBlob(x, torch.empty(0, dtype=torch.uint8, device=x.device), 0, unpack)


def save_signs(x: Tensor) -> Content:
    """Which elements are above 0: they are restored as 1, the others as 0."""
    def unpack(s: SavedBlob) -> Tensor:
        return ops.unpack_levels(s.blob, s.size, s.stride, s.dtype, 1.0)

    return SavedBlob(x, ops.pack_positive(x), 0, unpack)


def save_values(x: Tensor, demand: Demand, key: tuple[int, int], exact_signs: bool,
                limits: Optional[tuple[float, float]]) -> Content:
    """Compresses x; with exact_signs, which elements are above 0 is kept too. Restored values stay
    within the limits: a step is rounded up, so that the largest code may lie beyond the largest value."""
    bits, window, group, by_rows = demand
    ordered = x.contiguous() if by_rows else x
    stride = ops.dense_stride(ordered)
    blob = ops.compress(ordered, bits, window, group, *key)
    signs: Optional[Tensor] = ops.pack_positive(x) if exact_signs else None

    def unpack(s: SavedBlob) -> Tensor:
        y = ops.decompress(s.blob, s.size, stride, s.dtype, bits, window, group)
        if stride != s.stride:
            y = torch.empty_strided(s.size, s.stride, dtype=s.dtype, device=y.device).copy_(y)
        if signs is not None:
            ops.restore_positive_(y, signs)
        return y if limits is None else y.clamp_(*limits)

    return SavedBlob(x, blob, 0 if signs is None else signs.numel(), unpack)


def save_mask(x: Tensor) -> Content:
    """Packs a bool tensor, exactly."""
    def unpack(s: SavedBlob) -> Tensor:
        return ops.unpack(s.blob, s.size, s.stride, s.dtype, 1)

    return SavedBlob(x, ops.pack(x, 1), 0, unpack)


def save_two_values(x: Tensor) -> Optional[Content]:
    """Packs a tensor of zeros and one positive number, exactly; None if x has other elements."""
    blob, level = ops.pack_two_values(x)
    if blob.numel() == 0:
        return None

    def unpack(s: SavedBlob) -> Tensor:
        return ops.unpack_levels(s.blob, s.size, s.stride, s.dtype, level)

    return SavedBlob(x, blob, 0, unpack)


def save_as_is(x: Tensor, action: int) -> Content:
    """Passes x through. A parameter is counted as no bytes."""
    if action == COPY:
        x = torch.clone(x.detach())
    return SavedAsIs(x, 0 if action == PARAMETER else tensor_bytes(x))


def tensor_bytes(x: Tensor) -> int:
    """Bytes of the elements that lie in memory: an expanded one is counted once."""
    if x.is_nested:
        return x.numel() * x.element_size()
    if x.layout != torch.strided:
        return x._nnz() * x.element_size() if x.is_sparse else 0
    count = 1
    for size, stride in zip(x.shape, x.stride()):
        count *= 1 if stride == 0 else size
    return count * x.element_size()
