# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What a step would keep for its backward pass, and the largest batch that fits, without running it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map

from . import contents
from ._ops import ops
from .attention import call_fused
from .codec import Codec
from .context import compress_saved
from .saved import Saved, SavedView

FUSED = "_scaled_dot_product_efficient_attention"
NONE = "none"  # in place of a codec's name
CODECS: dict[str, Codec] = {
    "1 bit": Codec(1), "2 bits": Codec(2), "4 bits": Codec(4),
    "2 bits, min-max of groups": Codec(2, 1, 256), "2 bits, min-max after means": Codec(2, 8, 256)}
MOST_BATCH = 2**24
WORKING_TENSORS = 3  # restored, its gradient, and the gradient of what was made of it


class PlannedTensor(NamedTuple):
    """What one operator saves. A tensor that several save comes once for each of them."""

    operator: str  # innermost, as torch names it
    module: str
    shape: torch.Size
    dtype: torch.dtype
    number: int    # the same for all that is kept once
    before: int    # bytes
    after: int     # bytes with the codec, for all that have the number together


class _Planner(compress_saved):
    """Notes what would be saved."""

    def __init__(self, codec: Codec, model: nn.Module, **settings: Any) -> None:
        super().__init__(codec.bits, codec.window, group=codec.group, model=model, **settings)
        self.notes: list[tuple[str, str, Tensor, Saved]] = []
        self._is_parameter = False

    def _pack(self, x: Tensor) -> SavedView:
        packed = super()._pack(x)
        if not self._is_parameter:
            operators: list[str] = ops.consumers(x)[0] or ["outside operators"]
            self.notes.append((operators[0], self._watch.name(), x, packed.saved))
        return packed

    def _demand(self, x: Tensor, action: int, operators: Sequence[str], argument: int) -> Any:
        self._is_parameter = action == contents.PARAMETER
        return super()._demand(x, action, operators, argument)

    def tensors(self) -> list[PlannedTensor]:
        """All of them, in the order in which they are saved."""
        numbers: dict[int, int] = {}
        return [PlannedTensor(operator, module, x.shape, x.dtype, numbers.setdefault(id(kept), len(numbers)),
                              contents.tensor_bytes(x), kept.num_bytes) for operator, module, x, kept in self.notes]


@dataclass
class Plan:
    """Of one codec, or of none."""

    bytes_saved: int   # kept from the forward to the backward pass, without parameters
    working_bytes: int  # of the largest tensor that is saved: restored, its gradient, and that of what is made of it
    largest_batch: Optional[int] = None  # that fits, if a memory was given; 0 if none does
    tensors: list[PlannedTensor] = field(default_factory=list)  # none for NONE


@dataclass
class Estimate:
    """What estimate returns; its str is a table."""

    batch: int
    model_bytes: int  # parameters, buffers, gradients and what the optimizer keeps
    memory: Optional[int]
    plans: dict[str, Plan]

    def __str__(self) -> str:
        width = max(len(name) for name in self.plans)
        lines = [f"{f'batch {self.batch}':{width}} {'saved, GB':>10} {'ratio':>7} {'working':>8}"
                 + (f" {'largest batch':>14}" if self.memory else "")]
        before = self.plans[NONE].bytes_saved
        for name, plan in self.plans.items():
            ratio = f"{before / plan.bytes_saved:6.2f}x" if plan.bytes_saved else ""
            lines.append(f"{name:{width}} {plan.bytes_saved / 1e9:10.3f} {ratio:>7} {plan.working_bytes / 1e9:8.3f}"
                         + (f" {plan.largest_batch:14}" if self.memory else ""))
        lines.append(f"The model, its gradients and the optimizer take {self.model_bytes / 1e9:.3f} GB"
                     + (f" of {self.memory / 1e9:.3f}." if self.memory else "."))
        return "\n".join(lines)


def _dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As on a GPU: it keeps a bool for each element."""
    return torch.native_dropout(x, p, True)[0] if training and p > 0 else x


def _attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
               is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False) -> Tensor:
    """As on a GPU: fused."""
    if query.dim() == 3:
        query, key, value = (x.unsqueeze(0) for x in (query, key, value))
        return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa).squeeze(0)
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    bias = None
    if attn_mask is not None:
        bias = torch.empty(attn_mask.shape, dtype=query.dtype, device=query.device).expand(
            *query.shape[:-1], key.shape[-2])
    _have_fused_on_meta()
    return call_fused(FUSED, (query, key, value), bias, dropout_p, is_causal, scale)[0]


@lru_cache
def _have_fused_on_meta() -> Optional[torch.library.Library]:
    """Gives fused attention its shapes on meta tensors where torch has them for fake tensors alone, as 2.4 does."""
    import_module("torch._meta_registrations")
    if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{FUSED}", "Meta"):
        return None
    library = torch.library.Library("aten", "IMPL", "Meta")  # type: ignore[no-untyped-call,unused-ignore]
    library.impl(FUSED, _fused_on_meta)  # type: ignore[no-untyped-call,unused-ignore]
    return library


def _fused_on_meta(query: Tensor, key: Tensor, value: Tensor, attn_bias: Optional[Tensor], compute_log_sumexp: bool,
                   dropout_p: float = 0.0, is_causal: bool = False, *, scale: Optional[float] = None
                   ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Output, log-sums, and two numbers for the dropout."""
    batch, heads, tokens, _ = query.shape
    output = query.new_empty(batch, tokens, heads, value.shape[-1]).transpose(1, 2)
    sums = query.new_empty(batch, heads, -(-tokens // 32) * 32 if compute_log_sumexp else 0, dtype=torch.float32)
    seed, offset = (torch.empty((), dtype=torch.int64, device="meta") for _ in range(2))
    return output, sums, seed, offset


def _on_meta(x: Any) -> Any:
    """A meta tensor for each tensor in x; for a parameter, a parameter."""
    def of_one(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        like = torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")
        is_parameter = isinstance(t, nn.Parameter)
        return nn.Parameter(like, t.requires_grad) if is_parameter else like.requires_grad_(t.requires_grad)

    return tree_map(of_one, x)


def _of_batch(x: Any, batch: int) -> Any:
    """x, whose tensors have another first dimension."""
    return tree_map(lambda t: torch.empty((batch, *t.shape[1:]), dtype=t.dtype, device="meta")
                    if isinstance(t, Tensor) and t.dim() > 0 else t, x)


class _Step:
    """The forward pass of a model on meta tensors."""

    def __init__(self, model: nn.Module, inputs: Sequence[Any], named_inputs: Mapping[str, Any],
                 settings: Mapping[str, Any]) -> None:
        self._model = model
        self._inputs = _on_meta(tuple(inputs)), _on_meta(dict(named_inputs))
        self._settings = settings
        self._state = _on_meta({**dict(model.named_parameters()), **dict(model.named_buffers())})

    def batch(self) -> int:
        """The first dimension of the first tensor among the inputs."""
        found: list[int] = []
        tree_map(lambda t: found.append(t.shape[0]) if isinstance(t, Tensor) and t.dim() > 0 else None, self._inputs)
        if not found:
            raise ValueError("inputs has no tensor with a batch as its first dimension")
        return found[0]

    def plan(self, codec: Codec, batch: Optional[int] = None) -> tuple[Plan, Plan]:
        """With the codec, and with none."""
        inputs, named = self._inputs if batch is None else _of_batch(self._inputs, batch)
        planner = _Planner(codec, self._model, **self._settings)
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(F, "dropout", _dropout))
            stack.enter_context(mock.patch.object(F, "scaled_dot_product_attention", _attention))
            stack.enter_context(torch.random.fork_rng([]))
            stack.enter_context(torch.device("meta"))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(planner)
            output = torch.func.functional_call(self._model, self._state, inputs, named)
            del output
        tensors = planner.tensors()
        largest = max((t.before for t in tensors), default=0)
        total = planner.stats().total
        return (Plan(total.bytes_after, WORKING_TENSORS * largest, tensors=tensors),
                Plan(total.bytes_before, (WORKING_TENSORS - 1) * largest))


def _largest(fits: Callable[[int], bool], guess: int) -> int:
    """The largest number from 0 to MOST_BATCH that fits, where all smaller ones do."""
    step, low, high = 1, 0, MOST_BATCH + 1
    guess = min(max(guess, 1), MOST_BATCH)
    if fits(guess):
        low = guess
        while low + step < high and fits(low + step):
            low, step = low + step, 2 * step
        high = min(high, low + step)
    else:
        high = guess
        while high - step > 0 and not fits(high - step):
            high, step = high - step, 2 * step
        low = max(high - step, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _with_largest_batch(plans: Mapping[str, Plan], plans_of: Callable[[str, int], Plan], batch: int,
                        memory: int) -> None:
    """Fills it in. memory: bytes for what is saved and the working tensors."""
    def bytes_of(name: str, n: int) -> int:
        plan = plans_of(name, n)
        return plan.bytes_saved + plan.working_bytes

    for name, plan in plans.items():
        here, twice = plan.bytes_saved + plan.working_bytes, bytes_of(name, 2 * batch)
        guess = batch + int((memory - here) * batch / max(twice - here, 1))
        plan.largest_batch = _largest(lambda n, name=name: bytes_of(name, n) <= memory, guess)  # type: ignore[misc]


def estimate(model: nn.Module, *inputs: Any, named_inputs: Optional[Mapping[str, Any]] = None,
             codecs: Mapping[str, Codec] = CODECS, memory: Optional[int] = None, optimizer_states: int = 2,
             **settings: Any) -> Estimate:
    """What the model would save in compress_saved, for each codec and without any, and the largest batch that fits.

    Nothing is computed: the forward pass runs on meta tensors with the shapes and dtypes of the model and the inputs,
    which may be on any device, the meta device too. It runs as it would on a GPU: attention is fused, and dropout keeps
    bools. Autocast has no effect; a model of bfloat16 has. Make the loss a part of the model, if it is to count.

    model: in the mode, train or eval, in which it would run. What depends on values of tensors raises torch's error.
    inputs, named_inputs: of its forward; the batch is the first dimension of their tensors.
    codecs: by names, which the result has too.
    memory: bytes, of which the model, its gradients, optimizer_states values for each trained parameter (2: Adam), what
        is saved, and 3 times the largest tensor that is saved (2 times without a codec), are taken. Workspaces of
        operators and what the allocator wastes are not known: give less than there is.
    settings: of compress_saved: overrides, min_elements.
    """
    if not hasattr(torch, "func"):
        raise RuntimeError(f"torch {torch.__version__} cannot run models on meta tensors: estimate needs torch 2")
    if not codecs:
        raise ValueError("codecs is empty: must have one at least")
    if memory is not None and memory < 1:
        raise ValueError(f"memory is {memory}: must be at least 1 byte")
    if optimizer_states < 0:
        raise ValueError(f"optimizer_states is {optimizer_states}: must not be negative")
    step = _Step(model, inputs, named_inputs or {}, settings)
    batch = step.batch()
    plans = {}
    for name, codec in codecs.items():
        plans[name], plans[NONE] = step.plan(codec)
    plans = {NONE: plans.pop(NONE), **plans}
    trained = sum(contents.tensor_bytes(p) for p in model.parameters() if p.requires_grad)
    state = sum(contents.tensor_bytes(t) for t in [*model.parameters(), *model.buffers()])
    model_bytes = state + trained * (1 + optimizer_states)
    if memory is not None:
        any_codec = next(iter(codecs.values()))
        _with_largest_batch(plans, lambda name, n: step.plan(codecs.get(name, any_codec), n)[name == NONE], batch,
                            memory - model_bytes)
    return Estimate(batch, model_bytes, memory, plans)
