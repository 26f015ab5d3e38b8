# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What stands in the graph for a tensor that autograd saved."""

from __future__ import annotations

from typing import Callable, Optional

import torch
from torch import Tensor

from .meter import LiveBytes
from ._ops import ops

# What the operator `inspect` says may be done with a tensor.
KEEP, COPY, PARAMETER, VALUES, POSITIVES, BOUNDED, MASK, CONSTANT = range(8)


class Saved:
    """A saved tensor, or what is kept of it. It holds neither the tensor nor its graph, can be
    restored any number of times, and counts its bytes as long as it lives."""

    __slots__ = ("num_bytes", "_live", "__weakref__")

    def __init__(self, num_bytes: int, live: LiveBytes) -> None:
        self.num_bytes = num_bytes
        self._live = live
        live.add(num_bytes)

    def __del__(self) -> None:
        self._live.add(-self.num_bytes)

    def restore(self) -> Tensor:
        """The tensor, as autograd wants it: of its shape, strides and dtype, without a graph."""
        raise NotImplementedError


class SavedAsIs(Saved):
    """A tensor that passed through. Torch leaves it to hooks to see that nobody modified it."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Tensor, num_bytes: int, live: LiveBytes) -> None:
        super().__init__(num_bytes, live)
        self.tensor = tensor.detach()  # not the tensor itself: its graph would hold itself
        self.version = tensor._version

    def restore(self) -> Tensor:
        if self.tensor._version != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a {self.tensor.dtype} tensor of shape "
                f"{list(self.tensor.shape)} is at version {self.tensor._version}; expected version "
                f"{self.version}")
        return self.tensor


class SavedBlob(Saved):
    """A tensor that `unpack` makes of a blob."""

    __slots__ = ("blob", "size", "stride", "dtype", "unpack")

    def __init__(self, x: Tensor, blob: Tensor, extra_bytes: int, live: LiveBytes,
                 unpack: Callable[["SavedBlob"], Tensor]) -> None:
        super().__init__(blob.numel() + extra_bytes, live)
        self.blob = blob
        self.size = x.shape
        self.stride = ops.dense_stride(x)
        self.dtype = x.dtype
        self.unpack = unpack

    def restore(self) -> Tensor:
        return self.unpack(self)


def save_values(x: Tensor, bits: int, window: list[int], group: int, key: tuple[int, int],
                exact_signs: bool, live: LiveBytes) -> Saved:
    """Compresses x; with exact_signs, which elements are above 0 is kept too."""
    blob = ops.compress(x, bits, window, group, *key)
    signs: Optional[Tensor] = ops.pack_positive(x) if exact_signs else None

    def unpack(s: SavedBlob) -> Tensor:
        y = ops.decompress(s.blob, s.size, s.stride, s.dtype, bits, window, group)
        if signs is not None:
            ops.restore_positive_(y, signs)
        return y

    return SavedBlob(x, blob, 0 if signs is None else signs.numel(), live, unpack)


def save_mask(x: Tensor, live: LiveBytes) -> Saved:
    """Packs a bool tensor, exactly."""
    def unpack(s: SavedBlob) -> Tensor:
        return ops.unpack(s.blob, s.size, s.stride, s.dtype, 1)

    return SavedBlob(x, ops.pack(x, 1), 0, live, unpack)


def save_two_values(x: Tensor, live: LiveBytes) -> Optional[Saved]:
    """Packs a tensor of zeros and one positive number, exactly; None if x has other elements."""
    blob, level = ops.pack_two_values(x)
    if blob.numel() == 0:
        return None

    def unpack(s: SavedBlob) -> Tensor:
        return ops.unpack_levels(s.blob, s.size, s.stride, s.dtype, level)

    return SavedBlob(x, blob, 0, live, unpack)


def save_as_is(x: Tensor, action: int, live: LiveBytes) -> Saved:
    """Passes x through. A parameter is counted as no bytes."""
    if action == COPY:
        x = torch.clone(x.detach())
    num_bytes = 0 if action == PARAMETER else tensor_bytes(x)
    return SavedAsIs(x, num_bytes, live)


def tensor_bytes(x: Tensor) -> int:
    """Bytes of the elements that lie in memory: an expanded one is counted once."""
    if x.layout != torch.strided:
        return x._nnz() * x.element_size() if x.is_sparse else 0
    count = 1
    for size, stride in zip(x.shape, x.stride()):
        count *= 1 if stride == 0 else size
    return count * x.element_size()
