# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The context manager that compresses what autograd saves."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import Iterator, Mapping, NamedTuple, Optional, Union

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from . import saved
from ._ops import ops
from .meter import Count, LiveBytes, Stats
from .modules_seen import ModuleWatch
from .noise import next_key
from .saved import Saved


class Codec(NamedTuple):
    """How values are compressed. An int in its place is its number of bits."""

    bits: int = 2    # per value, 1 to 8
    window: int = 8  # means of window x window cells of images are kept apart; 1: none
    group: int = 256  # values that share a minimum and a step: 32, 64, 128, 256, 512 or 1024

    def window_of(self, rank: int) -> list[int]:
        """A width for each dimension: images (rank 4) and volumes (5) are pooled over their last
        dimensions, everything else is not."""
        if self.window == 1 or rank not in (4, 5):
            return []
        return [1, 1] + [self.window] * (rank - 2)


Override = Union[Codec, int, None]
BOUNDED_BITS = 8  # of outputs of softmax, sigmoid and tanh, whose gradients are products of them

_thread = threading.local()


@contextmanager
def skip() -> Iterator[None]:
    """What this thread saves inside passes through, whatever compress_saved is on."""
    before = getattr(_thread, "skipping", False)
    _thread.skipping = True
    try:
        yield
    finally:
        _thread.skipping = before


def _checked(codec: Override) -> Optional[Codec]:
    """The codec, if torch.ops.furl.compress would take it."""
    if codec is None:
        return None
    codec = Codec(bits=codec) if isinstance(codec, int) else codec
    if codec.window < 1:
        raise ValueError(f"window is {codec.window}: must be at least 1")
    for rank in (1, 4):
        x = torch.empty([1] * rank, device="meta")
        try:
            ops.compress(x, codec.bits, codec.window_of(rank), codec.group, 0, 0)
        except RuntimeError as refused:
            raise ValueError(str(refused).splitlines()[0]) from None
    return codec


class compress_saved(saved_tensors_hooks):
    """Inside `with compress_saved(): ...`, what autograd saves for the backward pass is compressed.

    bits, window, group: see Codec.
    overrides: for modules of a type, and what they call: another Codec, a number of bits, or None,
        which lets their tensors pass. The innermost module that has one counts.
    model: names its modules in stats(); otherwise these are called by their classes.
    min_elements: smaller tensors pass.

    One object serves one thread at a time, and any number of steps. The backward pass may come
    inside or after the `with`.
    """

    def __init__(self, bits: int = 2, window: int = 8, *, group: int = 256,
                 overrides: Optional[Mapping[type, Override]] = None,
                 model: Optional[nn.Module] = None, min_elements: int = 1024) -> None:
        super().__init__(self._pack, self._unpack)
        self._codec = _checked(Codec(bits, window, group))
        self._overrides = {t: _checked(c) for t, c in (overrides or {}).items()}
        self._min_elements = min_elements
        self._watch = ModuleWatch(model)
        self._watch.on_change = self._choose
        self._current = self._codec
        self._count = Count()
        self._known: "weakref.WeakValueDictionary[int, Saved]" = weakref.WeakValueDictionary()
        self._stats = Stats()
        self.live = LiveBytes()

    def stats(self) -> Stats:
        """Of what was saved since the context was last entered."""
        return self._stats

    def __enter__(self) -> "compress_saved":
        if self._watch.is_on:
            raise RuntimeError("this compress_saved is already on: make another one")
        super().__enter__()
        self._stats = Stats()
        self._watch.start()
        self._choose()
        return self

    def __exit__(self, *exception: object) -> None:
        self._watch.stop()
        super().__exit__(*exception)

    def _choose(self) -> None:
        """For the modules that are running now."""
        self._current = self._codec
        for module in reversed(self._watch.stack) if self._overrides else ():
            found = [t for t in type(module).__mro__ if t in self._overrides]
            if found:
                self._current = self._overrides[found[0]]
                break
        self._count = self._stats.modules.setdefault(self._watch.name(), Count())

    def _may_compress(self) -> bool:
        return self._current is not None and not getattr(_thread, "skipping", False)

    def _pack(self, x: Tensor) -> Saved:
        action, number = ops.inspect(x, self._min_elements)
        known = self._known.get(number)
        if known is not None and (self._may_compress() or isinstance(known, saved.SavedAsIs)):
            return known
        kept = self._save(x, action)
        if action != saved.PARAMETER:
            self._known[number] = kept
            before = saved.tensor_bytes(x)
            self._count.add(before, kept.num_bytes)
            self._stats.total.add(before, kept.num_bytes)
            as_is = isinstance(kept, saved.SavedAsIs)
            (self._stats.kept if as_is else self._stats.compressed).add(before, kept.num_bytes)
        return kept

    def _save(self, x: Tensor, action: int) -> Saved:
        codec = self._current
        if codec is None or action < saved.VALUES or not self._may_compress():
            return saved.save_as_is(x, action, self.live)
        if action == saved.MASK:
            return saved.save_mask(x, self.live)
        if action == saved.CONSTANT:
            packed = saved.save_two_values(x, self.live)
            if packed is not None:
                return packed
            if not self._watch.was_input(x):
                return saved.save_as_is(x, action, self.live)
        bits = max(codec.bits, BOUNDED_BITS) if action == saved.BOUNDED else codec.bits
        return saved.save_values(x, bits, codec.window_of(x.dim()), codec.group, next_key(),
                                 action == saved.POSITIVES, self.live)

    @staticmethod
    def _unpack(kept: Saved) -> Tensor:
        return kept.restore()
