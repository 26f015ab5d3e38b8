# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in the graph for a tensor that autograd saved."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from .contents import Content, SavedAsIs, SavedBlob, dense_stride
from .meter import Count, LiveBytes, Stats
from ._ops import ops
from .policy import Demand


class Saved:
    """One tensor, for all operators that saved it. It holds neither the tensor nor its graph, can be restored any
    number of times, and counts its bytes as long as it lives. An operator that needs more than those before it makes
    it keep more, for all of them."""

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
        """The tensor, in the shape in which it was saved first, without a graph."""
        y = self.content.restore()
        return y if isinstance(self.content, SavedAsIs) else self.seen(y)

    def seen(self, y: Tensor) -> Tensor:
        """Counts y, which was restored, for as long as it lives."""
        self._live.add_restored(y)
        return y

    def _kind(self, stats: Stats) -> Count:
        return stats.kept if isinstance(self.content, SavedAsIs) else stats.compressed


class SavedView:
    """What stands in a graph for a tensor: another may have saved its memory, in another shape."""

    __slots__ = ("saved", "_form")

    def __init__(self, x: Optional[Tensor], saved: Saved) -> None:
        """x: the tensor; None if it has no memory that others could save, nor strides."""
        self.saved = saved
        self._form = None if x is None else (x.shape, x.stride())

    def restore(self) -> Tensor:
        """The tensor, as autograd wants it: of its shape, strides and dtype, without a graph."""
        return self._formed(self.saved.restore())

    def _formed(self, y: Tensor) -> Tensor:
        """The elements of y, in the order of their memory, in the tensor's shape."""
        if self._form is None or self._form == (y.shape, y.stride()):
            return y
        size, stride = self._form
        has_gaps = dense_stride(torch.empty_strided(size, stride, device="meta")) != stride
        return y if has_gaps else y.as_strided(size, stride, y.storage_offset())


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
        return self._formed(self.saved.seen(y))
