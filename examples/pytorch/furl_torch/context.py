# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""The context manager that compresses what autograd saves."""

from __future__ import annotations

import threading
import weakref
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from . import attention, contents, graph, graph_blobs, policy
from ._ops import ops, warn_of_no_kernels
from .auto import WIDTHS, Automatic, automatic
from .codec import Codec, Override, Overrides, checked, is_skipping
from .meter import Count, LiveBytes, Stats
from .modules_seen import ModuleWatch
from .noise import start_graph_keys
from .offload import HostMemory
from .policy import AS_IS, EXACTLY, Demand
from .saved import Saved, SavedSigns, SavedView

BOUNDED_BITS = 8  # of outputs of softmax, sigmoid and tanh, whoever saves them
MOST_DEMANDS = 10_000  # remembered; shapes may be endless
_thread = threading.local()

def running() -> Optional["compress_saved"]:
    """The innermost context that is on in this thread."""
    contexts = getattr(_thread, "contexts", None)
    return contexts[-1] if contexts else None


def _with_settings(kind: type, settings: dict[str, Any]) -> Any:
    return kind(**settings)


class compress_saved(saved_tensors_hooks):
    """Inside `with compress_saved(): ...`, what autograd saves for the backward pass is compressed.

    bits, window, group: see Codec. bits="auto" gives each tensor bits of its own, as measure() finds them: with all
        policies and overrides in force, and no more bytes in all than with mean_bits (1 to 8, by default 2; it may
        be a fraction) for every tensor. Tensors that no measured step had, and those in compiled functions, have
        mean_bits, rounded down. A tensor is the same from step to step if the same operator saves it in the same
        module, as the first, second ... time in one call of the outermost module.
    overrides: another Codec, a number of bits, or None, which lets tensors pass,
        for a module type or a pattern of module names ("blocks.*.attn"), and what such modules call: in
            place of the context's codec. What the policy's table asks for still holds. The innermost
            module that has one counts; of its own, the pattern;
        for an operator ("aten::mul"): in place of its line of the table, and in every module.
    model: names its modules, for patterns and in stats(); otherwise these are called by their classes.
    min_elements: smaller tensors pass.
    offload: what is compressed is kept in host memory, pinned where the tensors are on a GPU, to and from which it is
        copied beside the computation; what passes stays where it is. Nothing changes in compiled functions.

    One object serves one thread at a time, and any number of steps. The backward pass may come
    inside or after the `with`.
    """

    def __init__(self, bits: Union[int, str] = 2, window: int = 8, *, group: int = policy.ROTATED,
                 mean_bits: Optional[float] = None, overrides: Optional[Mapping[Union[type, str], Override]] = None,
                 model: Optional[nn.Module] = None, min_elements: int = 1024, offload: bool = False) -> None:
        warn_of_no_kernels()
        hook = graph.Hook if graph.CAN_TRACE else (lambda function: function)
        super().__init__(hook(self._save), hook(self._restore))
        self.settings: dict[str, Any] = {"bits": bits, "window": window, "group": group, "mean_bits": mean_bits,
                                         "overrides": overrides, "model": model, "min_elements": min_elements,
                                         "offload": offload}
        self._auto = automatic(bits, mean_bits)
        fixed_bits: Any = bits if self._auto is None else int(self._auto.mean_bits)
        self._codec = checked(Codec(fixed_bits, window, group))
        if not isinstance(min_elements, int) or min_elements < 0:
            raise ValueError(f"min_elements is {min_elements}: must be an integer of at least 0")
        self._overrides = Overrides(overrides or {}, model is not None)
        self._table = {k: r for k, r in policy.TABLE.items() if k not in self._overrides.operators}
        self._min_elements = min_elements
        self._watch = ModuleWatch(model)
        self._watch.on_change = self._choose
        self._current = self._codec
        self._count = Count()
        self._calls = attention.Calls()
        self._known: "weakref.WeakValueDictionary[tuple[int, int], Saved]" = weakref.WeakValueDictionary()
        self._stats = Stats()
        self._demands: dict[tuple[Any, ...], Demand] = {}  # of what was saved before
        self._recipes: dict[Any, Optional[graph.Recipe]] = {}  # of what compiled graphs save
        self.live = LiveBytes()
        self._host = HostMemory(self.live) if offload else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, pickled ones too, have the settings alone: no counts, and they are off."""
        return _with_settings, (type(self), self.settings)

    def stats(self) -> Stats:
        """Of what was saved since the context was last entered."""
        return self._stats

    def measure(self, loss_of_step: Callable[[], Tensor], *, relative: bool = False) -> None:
        """With bits="auto": chooses the bits of every tensor anew, by what its error does to the gradient.

        loss_of_step: runs the forward pass of a step and returns its loss, a scalar. It is called once, in this
            context. What it saves takes about three times the bytes of other steps: its batch may be smaller.
        relative: the gradient of each parameter is divided by its own root mean square before errors are added up.
            For Adam and other optimizers that divide the size of a gradient away; not for SGD.

        To be called outside of the `with`, at the first step and then every few hundred. It runs a backward pass for
        each tensor that it can choose for. Gradients of parameters and torch's generators are left as they were;
        running statistics of batch norm see one batch more. With DistributedDataParallel, loss_of_step calls the
        module inside, and every process has bits of its own.
        """
        if self._auto is None:
            raise RuntimeError(f"bits is {self.settings['bits']}: only a context with bits='auto' measures")
        if self.is_on:
            raise RuntimeError("this compress_saved is on: measure() is called outside of its `with`")
        self._auto.measure(self, loss_of_step, relative)

    @property
    def is_on(self) -> bool:
        """Whether it has been entered and not been left."""
        return self._watch.is_on

    def __enter__(self) -> "compress_saved":  # type: ignore[override,unused-ignore]
        if self.is_on:
            raise RuntimeError("this compress_saved is already on: make another one")
        super().__enter__()
        _thread.contexts = [*getattr(_thread, "contexts", ()), self]
        self._stats = Stats()
        graph.start()
        start_graph_keys()
        self._watch.start()
        ops.watch_operators(True)
        self._choose()
        return self

    def __exit__(self, *exception: object) -> None:
        ops.watch_operators(False)
        self._watch.stop()
        graph.stop()
        _thread.contexts.remove(self)
        super().__exit__(*exception)

    def keep(self, x: Tensor, operator: str) -> SavedView:
        """x, as this operator of the table wants it, whether the context is on or not."""
        return self._kept(x, [operator], 0)

    def modules(self) -> Sequence[nn.Module]:
        """Those that are running now, outermost first."""
        return tuple(self._watch.stack)

    def enter_modules(self, modules: Sequence[nn.Module]) -> None:
        """As if these were running, from now until the context ends."""
        self._watch.stack.extend(modules)
        self._choose()

    def _save(self, x: Tensor) -> Any:
        traced = graph.traced_node()
        if traced is None:
            return self._pack(x)
        codec = None if self._passes() else self._codec
        recipe = graph.recipe_of(traced, x, codec, self._min_elements) if codec else None
        recipe = recipe and recipe._replace(numbers=[])
        self._recipes[traced.node] = recipe
        return x if recipe is None else graph_blobs.pack(x, recipe)

    def _restore(self, kept: Any) -> Tensor:
        traced = graph.traced_node()
        if traced is None:
            return kept.restore()
        recipe = self._recipes.pop(traced.node)
        return kept if recipe is None else graph_blobs.unpack(kept, traced.node.meta["val"], recipe)

    def _choose(self) -> None:
        """For the modules that are running now."""
        self._current = self._overrides.of_modules(self._watch, self._codec)
        self._count = self._stats.modules.setdefault(self._watch.name(), Count())
        if self._auto is not None and not self._watch.stack:
            self._auto.start_pass()

    def _pack(self, x: Tensor) -> SavedView:
        operators, argument = ops.consumers(x)
        if not self._computes_again(operators):
            return self._kept(x, operators, argument)
        return self._calls.noted(lambda: self._kept(x, operators, argument), x, operators[0], argument)

    def _computes_again(self, operators: Sequence[str]) -> bool:
        """Whether it is fused attention, whose results are not kept."""
        return attention.is_computed_again(operators) and operators[0] in self._table and not self._passes()

    def _kept(self, x: Tensor, operators: Sequence[str], argument: int) -> SavedView:
        action, number = ops.inspect(x, self._min_elements)
        if action == contents.CONSTANT and self._watch.holds(x):
            action = contents.PARAMETER
        demand = self._demand(x, action, operators, argument)
        key = number, 0
        if number and action in (contents.CONSTANT, contents.MASK) and demand is not AS_IS:
            key = number, ops.hash_elements(x)  # numpy writes without a new version
        kept = self._known.get(key) if number else None
        if kept is None:
            kept = Saved(*self._keep(x, action, demand), self.live)
            if action != contents.PARAMETER:
                if number:
                    self._known[key] = kept
                kept.count_in(self._stats, self._count, contents.tensor_bytes(x))
        else:
            joined = kept.demand.joined(demand)
            if joined != kept.demand:
                kept.replace(*self._keep(x, action, joined))
        if self._auto is not None and self._auto.is_measuring:
            self._probe(self._auto, kept, x, action, operators, argument, demand)
        return (SavedSigns if demand.signs else SavedView)(x if number else None, kept)

    def _probe(self, auto: Automatic, kept: Saved, x: Tensor, action: int, operators: Sequence[str], argument: int,
               demand: Demand) -> None:
        """Notes what x would be kept as with other bits. Not if it is logarithms: their errors are those of the
        least probabilities, which do no harm. Nor if it is kept exactly: it may be zeros and one positive number."""
        codec = self._current
        demands = [demand] * len(WIDTHS)
        is_free = (codec is not None and codec is self._codec and action != contents.MASK and demand.classes is None
                   and 0 < demand.bits < policy.EXACT and kept.demand.bits < policy.EXACT)
        if codec is not None and is_free:
            demands = [self._demand_by(operators, argument, x, action, codec._replace(bits=b)) for b in WIDTHS]
        auto.note(kept, x, demands, is_free, lambda wanted: self._keep(x, action, wanted)[0])

    def _passes(self) -> bool:
        """Whether nothing is to be compressed now."""
        return self._current is None or is_skipping()

    def _demand(self, x: Tensor, action: int, operators: Sequence[str], argument: int) -> Demand:
        """Of the operator that is saving x."""
        if argument == policy.OUTPUT and x.is_floating_point() and self._computes_again(operators):
            return attention.NOT_KEPT
        codec = self._current
        if codec is None or is_skipping():
            return AS_IS
        if action < contents.VALUES:
            return EXACTLY
        if self._auto is not None and codec is self._codec:
            codec = codec._replace(bits=self._auto.bits_at(self._watch.stack, operators, argument))
        if action == contents.MASK:
            return Demand(1, [], codec.group)
        if action == contents.LOGARITHMS:  # depends on more than the names
            return self._demand_by(operators, argument, x, action, codec)
        case = tuple(operators), argument, action, codec, x.shape, x.stride()
        demand = self._demands.get(case)
        if demand is None:
            if len(self._demands) == MOST_DEMANDS:
                self._demands.clear()
            demand = self._demands[case] = self._demand_by(operators, argument, x, action, codec)
        return demand

    def _demand_by(self, operators: Sequence[str], argument: int, x: Tensor, action: int,
                   codec: Optional[Codec]) -> Demand:
        if operators and operators[0] == "CompiledFunction":
            graph.warn_of_no_hooks()
            return AS_IS
        need = policy.need_of(self._table, operators, argument)
        if action == contents.CONSTANT and not policy.is_input(operators, argument):
            return EXACTLY
        if (action == contents.LOGARITHMS) != need.exponentials and need.bits > 0:
            need = policy.Need(policy.EXACT)
        given = self._overrides.operators
        for name in operators if given else ():
            if name in given:
                codec, need = given[name], policy.Need()
                break
            if name in self._table:  # an inner operator's line comes first
                break
        if codec is None or policy.is_scale(operators, x):
            return AS_IS
        if need.exponentials:
            dimension = ops.operator_settings()  # none where another operator inside it is saving
            return (policy.demand_of_logarithms(need, x, dimension[0], codec.bits, codec.group)
                    if len(dimension) == 1 else AS_IS)
        if action in contents.LIMITS:
            need = need._replace(bits=max(need.bits, BOUNDED_BITS))
        demand = policy.demand_of(need, x, codec.bits, codec.window_of(x.dim()), codec.group,
                                  normalises=action != contents.POSITIVES)
        return demand._replace(signs=policy.reads_signs(operators))

    def _keep(self, x: Tensor, action: int, demand: Demand) -> tuple[contents.Content, Demand]:
        """What to keep, and the demand that it satisfies."""
        content, demand = contents.content_of(x, action, demand)
        if self._host is not None and isinstance(content, contents.SavedBlob):
            content.send_to(self._host)
        return content, demand
