# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What is kept of one tensor that autograd saved, and how it is restored."""

from __future__ import annotations

from typing import Callable, Optional, Sequence, Union

import torch
from torch import Tensor

from . import places, policy
from .noise import next_key
from .offload import HostMemory, Parcel
from ._ops import KEY_BYTES, TILE, ops
from .policy import AS_IS, Demand

# What the operator `inspect` says may be done with a tensor.
(KEEP, COPY, PARAMETER, VALUES, POSITIVES, BOUNDED, MASK, CONSTANT, SIGNED_BOUNDED,
 LOGARITHMS) = range(10)
LIMITS = {BOUNDED: (0.0, 1.0), SIGNED_BOUNDED: (-1.0, 1.0)}  # of values

LEAST_VARIANCE = 1e-24  # of a token, and 1 over the largest: so that deviations can be divided by


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


class SavedCast:
    """A copy of a parameter in another dtype, as autocast makes them: it is cast again."""

    __slots__ = ("parameter", "size", "stride", "dtype")
    num_bytes = 0

    def __init__(self, x: Tensor, parameter: Tensor) -> None:
        self.parameter = SavedAsIs(parameter, 0)
        self.size, self.stride, self.dtype = x.shape, x.stride(), x.dtype

    def restore(self) -> Tensor:
        """The same copy, made anew."""
        return self.parameter.restore().to(self.dtype).as_strided(self.size, self.stride)


class SavedBlob:
    """A tensor that `unpack` makes of a blob, and of what else is kept with it."""

    __slots__ = ("_tensors", "_parcel", "_signs", "has_mask", "device", "size", "stride", "dtype", "num_bytes",
                 "unpack")

    def __init__(self, x: Tensor, tensors: Sequence[Tensor], unpack: Callable[..., Tensor],
                 signs: Optional[int] = None, has_mask: bool = False) -> None:
        """unpack: of this and the tensors. signs: which of them is a mask of what is above 0. has_mask: whether the
        blob, which is the first, has one in it."""
        self._tensors = tensors
        self._parcel: Optional[Parcel] = None
        self.num_bytes = sum(tensor_bytes(t) for t in tensors)
        self._signs = signs
        self.has_mask = has_mask
        self.device = x.device
        self.size = x.shape
        self.stride = dense_stride(x)
        self.dtype = x.dtype
        self.unpack = unpack

    def send_to(self, memory: HostMemory) -> None:
        """Keeps it there."""
        if self.num_bytes > 0:
            self._parcel, self._tensors = memory.send(self._tensors), ()

    def restore(self) -> Tensor:
        """A tensor of the same shape, strides and dtype, made anew."""
        return self.unpack(self, *self._fetched())

    def signs(self) -> Optional[Tensor]:
        """A mask of what is above 0, if it has one."""
        if self.has_mask:
            return _mask_in(self._fetched()[0], self.size.numel())
        return None if self._signs is None else self._fetched()[self._signs]

    def _fetched(self) -> Sequence[Tensor]:
        return self._tensors if self._parcel is None else self._parcel.fetch()


Content = Union[SavedAsIs, SavedCast, SavedBlob]


def content_of(x: Tensor, action: int, demand: Demand) -> tuple[Content, Demand]:
    """What to keep, and the demand that it satisfies."""
    if demand is not AS_IS and action in (KEEP, CONSTANT):
        packed = save_two_values(x) if action == CONSTANT else save_indices(x)
        if packed is not None:
            return packed, AS_IS  # exact
    if demand.bits == policy.EXACT:
        return save_as_is(x, action), demand
    if action == MASK:
        return save_mask(x), demand
    if demand.bits == policy.SHAPE:
        return save_shape(x), demand
    if demand.classes is not None:
        return save_logarithms(x, demand), demand
    if demand.token:
        return save_tokens(x, demand, action), demand
    if demand.bits == policy.SIGNS:
        return save_signs(x), demand
    return save_values(x, demand, action), demand


def laid_out(y: Tensor, stride: Sequence[int]) -> Tensor:
    """y, with its elements in another order of memory if its strides are others."""
    if y.stride() == tuple(stride):
        return y
    return torch.empty_strided(y.shape, stride, dtype=y.dtype, device=y.device).copy_(y)


def save_shape(x: Tensor) -> Content:
    """No element: they are restored as zeros."""
    return SavedBlob(x, (), lambda s: torch.empty_strided(s.size, s.stride, dtype=s.dtype, device=s.device).zero_())


def save_signs(x: Tensor) -> Content:
    """Which elements are above 0: they are restored as 1, the others as 0."""
    return SavedBlob(x, [ops.pack_positive(x)], _levels(1.0))


def _levels(level: float) -> Callable[..., Tensor]:
    """Restores a mask: this number where it is set, and 0 elsewhere."""
    return lambda s, mask: ops.unpack_levels(mask, s.size, s.stride, s.dtype, level)


def save_values(x: Tensor, demand: Demand, action: int) -> Content:
    """Compresses x; if somebody reads signs, which elements are above 0 is kept too. Of positives, all others
    are 0, and come back as 0. Restored values stay within the limits: a step is rounded up, so that the
    largest code may lie beyond the largest value."""
    bits, window, group, by_rows = demand[:4]
    zeros, limits = action == POSITIVES, LIMITS.get(action)
    if zeros and group == policy.ROTATED:
        window, group, by_rows = [], policy.ROTATED_POSITIVES, False  # the mask is in the order of x
    ordered = x.contiguous() if by_rows else x
    stride = dense_stride(ordered)
    has_mask = group == policy.ROTATED_POSITIVES
    blob = ops.compress(ordered, bits, window, group, *next_key())
    signs = [ops.pack_positive(x)] if (zeros or demand.signs) and not has_mask else []

    def unpack(s: SavedBlob, blob: Tensor, *signs: Tensor) -> Tensor:
        y = laid_out(ops.decompress(blob, s.size, stride, s.dtype, bits, window, group), s.stride)
        if zeros and not has_mask:
            ops.restore_positive_(y, *signs)
        return y if limits is None else y.clamp_(*limits)

    return SavedBlob(x, [blob, *signs], unpack, 1 if signs else None, has_mask)


def save_tokens(x: Tensor, demand: Demand, action: int) -> Content:
    """Compresses x after each of its tokens is normalised: no token has a part of the error of another."""
    bits, limits = demand.bits, LIMITS.get(action)
    tokens = x.contiguous().view(-1, demand.token)
    size = tokens.shape
    variance, mean = torch.var_mean(tokens.float(), -1, unbiased=False)
    inverse = variance.clamp_(LEAST_VARIANCE, 1 / LEAST_VARIANCE).rsqrt_()
    blob = ops.compress_tokens(tokens, bits, mean, inverse, *next_key())
    signs = [ops.pack_positive(x)] if demand.signs else []

    def unpack(s: SavedBlob, blob: Tensor, mean: Tensor, inverse: Tensor, *_: Tensor) -> Tensor:
        y = laid_out(ops.decompress_tokens(blob, size, s.dtype, bits, mean, inverse).view(s.size), s.stride)
        return y if limits is None else y.clamp_(*limits)

    return SavedBlob(x, [blob, mean, inverse, *signs], unpack, 3 if signs else None)


def _mask_in(blob: Tensor, num_elements: int) -> Tensor:
    """The mask in a blob of positives, before its key."""
    num_bytes = (num_elements + TILE - 1) // TILE * (TILE // 8)
    return blob.narrow(0, blob.numel() - KEY_BYTES - num_bytes, num_bytes)


def save_logarithms(x: Tensor, demand: Demand) -> Content:
    """Compresses exp(x), but for the largest of each row."""
    bits, group, classes = demand.bits, demand.group, demand.classes
    assert classes is not None
    others, largest, place = policy.without_largest(x, classes)
    blob = ops.compress(others, bits, [], group, *next_key())

    def unpack(s: SavedBlob, blob: Tensor, largest: Tensor, place: Tensor) -> Tensor:
        y = ops.decompress(blob, s.size, s.stride, s.dtype, bits, [], group)
        return policy.with_largest(y, classes, largest, place)

    return SavedBlob(x, [blob, largest, place], unpack)


def save_mask(x: Tensor) -> Content:
    """Packs a bool tensor, exactly."""
    return SavedBlob(x, [ops.pack(x, 1)], lambda s, blob: ops.unpack(blob, s.size, s.stride, s.dtype, 1))


def save_two_values(x: Tensor) -> Optional[Content]:
    """Packs a tensor of zeros and one positive number, exactly; None if x has other elements."""
    mask, level = ops.pack_two_values(x)
    return SavedBlob(x, [mask], _levels(level)) if mask.numel() > 0 else None


def save_indices(x: Tensor) -> Optional[Content]:
    """Packs the indices that max pooling saves, exactly; None for what is none."""
    pooling = places.running_pooling() if x.dtype == torch.int64 else None
    bits = places.bits_of(pooling) if pooling else None
    if pooling is None or bits is None:
        return None

    def unpack(s: SavedBlob, blob: Tensor) -> Tensor:
        return places.indices_of(ops.unpack(blob, s.size, s.stride, torch.uint8, bits), pooling)

    return SavedBlob(x, [ops.pack(places.places_of(x, pooling), bits)], unpack)


def save_as_is(x: Tensor, action: int) -> Content:
    """Passes x through. A parameter is counted as no bytes."""
    if action == PARAMETER:
        for parameter in ops.cast_parameter(x):
            return SavedCast(x, parameter)
    if action == COPY:
        x = torch.clone(x.detach())
    return SavedAsIs(x, 0 if action == PARAMETER else tensor_bytes(x))


def dense_stride(x: Tensor) -> Sequence[int]:
    """Its strides, or where it has gaps those of a copy without."""
    return x.stride() if x.is_contiguous() else tuple(ops.dense_stride(x))


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
