# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Bits by sensitivity (ActNN, Chen et al., ICML 2021; GACT, Liu et al., ICML 2022): a tensor whose error harms the
gradient more gets more bits, and all together take no more bytes than with mean_bits each.

In a step that is measured, every tensor is kept in two versions, one of them with two bits more. A backward pass reads
the first version of all tensors; then there is one more for each tensor, which reads the second version of this one.
The squared difference of the two gradients is what the tensor's error does. With other numbers of bits it grows as the
squared error of the tensor, which is measured for all of them: no law of errors is assumed. Every number of bits is
tried through the policy, so that what an operator asks for at least stays in force."""

from __future__ import annotations

import heapq
import warnings
import weakref
from collections import Counter
from typing import Any, Callable, ContextManager, Iterable, Iterator, NamedTuple, Optional, Sequence, Union

import torch
from torch import Tensor, nn

from .contents import Content
from .policy import Demand
from .saved import Saved

WIDTHS = range(1, 9)  # bits that are tried
MORE_BITS = 2  # of the second version: its squared error is a fourteenth of the first one's, or less
MOST_HARM = 1e30  # in place of what is not finite


class Place(NamedTuple):
    """What makes a tensor the same one from step to step."""

    module: Optional["weakref.ref[nn.Module]"]  # the innermost that was running
    operators: tuple[str, ...]  # that saved it, innermost first
    argument: int  # of the innermost
    ordinal: int   # among those with the same three, in one call of the outermost module


class Option(NamedTuple):
    """What one number of bits means for a tensor."""

    num_bytes: int
    cost: float  # what it adds to the squared norm of the gradient's error


class Probe:
    """A tensor of a step that is measured."""

    def __init__(self, kept: Saved, demands: Sequence[Demand]) -> None:
        self.kept = kept
        self.demands = list(demands)  # with each of WIDTHS
        self.places: list[Place] = []
        self.num_bytes: list[int] = []  # with each of WIDTHS
        self.errors: list[Tensor] = []  # of the tensor, squared, with each of WIDTHS
        self.other = kept.content     # the second version
        self.harm = torch.zeros(())   # squared difference of the gradients of the two versions
        self.drift = torch.zeros(())  # what of it lies along the gradient

    @property
    def is_free(self) -> bool:
        """Whether the number of bits makes a difference."""
        return any(demand != self.demands[0] for demand in self.demands)

    @property
    def _now(self) -> int:
        """The option that is in force."""
        return WIDTHS.index(self.kept.demand.bits)

    def try_on(self, x: Tensor, keep: Callable[[Demand], Content]) -> None:
        """Keeps x by each of the demands, for its bytes and its error."""
        self.num_bytes, self.errors = [], []
        for i, demand in enumerate(self.demands):
            if i > 0 and demand == self.demands[i - 1]:
                self.num_bytes.append(self.num_bytes[-1])
                self.errors.append(self.errors[-1])
            else:
                content = keep(demand)
                self.num_bytes.append(content.num_bytes)
                self.errors.append(square_of(content.restore().float() - x.detach().float()))
        self.other = keep(self.demands[min(self._now + MORE_BITS, len(WIDTHS) - 1)])

    def read_by(self, gradients: Callable[[], list[Tensor]], first: Sequence[Tensor], square: Tensor) -> None:
        """Lets a backward pass read the other version. first: the gradients without, of this squared norm."""
        self.kept.content, self.other = self.other, self.kept.content
        try:
            differences = [a - b for a, b in zip(first, gradients())]
        finally:
            self.kept.content, self.other = self.other, self.kept.content
        self.harm = total(map(square_of, differences), square)
        along = total(((a * d).sum(dtype=torch.float64) for a, d in zip(first, differences)), square)
        self.drift = along.square() / square

    def options(self, num_probes: int) -> list[Option]:
        """With each of WIDTHS. Errors that are right on average add up in squares. What a tensor takes off the
        gradient, because an operator is not linear in it, grows with the square of its error, and all tensors take it
        off the same: the square of a sum of n is at most n times the sum of the squares."""
        on_device = [v.to(self.harm.device) for v in (self.harm, self.drift, *self.errors)]
        harm, drift, *errors = (v if v < MOST_HARM else MOST_HARM for v in torch.stack(on_device).tolist())
        now = errors[self._now]
        shares = [error / now if now > 0 else 0.0 for error in errors]
        return [Option(num_bytes, harm * share + (num_probes - 1) * drift * share ** 2)
                for num_bytes, share in zip(self.num_bytes, shares)]


class Automatic:
    """The bits of the tensors of one context."""

    def __init__(self, mean_bits: float) -> None:
        """mean_bits: also of tensors that no measured step had, rounded down."""
        if not WIDTHS[0] <= mean_bits <= WIDTHS[-1]:
            raise ValueError(f"mean_bits is {mean_bits}: must be 1 to 8")
        self.mean_bits = mean_bits
        self.is_measuring = False
        self.bits: dict[Place, int] = {}  # that were chosen
        self._place = Place(None, (), 0, 0)  # of the tensor that is being saved
        self._ordinals: "Counter[tuple[Any, ...]]" = Counter()  # by all of a place but for its ordinal
        self._probes: dict[int, Probe] = {}

    def start_pass(self) -> None:
        """No module is running."""
        self._ordinals.clear()

    def bits_at(self, stack: Sequence[nn.Module], operators: Sequence[str], argument: int) -> int:
        """Of the tensor that is being saved."""
        where = weakref.ref(stack[-1]) if stack else None, tuple(operators), argument
        self._place = Place(*where, self._ordinals[where])
        self._ordinals[where] += 1
        return self.bits.get(self._place, int(self.mean_bits))

    def measure(self, context: ContextManager[object], loss_of_step: Callable[[], Tensor], relative: bool) -> None:
        """Chooses bits by the gradient of a step."""
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        self.is_measuring = True
        try:
            with torch.random.fork_rng(devices), context:
                loss = loss_of_step()
            self._allocate(loss, relative)
        finally:
            self._probes = {}
            self.is_measuring = False

    def note(self, kept: Saved, x: Tensor, demands: Sequence[Demand], is_free: bool,
             keep: Callable[[Demand], Content]) -> None:
        """An operator saves x. demands: its own, with each of WIDTHS, all the same if it is not free."""
        probe = self._probes.get(id(kept))
        if probe is None:
            probe = self._probes[id(kept)] = Probe(kept, demands)
        else:
            probe.demands = [a.joined(b) for a, b in zip(probe.demands, demands)]
        if is_free:
            probe.places.append(self._place)
        if probe.is_free:
            probe.try_on(x, keep)

    def _allocate(self, loss: Tensor, relative: bool) -> None:
        """New bits, by the gradients of the step, each over its own root mean square if these are to be relative."""
        if not isinstance(loss, Tensor) or loss.grad_fn is None or loss.numel() != 1:
            raise ValueError("loss_of_step must return a tensor of one element that has a graph")
        probes = [probe for probe in self._probes.values() if probe.is_free]
        leaves = [leaf for leaf in leaves_of(loss) if leaf.is_floating_point() or leaf.is_complex()]
        first = gradients_of(loss, leaves)
        scales = [root_mean_square_of(g) for g in first] if relative else []

        def scaled(gradients: list[Tensor]) -> list[Tensor]:
            return [g / s for g, s in zip(gradients, scales)] if relative else gradients

        first = scaled(first)
        square = total(map(square_of, first), loss)
        if not 0 < float(square) < MOST_HARM:
            warnings.warn(f"the squared norm of the gradient is {float(square)}: bits stay as they are", stacklevel=4)
            return
        for probe in probes:
            probe.read_by(lambda: scaled(gradients_of(loss, leaves)), first, square)
        items: dict[Place, list[Probe]] = {}  # more than one probe where a module is called again
        for probe in probes:
            items.setdefault(probe.places[0], []).append(probe)
        options = [[Option(sum(o.num_bytes for o in same), sum(o.cost for o in same))
                    for same in zip(*(probe.options(len(probes)) for probe in item))] for item in items.values()]
        for item, chosen in zip(items.values(), cheapest(options, self.mean_bits)):
            self.bits.update((place, WIDTHS[chosen]) for probe in item for place in probe.places)


def automatic(bits: Union[int, str], mean_bits: Optional[float]) -> Optional[Automatic]:
    """Of a context with these arguments."""
    if bits == "auto":
        return Automatic(2 if mean_bits is None else mean_bits)
    if isinstance(bits, str):
        raise ValueError(f"bits is {bits!r}: must be 1 to 8 or 'auto'")
    if mean_bits is not None:
        raise ValueError(f"mean_bits is {mean_bits} and bits is {bits}: mean_bits is for bits='auto'")
    return None


def refuse_automatic(bits: Any) -> None:
    """For callbacks of trainers, in which nobody measures."""
    if bits == "auto":
        raise ValueError("bits is 'auto': must be 1 to 8, since a trainer's callback measures no step")


def gradients_of(loss: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Of those that the loss depends on, as dense real numbers."""
    found = torch.autograd.grad(loss, leaves, retain_graph=True, allow_unused=True) if leaves else ()
    return [real_parts(g if g.layout == torch.strided else g.to_dense()) for g in found if g is not None]


def real_parts(x: Tensor) -> Tensor:
    """x, or the two parts of each of its numbers."""
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def square_of(x: Tensor) -> Tensor:
    """Its squared norm, on its device."""
    return torch.linalg.vector_norm(x.detach(), dtype=torch.float64).square()


def root_mean_square_of(x: Tensor) -> Tensor:
    """Of its elements, on its device; 1 where all are 0."""
    square = square_of(x)
    return (square / max(x.numel(), 1)).sqrt().where(square != 0, torch.ones_like(square))


def total(terms: Iterable[Tensor], like: Tensor) -> Tensor:
    """Their sum, on the device of another tensor."""
    return sum((term.to(like.device) for term in terms), torch.zeros((), dtype=torch.float64, device=like.device))


def leaves_of(loss: Tensor) -> Iterator[Tensor]:
    """What its graph leads to and has a gradient."""
    nodes = [loss.grad_fn]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        assert node is not None
        if hasattr(node, "variable"):
            yield node.variable
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)


def cheapest(tensors: Sequence[Sequence[Option]], mean_bits: float) -> list[int]:
    """Which option of each tensor makes the sum of the costs smallest, with no more bytes than mean_bits for all of
    them would take. Bytes are granted where one lowers the costs the most, beginning at 1 bit. (furl's allocate_bits
    is of tiles with min-max codes, by the law of their error, and knows of no least number of bits.)"""
    uniform, part = WIDTHS.index(int(mean_bits)), mean_bits % 1
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
