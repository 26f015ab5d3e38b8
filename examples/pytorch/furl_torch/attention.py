# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Fused attention. Its backward pass computes exp(q k - lse) again and takes the output times its gradient off: both
must belong to the q, k and v that it reads. Those of the exact ones leave probabilities of restored ones that do not
add up to 1, and gradients that are infinite where a token is loud. So output and log-sums are not kept, but computed
again from what is restored."""

from __future__ import annotations

import weakref
from functools import lru_cache
from typing import Any, Callable, Optional, Sequence

import torch
from torch import Tensor

from .policy import OUTPUT, SHAPE, Demand
from .saved import Saved, SavedView

NOT_KEPT = Demand(SHAPE, [], 0)
OPERATORS = ("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
             "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention")


@lru_cache
def _arguments(name: str) -> frozenset[str]:
    return frozenset(argument.name for argument in getattr(torch.ops.aten, name).default._schema.arguments)


def call_fused(name: str, qkv: Sequence[Tensor], mask: Optional[Tensor], dropout: float, is_causal: bool,
               scale: Optional[float]) -> Sequence[Tensor]:
    """Of the results, 0 is the output and 1 are the log-sums. Arguments go by name, since versions of torch have them
    in other places, or lack some."""
    known = {"attn_bias": mask, "attn_mask": mask, "compute_log_sumexp": True, "dropout_p": dropout,
             "is_causal": is_causal, "scale": scale}
    has = _arguments(name)
    return getattr(torch.ops.aten, name).default(*qkv, **{key: value for key, value in known.items() if key in has})


def is_computed_again(operators: Sequence[str]) -> bool:
    """Whether the innermost is one of these, of which only calls without dropout have the name."""
    return bool(operators) and operators[0].startswith("aten::") and operators[0][len("aten::"):] in OPERATORS


class Call:
    """One call, with its inputs as they are kept."""

    __slots__ = ("_operator", "_inputs", "_twin", "_num_inputs", "_mask", "_is_causal", "_scale", "_other",
                 "__weakref__")

    def __init__(self, operator: str) -> None:
        self._operator = operator[len("aten::"):]
        self._inputs: dict[int, Any] = {}
        self._twin: Any = None
        self._num_inputs = 0
        self._mask: Any = None
        self._is_causal = False
        self._scale: Optional[float] = None
        self._other: Optional[tuple[int, Tensor]] = None  # the result that was not asked for yet

    @property
    def has_inputs(self) -> bool:
        """Whether it has q, k and v."""
        return self._num_inputs == 3

    def is_of(self, operator: str) -> bool:
        """Whether it is one of this operator."""
        return operator == "aten::" + self._operator

    def add(self, kept: Any, argument: int) -> None:
        """One of q, k and v, or the mask. A tensor that is two of them comes twice, both times as the first."""
        if argument in self._inputs:
            self._twin = kept
        if 0 <= argument <= 2:
            self._inputs[argument] = kept
            self._num_inputs += 1
        elif argument > 2:
            self._mask = kept

    def finish(self, node: Any) -> None:
        """With the settings that the graph has. torch 2.0 has no scale."""
        self._is_causal, self._scale = node._saved_is_causal, getattr(node, "_saved_scale", None)

    def result(self, which: int) -> Tensor:
        """Output or log-sums. The backward pass reads one after the other: both are computed for the first."""
        if self._other is None or self._other[0] != which:
            qkv = [self._inputs.get(place, self._twin).restore() for place in range(3)]
            mask = None if self._mask is None else self._mask.restore()
            with torch.no_grad():
                results = call_fused(self._operator, qkv, mask, 0.0, self._is_causal, self._scale)
            self._other = 1 - which, results[1 - which]
            return results[which]
        other = self._other[1]
        self._other = None
        return other


class Calls:
    """The calls of attention whose tensors one context keeps."""

    def __init__(self) -> None:
        self._call: Optional[Call] = None  # that is saving
        self._last: Callable[[], Optional[Call]] = lambda: None  # that has saved its output, while a graph has it

    def noted(self, keep: Callable[[], SavedView], x: Tensor, operator: str, argument: int) -> SavedView:
        """What stands in the graph for x; keep() says what is kept of it. A call saves its mask, then q, k and v, then
        its output and its log-sums, which have no gradient, in any order; seeds and the like may come between."""
        try:
            kept = keep()
        except BaseException:
            self._call = None  # lest the next call is taken for the rest of this one
            raise
        if argument == OUTPUT and not x.is_floating_point():
            return kept
        if argument != OUTPUT:
            if self._call is None or self._call.has_inputs or not self._call.is_of(operator):
                self._call = Call(operator)
            self._call.add(kept, argument)
            return kept
        call, which = self._call or self._last(), 0 if x.requires_grad else 1
        assert call is not None, "attention saved a result before its inputs"
        if which == 0:
            call.finish(x.grad_fn)
            self._call, self._last = None, weakref.ref(call)
        return SavedResult(x, kept.saved, call, which)


class SavedResult(SavedView):
    """What stands in a graph for an output of attention, or for its log-sums."""

    __slots__ = ("call", "which")

    def __init__(self, x: Tensor, saved: Saved, call: Call, which: int) -> None:
        super().__init__(x, saved)
        self.call, self.which = call, which

    def restore(self) -> Tensor:
        """What the operator returns for the restored inputs."""
        return self.saved.seen(self.call.result(self.which))
