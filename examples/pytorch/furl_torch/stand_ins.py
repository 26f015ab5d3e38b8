# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What layers of auxiliary activation learning (Woo and Jeon, ICLR 2023) add to their input and keep in its place."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor

from .codec import CODED
from ._ops import ops

PART = 0.01  # of the signs is in the sum; weights learn from all of them (the paper's constants)


class Signs(NamedTuple):
    """Sign stand-in (ASA): 1 where the input is above 0, else -1, or else 0; 1 bit per element."""

    negative: bool = True  # -1 in place of 0

    def add(self, x: Tensor, dtype: torch.dtype, keeps: bool) -> tuple[Tensor, Optional[Tensor]]:
        """The sum, of this dtype, and, if it is wanted, what is kept of the stand-in."""
        x = x.to(dtype)
        total = torch.add(x, (x.detach() > 0).to(dtype), alpha=PART * (2 if self.negative else 1))
        total = total - PART if self.negative else total
        if not keeps:
            return total, None
        known = total.detach()  # its signs are those of x, and it has the memory order that `restore` is asked for
        return total, ops.pack_positive(known) if dtype in CODED else ops.pack(known > 0, 1)

    def restore(self, kept: Tensor, like: Tensor) -> Tensor:
        """The stand-in, of the shape and the strides of `like`, which needs no memory, and of its dtype."""
        dtype = like.dtype if like.dtype in CODED else torch.float32
        signs = ops.unpack_levels(kept, like.shape, ops.dense_stride(like), dtype, 2.0 if self.negative else 1.0)
        return (signs.sub_(1) if self.negative else signs).to(like.dtype)


class Run(threading.local):
    """Layers, called one after the other, that share one stand-in: the first must be called, the others may be left
    out. Where the last one may be, somebody must call end() after each forward pass, as models do that `convert` made.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        # Between the first call and the last one: what the first layer got, and the same in the dtype of its product.
        self.value: Optional[tuple[Tensor, Tensor]] = None

    def end(self) -> None:
        """Forgets the input and its graph: no layer is to be called before the first one."""
        self.value = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies have their own."""
        return Run, (self.length, )


class Residual(NamedTuple):
    """Residual stand-in (ARA): what layer 0 of the run gets is added to the input of the others, and kept once."""

    run: Run
    place: int  # of the layer in the run

    def add(self, x: Tensor, dtype: torch.dtype, keeps: bool) -> tuple[Tensor, Optional[Tensor]]:
        """The sum, of this dtype, and the stand-in."""
        if self.place == 0:
            self.run.value = x, x.to(dtype)
        first, a = self.run.value or (None, None)
        if a is None or a.shape != x.shape:
            raise RuntimeError(f"layer {self.place} of a run has an input of shape {list(x.shape)}, and layer 0 had "
                               f"{a if a is None else list(a.shape)}: they must be called in their order, with inputs "
                               "of one shape (a checkpoint must have all layers of a run or none)")
        if self.place == self.run.length - 1:
            self.run.end()
        return (a if x is first else x.to(dtype) + a), a if keeps else None

    def restore(self, kept: Tensor, like: Tensor) -> Tensor:
        """The stand-in."""
        return kept.to(like.dtype)


StandIn = Union[Signs, Residual]
