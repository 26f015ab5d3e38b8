# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""How values are compressed."""

from __future__ import annotations

from typing import NamedTuple, Optional, Union

import torch

from . import policy
from ._ops import ops


class Codec(NamedTuple):
    """How values are compressed. An int in its place is its number of bits."""

    bits: int = 2    # per value, 1 to 8
    window: int = 8  # means of window x window cells of images are kept apart; 1: none
    # ROTATED: codes of 1 to 4 bits are rotated where the operator forgives it. Or how many values share a
    # minimum and a step, 32, 64, 128, 256, 512 or 1024: then no codes are rotated.
    group: int = policy.ROTATED

    def window_of(self, rank: int) -> list[int]:
        """A width for each dimension: images (rank 4) and volumes (5) are pooled over their last
        dimensions, everything else is not."""
        if self.window == 1 or rank not in (4, 5):
            return []
        return [1, 1] + [self.window] * (rank - 2)


Override = Union[Codec, int, None]


def checked(codec: Override) -> Optional[Codec]:
    """The codec, if torch.ops.furl.compress would take it."""
    if codec is None:
        return None
    codec = Codec(bits=codec) if isinstance(codec, int) else codec
    if codec.window < 1:
        raise ValueError(f"window is {codec.window}: must be at least 1")
    if codec.group < 0:
        raise ValueError(f"group is {codec.group}: must not be negative")
    for rank in (1, 4):
        x = torch.empty([1] * rank, device="meta")
        try:
            ops.compress(x, codec.bits, codec.window_of(rank), codec.group or policy.GROUP, 0, 0)
        except RuntimeError as refused:
            raise ValueError(str(refused).splitlines()[0]) from None
    return codec
