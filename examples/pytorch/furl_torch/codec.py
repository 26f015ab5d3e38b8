# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""How values are compressed, where the operator that saves them leaves the choice."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Union

import torch
from torch import nn

from . import policy
from .modules_seen import ModuleWatch
from ._ops import ops


CODED = (torch.float32, torch.float16, torch.bfloat16)  # the dtypes of furl's operators


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

# Arguments of compress_saved that are ActNN's levels of these names (Chen et al., ICML 2021).
LEVELS: dict[str, dict[str, Any]] = {
    "L1": {"bits": 4, "window": 1, "group": 256, "overrides": {nn.modules.batchnorm._BatchNorm: None}},
    "L2": {"bits": 4, "window": 1, "group": 256},
    "L3": {"bits": "auto", "mean_bits": 2, "window": 1, "group": 256},
}


_thread = threading.local()


@contextmanager
def skip() -> Iterator[None]:
    """What this thread saves inside passes through, whatever compress_saved is on."""
    before = is_skipping()
    _thread.skipping = True
    try:
        yield
    finally:
        _thread.skipping = before


def is_skipping() -> bool:
    """Whether this thread is inside a skip()."""
    return getattr(_thread, "skipping", False)


def check_bits(bits: Any) -> None:
    """That it is a number of bits of a code."""
    if not isinstance(bits, int) or not 1 <= bits <= 8:
        raise ValueError(f"bits is {bits!r}: must be an integer of 1 to 8")


def checked(codec: Override) -> Optional[Codec]:
    """The codec, if torch.ops.furl.compress would take it."""
    if codec is None:
        return None
    codec = codec if isinstance(codec, Codec) else Codec(bits=codec)
    check_bits(codec.bits)
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


class Overrides:
    """Codecs in place of a context's."""

    def __init__(self, given: Mapping[Union[type, str], Override], has_names: bool) -> None:
        """has_names: whether the names of modules are known."""
        self.operators: dict[str, Optional[Codec]] = {}
        self._patterns: dict[str, Optional[Codec]] = {}
        self._types: dict[type, Optional[Codec]] = {}
        for key, codec in given.items():
            if isinstance(key, type):
                self._types[key] = checked(codec)
            elif not isinstance(key, str):
                raise ValueError(f"overrides has the key {key!r}: must be a type, a pattern or the name of an operator")
            elif "::" in key:
                self.operators[key] = checked(codec)
            elif has_names:
                self._patterns[key] = checked(codec)
            else:
                raise ValueError(f"overrides has the pattern {key!r}: names of modules need model=")

    def of_modules(self, watch: ModuleWatch, otherwise: Optional[Codec]) -> Optional[Codec]:
        """Of the innermost running module that has one."""
        for module in reversed(watch.stack) if self._types or self._patterns else ():
            name = watch.names.get(module, "")
            found = [c for pattern, c in self._patterns.items() if fnmatchcase(name, pattern)] + [
                self._types[t] for t in type(module).__mro__ if t in self._types]
            if found:
                return found[0]
        return otherwise
