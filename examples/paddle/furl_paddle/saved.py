# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What is stored in place of a saved tensor. Each class has bytes_before, bytes_kept and restore(), which can be called
any number of times."""

import itertools
import math
import os

import paddle

from .build import operators

FLOATS = {paddle.float32: "float32", paddle.float16: "float16", paddle.bfloat16: "bfloat16"}
ROTATED = 0  # as a group: codes of blocks of 256 that are rotated first

_seed = int.from_bytes(os.urandom(7), "little")
_offsets = itertools.count()


def manual_seed(seed):
    """Repeats the noise from here on. Paddle's own generators are neither read nor moved."""
    global _seed, _offsets
    _seed, _offsets = int(seed), itertools.count()


class _Blob:
    def __init__(self, x):
        self.shape, self.dtype = x.shape, FLOATS[x.dtype]
        self.bytes_before = math.prod(x.shape) * x.element_size()

    @property
    def bytes_kept(self):
        return self.blob.shape[0]


class Codes(_Blob):
    """Codes of `bits` bits, in groups of `group` values, or rotated ones. Every one draws noise of its own."""

    def __init__(self, x, bits, group):
        super().__init__(x)
        self.how = (bits, group, _seed, next(_offsets))
        with paddle.no_grad():
            self.blob = operators().furl_compress(x, *self.how)

    def restore(self):
        with paddle.no_grad():
            return operators().furl_decompress(self.blob, self.shape, self.dtype, *self.how)


class Signs(_Blob):
    """A bit per value, exactly: restored as 1 where the value was above 0, else as 0."""

    def __init__(self, x):
        super().__init__(x)
        with paddle.no_grad():
            self.blob = operators().furl_pack_positive(x)

    def restore(self):
        with paddle.no_grad():
            return operators().furl_unpack_positive(self.blob, self.shape, self.dtype)


class Passed:
    """The tensor's own memory. It is a view: the tensor itself would hold the node that saves it. Paddle does not look
    for modifications in place where hooks are, so restore() does."""

    def __init__(self, x, is_overwritten):
        self.view, self.version, self.is_overwritten = x.detach(), x.inplace_version, is_overwritten
        self.bytes_before = self.bytes_kept = math.prod(x.shape) * x.element_size()

    def restore(self):
        if self.view.inplace_version != self.version:
            raise RuntimeError(f"furl: a saved tensor of shape {list(self.view.shape)} was modified in place: its "
                               f"version is {self.view.inplace_version}, and was {self.version}")
        return self.view.clone() if self.is_overwritten else self.view
