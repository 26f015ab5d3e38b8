# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of what is kept for the backward pass."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class Count:
    """Activations of one module; each counts once, however many operators save it."""

    num_tensors: int = 0
    bytes_before: int = 0  # as the tensors were
    bytes_after: int = 0   # all that is kept: codes, metadata, means, masks, or the tensor itself

    @property
    def ratio(self) -> float:
        """How many times smaller, 1 where there is nothing."""
        return self.bytes_before / self.bytes_after if self.bytes_after else 1.0

    def add(self, before: int, after: int, num_tensors: int = 1) -> None:
        """Counts a tensor, or takes one out."""
        self.num_tensors += num_tensors
        self.bytes_before += before
        self.bytes_after += after


@dataclass
class Stats:
    """What was saved since a context was last entered. Parameters are not counted."""

    total: Count = field(default_factory=Count)
    compressed: Count = field(default_factory=Count)  # codes, or packed masks
    kept: Count = field(default_factory=Count)        # passed through as they were
    modules: dict[str, Count] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{'module':40} {'tensors':>8} {'before':>14} {'after':>14} {'ratio':>7}"]
        rows = [*self.modules.items(), ("passed through", self.kept), ("all", self.total)]
        for name, c in rows:
            lines.append(f"{name:40} {c.num_tensors:8} {c.bytes_before:14,} {c.bytes_after:14,} "
                         f"{c.ratio:6.2f}x")
        return "\n".join(lines)


class LiveBytes:
    """Bytes that are kept at this moment where the tensors were, and the most there have been."""

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0
        self.on_host = 0        # of what has been sent to host memory: it is not a part of `now`
        self.restored = 0       # of tensors that were restored and that somebody still has
        self.backward_peak = 0  # the most of both together
        self._refs: dict[int, "weakref.ref[Tensor]"] = {}
        # The backward pass of a GPU has threads of its own; and the garbage collector may end a tensor on
        # this thread while it holds the lock.
        self._lock = threading.RLock()

    def add(self, num_bytes: int) -> None:
        """A tensor begins to be kept, or, with a negative number, ends."""
        with self._lock:
            self.now += num_bytes
            self.peak = max(self.peak, self.now)

    def move_to_host(self, num_bytes: int) -> None:
        """What was kept is in host memory from now on, or, with a negative number, is not there any more."""
        with self._lock:
            self.now -= num_bytes
            self.on_host += num_bytes

    def add_restored(self, x: Tensor) -> None:
        """A tensor was restored: it counts for as long as it lives."""
        num_bytes = x.numel() * x.element_size()

        def end(ref: "weakref.ref[Tensor]") -> None:
            with self._lock:
                self.restored -= num_bytes
                self._refs.pop(id(ref), None)

        ref = weakref.ref(x, end)
        with self._lock:
            self._refs[id(ref)] = ref
            self.restored += num_bytes
            self.backward_peak = max(self.backward_peak, self.now + self.restored)

    def reset_peak(self) -> None:
        """Lets the peaks begin again at what there is now."""
        with self._lock:
            self.peak = self.now
            self.backward_peak = self.now + self.restored
