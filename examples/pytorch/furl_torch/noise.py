# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Keys of the random streams. Those of noise are furl's own: it never draws from torch's generators."""

from __future__ import annotations

import itertools
from numbers import Integral
from typing import Iterator

from torch import distributed

from ._ops import ops

KEYS_OF_A_RANK = 2**44
GRAPH_KEYS = 2**62  # the first of compiled graphs

_seed = 0
_offsets: Iterator[int] = itertools.count()
_graph_sequence: tuple[int, ...] = ()


def manual_seed(seed: int) -> None:
    """Starts the sequence of keys again, with a seed of 0 to 2**63 - 1. Not needed for noise that is
    fresh: every tensor of a process takes another key, whatever context compresses it."""
    global _seed, _offsets
    if not isinstance(seed, Integral) or not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}: must be an integer of 0 to 2**63 - 1")
    _seed = seed
    _offsets = itertools.count()


def next_key() -> tuple[int, int]:
    """A seed and an offset that no other call returns (until the seed is set again), nor one in another
    process of the group."""
    return _seed, _rank() * KEYS_OF_A_RANK + next(_offsets)


def operator_key() -> tuple[int, int]:
    """For an operator whose result depends on it: drawn from torch's generator, as torch's own operator would draw, so
    that a checkpoint, which sets the generator back, has the same result when it runs again."""
    return ops.draw_number(), _rank() * KEYS_OF_A_RANK


def _rank() -> int:
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def start_graph_keys() -> None:
    """Compiled graphs draw their keys from a sequence of their own, which begins with the seed."""
    global _graph_sequence
    sequence = _seed, _rank(), id(_offsets)
    if sequence != _graph_sequence:
        _graph_sequence = sequence
        ops.set_next_key(_seed, GRAPH_KEYS + sequence[1] * KEYS_OF_A_RANK)
