# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of what is kept for the backward pass."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


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
    """Bytes that are kept at this moment, and the most there have been."""

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0
        # The backward pass of a GPU has threads of its own; and the garbage collector may end a tensor on
        # this thread while it holds the lock.
        self._lock = threading.RLock()

    def add(self, num_bytes: int) -> None:
        """A tensor begins to be kept, or, with a negative number, ends."""
        with self._lock:
            self.now += num_bytes
            self.peak = max(self.peak, self.now)

    def reset_peak(self) -> None:
        """Lets the peak begin again at what is kept now."""
        with self._lock:
            self.peak = self.now
