# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Keys of the random streams. They are furl's own: torch's generators are never drawn from."""

from __future__ import annotations

import itertools
import threading
from contextlib import contextmanager
from numbers import Integral
from typing import Iterator, List, Optional, Tuple

from torch import distributed

from ._ops import ops

KEYS_OF_A_RANK = 2**44
GRAPH_KEYS = 2**62  # the first of compiled graphs

_seed = 0
_offsets: Iterator[int] = itertools.count()
_graph_sequence: tuple[int, ...] = ()
_thread = threading.local()

Keys = List[Tuple[int, int]]


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
    """For an operator whose result depends on it: as next_key, but when a checkpoint runs again the same as before."""
    tapes: list[tuple[Keys, Optional[Iterator[tuple[int, int]]]]] = getattr(_thread, "tapes", [])
    last = max((i for i, (_, repeats) in enumerate(tapes) if repeats is not None), default=-1)
    repeats = tapes[last][1] if last >= 0 else None
    key = next_key() if repeats is None else next(repeats)
    for keys, _ in tapes[last + 1:]:
        keys.append(key)
    return key


@contextmanager
def keys_recorded(keys: Keys) -> Iterator[None]:
    """Appends those that operators draw meanwhile."""
    with _tape(keys, None):
        yield


@contextmanager
def keys_repeated(keys: Keys) -> Iterator[None]:
    """Gives operators these."""
    with _tape(keys, iter(keys)):
        yield


@contextmanager
def _tape(keys: Keys, repeats: Optional[Iterator[tuple[int, int]]]) -> Iterator[None]:
    before = getattr(_thread, "tapes", [])
    _thread.tapes = [*before, (keys, repeats)]
    try:
        yield
    finally:
        _thread.tapes = before


def _rank() -> int:
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


def start_graph_keys() -> None:
    """Compiled graphs draw their keys from a sequence of their own, which begins with the seed."""
    global _graph_sequence
    sequence = _seed, _rank(), id(_offsets)
    if sequence != _graph_sequence:
        _graph_sequence = sequence
        ops.set_next_key(_seed, GRAPH_KEYS + sequence[1] * KEYS_OF_A_RANK)
