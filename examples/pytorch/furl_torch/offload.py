# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Blobs in host memory, from when they are made until the backward pass reads them."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor

from .meter import LiveBytes

MOST_LEAVING = 4   # parcels that are still on the device, too, while they are copied to the host
MOST_RETURNED = 4  # parcels that are on the device again: one that was asked for, and those sent before it


class Copies:
    """Between the memory of one device and that of the host. Those of a GPU run on a stream of their own, from and to
    pinned memory, in the order in which they were started. Those of a CPU are over when they are started."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        make: Any = torch.cuda.Stream
        self._stream = make(device) if device.type == "cuda" else None

    def start(self, tensors: Sequence[Tensor], to_host: bool) -> tuple[Sequence[Tensor], Any]:
        """The copies, and the event with which they are complete."""
        if self._stream is None:
            return [t.clone() for t in tensors], None
        target: dict[str, Any] = {"device": "cpu", "pin_memory": True} if to_host else {"device": self._device}
        copies = [torch.empty(t.shape, dtype=t.dtype, **target) for t in tensors]
        # For the tensors, and for whoever had the memory of the copies before.
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            for copy, t in zip(copies, tensors):
                copy.copy_(t, non_blocking=True)
        return copies, self._stream.record_event()

    def wait(self, event: Any) -> None:
        """What the current stream does from now on comes after the event. The host does not wait."""
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_event(event)


class Parcel:
    """Tensors that are kept in host memory until it dies."""

    __slots__ = ("_memory", "_copies", "_host", "_here", "_event", "place", "_num_bytes", "_is_gone", "__weakref__")

    def __init__(self, memory: "HostMemory", copies: Copies, tensors: Sequence[Tensor], place: int) -> None:
        self._memory = memory
        self._copies = copies
        self.place = place  # among all that were sent
        self._num_bytes = sum(t.numel() * t.element_size() for t in tensors)
        self._is_gone = False  # whether they count as bytes of the host
        self._here: Optional[Sequence[Tensor]] = None  # while they are on the device
        self._host, self._event = copies.start(tensors, to_host=True)
        self._here = tensors

    def __del__(self) -> None:
        self.leave()
        self._memory.live.move_to_host(-self._num_bytes)

    def fetch(self) -> Sequence[Tensor]:
        """The tensors, on their device."""
        return self._memory.fetch(self)

    def leave(self) -> None:
        """Gives back the memory on the device, as soon as the copies are complete."""
        if self._here is not None:
            self._copies.wait(self._event)
            self._here = None
            if not self._is_gone:
                self._is_gone = True
                self._memory.live.move_to_host(self._num_bytes)

    def come(self) -> bool:
        """Begins to copy the tensors to the device, unless they are there."""
        if self._here is not None:
            return False
        self._here, self._event = self._copies.start(self._host, to_host=False)
        for t in self._here:
            self._memory.live.add_restored(t)
        return True

    def tensors(self) -> Sequence[Tensor]:
        """On the device, after they have come."""
        assert self._here is not None
        self._copies.wait(self._event)
        return self._here


class HostMemory:
    """Sends tensors to host memory, and fetches them. The last ones that were sent, and those that have come back, are
    on the device."""

    def __init__(self, live: LiveBytes, copies_of: Callable[[torch.device], Copies] = Copies) -> None:
        self.live = live
        self._copies_of = copies_of
        self._copies: dict[torch.device, Copies] = {}
        self._sent: "list[weakref.ref[Parcel]]" = []  # in this order
        self._most_sent = 0  # until the dead ones among them are looked for
        self._leaving: "deque[weakref.ref[Parcel]]" = deque()
        self._returned: "deque[weakref.ref[Parcel]]" = deque()
        # The backward pass of a GPU has threads of its own.
        self._lock = threading.RLock()

    def send(self, tensors: Sequence[Tensor]) -> Parcel:
        """Begins to copy them to the host."""
        with self._lock:
            while self._sent and self._sent[-1]() is None:
                self._sent.pop()
            if len(self._sent) >= self._most_sent:
                self._drop_dead()
            device = tensors[0].device
            if device not in self._copies:
                self._copies[device] = self._copies_of(device)
            parcel = Parcel(self, self._copies[device], tensors, len(self._sent))
            self._sent.append(weakref.ref(parcel))
            self._let_in(parcel, self._leaving, MOST_LEAVING)
            return parcel

    def _drop_dead(self) -> None:
        """A graph that lives on has dead ones before it, endlessly many where each step makes a new one."""
        alive = [parcel for parcel in (ref() for ref in self._sent) if parcel is not None]
        for place, parcel in enumerate(alive):
            parcel.place = place
        self._sent = [weakref.ref(parcel) for parcel in alive]
        self._most_sent = 2 * len(alive) + MOST_RETURNED

    def fetch(self, parcel: Parcel) -> Sequence[Tensor]:
        """Its tensors on the device. The backward pass reads next what was sent before: that begins to come, too."""
        with self._lock:
            wanted = [parcel]
            for place in range(parcel.place - 1, -1, -1):
                if len(wanted) == MOST_RETURNED:
                    break
                earlier = self._sent[place]()
                if earlier is not None:
                    wanted.append(earlier)
            came = [one for one in wanted if one.come()]
            tensors = parcel.tensors()
            for one in came:
                self._let_in(one, self._returned, MOST_RETURNED)
            return tensors

    @staticmethod
    def _let_in(parcel: Parcel, some: "deque[weakref.ref[Parcel]]", most: int) -> None:
        """To those that are on the device, of which the first that came leaves."""
        some.append(weakref.ref(parcel))
        while len(some) > most:
            first = some.popleft()()
            if first is not None:
                first.leave()
