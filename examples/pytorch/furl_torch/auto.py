# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Bits by sensitivity (ActNN, Chen et al., ICML 2021; GACT, Liu et al., ICML 2022): tensors whose error harms the
gradient more get more bits, and all together keep no more bytes than with mean_bits each.

In a step that is measured every tensor is compressed twice, with two keys. A backward pass reads the first version of
all tensors, and one more for each tensor reads its second version. The squared difference of the two gradients over
the squared difference of the two versions is the tensor's sensitivity. It is multiplied by the squared error that each
number of bits leaves in the tensor, which is measured too: so no law of errors is assumed, and what the policy asks
for at least stays in force, since every number of bits is tried through it."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import Callable, Iterator, NamedTuple, Optional, Sequence

import torch
from torch import Tensor, nn

from .policy import Demand
from .saved import Content, Saved

WIDTHS = range(1, 9)  # bits that are tried
MOST_HARM = 1e30  # in place of what is not finite


class Place(NamedTuple):
    """What makes a tensor the same one from step to step."""

    module: Optional[nn.Module]  # the innermost that was running
    operators: tuple[str, ...]   # that saved it, innermost first
    argument: int                # of the innermost
    ordinal: int                 # among those with the same three, since the outermost module was called


class Option(NamedTuple):
    """What one number of bits would mean for a tensor."""

    num_bytes: int
    cost: float  # of the squared norm of the gradient's error


class Probe:
    """A tensor of a step that is measured."""

    def __init__(self, kept: Saved, demands: Sequence[Demand]) -> None:
        self.kept = kept
        self.demands = list(demands)  # with each of WIDTHS
        self.places: list[Place] = []
        self.num_bytes: list[int] = []
        self.errors: list[Tensor] = []  # squared, of the tensor, with each of WIDTHS
        self.other = kept.content       # the second version
        self.distance = torch.zeros(())  # squared, between the versions
        self.harm = torch.zeros(())      # squared, between their gradients

    @property
    def is_free(self) -> bool:
        """Whether the number of bits makes a difference."""
        return any(demand != self.demands[0] for demand in self.demands)

    def try_on(self, x: Tensor, keep: Callable[[Demand], Content]) -> None:
        """Keeps the tensor by each of the demands, for its bytes and its error."""
        self.num_bytes, self.errors = [], []
        for i, demand in enumerate(self.demands):
            if i > 0 and demand == self.demands[i - 1]:
                self.num_bytes.append(self.num_bytes[-1])
                self.errors.append(self.errors[-1])
            else:
                content = keep(demand)
                self.num_bytes.append(content.num_bytes)
                self.errors.append(squared_distance(content.restore(), x))
        self.other = keep(self.kept.demand)
        self.distance = squared_distance(self.kept.content.restore(), self.other.restore())

    def swap(self) -> None:
        """Lets the backward pass read the other version."""
        self.kept.content, self.other = self.other, self.kept.content


class Automatic:
    """The bits of the tensors of one context."""

    def __init__(self, mean_bits: float) -> None:
        if not 1 <= mean_bits <= 8:
            raise ValueError(f"mean_bits is {mean_bits}: must be 1 to 8")
        self.mean_bits = mean_bits
        self.is_measuring = False
        self._bits: dict[Place, int] = {}
        self._place = Place(None, (), 0, 0)  # of the tensor that is being saved
        self._ordinals: "Counter[tuple[Optional[nn.Module], tuple[str, ...], int]]" = Counter()
        self._probes: dict[int, Probe] = {}

    def start_pass(self) -> None:
        """A call of the outermost module begins or has ended."""
        self._ordinals.clear()

    def bits_at(self, stack: Sequence[nn.Module], operators: Sequence[str], argument: int) -> int:
        """Of the tensor that is being saved."""
        where = stack[-1] if stack else None, tuple(operators), argument
        self._place = Place(*where, self._ordinals[where])
        self._ordinals[where] += 1
        return self._bits.get(self._place, int(self.mean_bits))

    def start(self) -> None:
        """A step is measured."""
        self._probes = {}
        self.is_measuring = True

    def stop(self) -> None:
        """No more."""
        self._probes = {}
        self.is_measuring = False

    def note(self, kept: Saved, x: Tensor, demands: Sequence[Demand], is_placed: bool,
             keep: Callable[[Demand], Content]) -> None:
        """One operator saves x, as one of these demands, by the number of bits."""
        probe = self._probes.get(id(kept))
        if probe is None:
            probe = self._probes[id(kept)] = Probe(kept, demands)
        else:
            probe.demands = [a.joined(b) for a, b in zip(probe.demands, demands)]
        if is_placed:
            probe.places.append(self._place)
        if probe.is_free:
            probe.try_on(x, keep)

    def allocate(self, loss: Tensor) -> None:
        """New bits, from the gradients of the step."""
        probes = [probe for probe in self._probes.values() if probe.is_free and probe.places]
        leaves = list(leaves_of(loss))
        if not probes or not leaves:
            return

        def gradients() -> Sequence[Optional[Tensor]]:
            return torch.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True)

        first = gradients()
        for probe in probes:
            probe.swap()
            try:
                probe.harm = sum((squared_distance(a, b) for a, b in zip(first, gradients())
                                  if a is not None and b is not None), torch.zeros((), dtype=torch.float64, device=loss.device))
            finally:
                probe.swap()
        items: dict[Place, list[Probe]] = {}  # a tensor of each call where modules are called again
        for probe in probes:
            items.setdefault(probe.places[0], []).append(probe)
        options = [options_of(item) for item in items.values()]
        for item, chosen in zip(items.values(), cheapest(options, self.mean_bits)):
            for place in (place for probe in item for place in probe.places):
                self._bits[place] = WIDTHS[chosen]


def squared_distance(a: Tensor, b: Tensor) -> Tensor:
    """On their device, in float64."""
    return torch.linalg.vector_norm(a.detach().float() - b.detach().float(), dtype=torch.float64).square()


def leaves_of(loss: Tensor) -> Iterator[Tensor]:
    """The parameters that the graph of loss leads to."""
    nodes = [loss.grad_fn]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if hasattr(node, "variable"):
            yield node.variable
        for following, _ in node.next_functions if node is not None else ():
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)


def options_of(item: Sequence[Probe]) -> list[Option]:
    """One for each of WIDTHS."""
    measured = torch.stack([torch.stack([p.harm, p.distance, *p.errors]) for p in item]).tolist()
    costs = [0.0] * len(WIDTHS)
    for harm, distance, *errors in measured:
        sensitivity = (harm if harm < MOST_HARM else MOST_HARM) / distance if distance > 0 else 0.0
        costs = [cost + sensitivity * error for cost, error in zip(costs, errors)]
    return [Option(sum(p.num_bytes[i] for p in item), cost) for i, cost in enumerate(costs)]


def cheapest(tensors: Sequence[Sequence[Option]], mean_bits: float) -> list[int]:
    """Which option of each tensor makes the sum of the costs smallest, with no more bytes than mean_bits for all of
    them would take. Bytes are granted where one lowers the costs the most, beginning at 1 bit."""
    floor, part = divmod(mean_bits, 1)
    uniform = WIDTHS.index(int(floor))
    budget = sum(options[uniform].num_bytes - options[0].num_bytes for options in tensors)
    if part:
        budget += int(part * sum(options[uniform + 1].num_bytes - options[uniform].num_bytes for options in tensors))
    chosen = [0] * len(tensors)
    offers: list[tuple[float, int, int]] = []  # cost per byte, tensor, option

    def offer(tensor: int) -> None:
        options, now = tensors[tensor], tensors[tensor][chosen[tensor]]
        better = [((option.cost - now.cost) / (option.num_bytes - now.num_bytes), tensor, i)
                  for i, option in enumerate(options)
                  if 0 < option.num_bytes - now.num_bytes <= budget and option.cost < now.cost]
        if better:
            heapq.heappush(offers, min(better))

    for tensor in range(len(tensors)):
        offer(tensor)
    while offers:
        _, tensor, i = heapq.heappop(offers)
        more = tensors[tensor][i].num_bytes - tensors[tensor][chosen[tensor]].num_bytes
        if more <= budget:
            chosen[tensor] = i
            budget -= more
        offer(tensor)
    return chosen
