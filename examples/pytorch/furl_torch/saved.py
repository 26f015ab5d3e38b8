# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in the graph for a tensor that autograd saved."""

from __future__ import annotations

from typing import Optional, Sequence

import torch
from torch import Tensor

from .contents import Content, SavedAsIs, SavedBlob, dense_stride
from .meter import Count, LiveBytes, Stats
from ._ops import ops
from .policy import Demand


class Saved:
    """What stands in the graphs of all operators that saved one tensor. It holds neither the tensor nor its
    graph, can be restored any number of times, and counts its bytes as long as it lives. An operator
    that needs more than those before it makes it keep more, for all of them."""

    __slots__ = ("content", "demand", "size", "stride", "_live", "_counts", "__weakref__")

    def __init__(self, x: Optional[Tensor], content: Content, demand: Demand, live: LiveBytes) -> None:
        """x: the tensor, if others may be saved that lie in its memory."""
        self.content = content
        self.demand = demand
        self.size: Sequence[int] = () if x is None else x.shape
        self.stride: Sequence[int] = () if x is None else x.stride()
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
        return self._restored() if self.size == () else self.restore_as(self.size, self.stride)

    def restore_as(self, size: Sequence[int], stride: Sequence[int]) -> Tensor:
        """In another shape, which may be that of the tensor that first lay in this memory."""
        return _in_shape(self._restored(), size, stride)

    def _restored(self) -> Tensor:
        y = self.content.restore()
        return y if isinstance(self.content, SavedAsIs) else self.seen(y)

    def seen(self, y: Tensor) -> Tensor:
        """Counts y, which was restored, for as long as it lives."""
        self._live.add_restored(y)
        return y

    def _kind(self, stats: Stats) -> Count:
        return stats.kept if isinstance(self.content, SavedAsIs) else stats.compressed


class SavedView:
    """What stands in a graph for a tensor whose memory another has saved in another shape."""

    __slots__ = ("saved", "size", "stride")

    def __init__(self, x: Tensor, saved: Saved) -> None:
        self.saved = saved
        self.size, self.stride = x.shape, x.stride()

    def restore(self) -> Tensor:
        """As Saved.restore."""
        return self.saved.restore_as(self.size, self.stride)


class SavedSigns(SavedView):
    """What stands in a graph for a tensor of which an operator reads no more than what is above 0."""

    __slots__ = ()

    def restore(self) -> Tensor:
        """The tensor, or 1 in place of what is above 0 and 0 in place of the rest."""
        content = self.saved.content
        if not isinstance(content, SavedBlob):
            return super().restore()
        signs = content.signs()
        if signs is None:
            return super().restore()
        y = ops.unpack_levels(signs, content.size, content.stride, content.dtype, 1.0)
        return _in_shape(self.saved.seen(y), self.size, self.stride)


def _in_shape(y: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """The elements of y, in the order of their memory, in another shape."""
    if y.shape == size and y.stride() == stride:
        return y
    has_gaps = dense_stride(torch.empty_strided(size, stride, device="meta")) != tuple(stride)
    return y if has_gaps else y.as_strided(size, stride, y.storage_offset())
