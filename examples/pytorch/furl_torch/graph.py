# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""compress_saved in graphs that torch.compile makes. The compiler traces the hooks once for each tensor that a
graph saves and puts what they do into the graph. The operators that read the tensor in the backward graph
say what it may lose."""

from __future__ import annotations

import functools
import operator
import warnings
from typing import Any, Callable, Iterator, NamedTuple, Optional

import torch
from torch import Tensor, fx, nn

from . import places, policy
from .codec import CODED
from .places import Dimension
from .policy import Demand, Need

try:
    from torch._functorch import config as _functorch
    from torch._functorch._aot_autograd.graph_compile import _get_saved_tensor_hook_context as _tracing
    CAN_TRACE = hasattr(_functorch, "saved_tensors_hooks_filtering_mode")
except ImportError:
    CAN_TRACE = False


# They hand on the elements of their first argument, some of them shifted by what the operator takes off.
_MOVERS = {"view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "squeeze", "unsqueeze", "alias",
           "clone", "_to_copy", "convert_element_type", "slice", "select", "as_strided", "detach"}
_SHIFTS = {"sub", "add"}
# Their result is linear in each argument.
_LINEAR = {"mm", "addmm", "baddbmm", "convolution", "convolution_backward", "mul", "sum", "neg", "where", "cat",
           "mean"}
# Operators of the backward pass by that which saved, and the position there of what it had at each of theirs.
_ATTENTION = {1: 0, 2: 1, 3: 2, 4: policy.OUTPUT}
_BACKWARD: dict[str, tuple[str, dict[int, int]]] = {
    "threshold_backward": ("aten::relu", {}),
    "_softmax_backward_data": ("aten::_softmax", {}),
    "native_batch_norm_backward": ("aten::batch_norm", {}),
    "cudnn_batch_norm_backward": ("aten::batch_norm", {}),
    "_log_softmax_backward_data": ("aten::logsumexp", {}),
    "nll_loss_backward": ("aten::nll_loss_forward", {1: 0}),
    "max_pool2d_with_indices_backward": ("aten::max_pool2d_with_indices", {1: 0}),
    # Nothing is computed again in graphs.
    "_scaled_dot_product_flash_attention_for_cpu_backward": ("aten::attention with kept results", _ATTENTION),
    "_scaled_dot_product_flash_attention_backward": ("aten::attention with kept results", _ATTENTION),
    "_scaled_dot_product_cudnn_attention_backward": ("aten::attention with kept results", _ATTENTION),
    "_scaled_dot_product_efficient_attention_backward": (
        "aten::attention with kept results", {1: 0, 2: 1, 3: 2, 5: policy.OUTPUT}),
}
_STATISTICS = {"rsqrt", "sqrt", "reciprocal", "mean", "amax", "amin", "logsumexp"}
_POINTWISE = Need(tokens=True)
_EXACT = Need(policy.EXACT)
_LIMITS = {"sigmoid": (0.0, 1.0), "_softmax": (0.0, 1.0), "tanh": (-1.0, 1.0)}


@functools.lru_cache(maxsize=None)
def _module_of_hooks() -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(graph.call_function(_hint, (graph.placeholder("x"), )))
    return fx.GraphModule(nn.Module(), graph)


class Hook(fx.GraphModule):
    """A function in the only form in which the compiler takes hooks. Its graph is not run: it has a call that
    no cache of compiled graphs knows, so that none is used again with another context's codec."""

    run: Callable[[Any], Any]

    def __new__(cls, *_: Any) -> "Hook":
        return nn.Module.__new__(cls)  # a GraphModule has a class of its own, whose source Python never forgets

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.__dict__.update(_module_of_hooks().__dict__)
        # Hooks that run beside compiled code are not to be compiled themselves.
        self.__dict__["run"] = torch._dynamo.disable(function)  # type: ignore[no-untyped-call,unused-ignore]

    def __call__(self, x: Any) -> Any:  # what torch has in its place would cost 2 us a tensor
        return self.run(x)


def eagerly(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, which the compiler does not look into."""
    disable: Any = getattr(getattr(torch, "compiler", None), "disable", None)
    return function if disable is None else disable(function)


def traced_node() -> Optional["Traced"]:
    """What is being traced, if the compiler called the hook."""
    state = _tracing() if CAN_TRACE else None
    return Traced(state["_node"], state["_bw_graph"]) if state else None


def warn_of_no_hooks() -> None:
    """A compiled function saves a tensor that its hooks were not compiled for. It passes."""
    warnings.warn(f"torch {torch.__version__} has not compiled the hooks: what compiled functions save is kept as it "
                  "is")


class Traced(NamedTuple):
    """A tensor that a compiled graph saves."""

    node: fx.Node
    backward: fx.Graph

    def readers(self) -> list[tuple[fx.Node, int]]:
        """What reads it in the backward graph, and at which position."""
        for node in self.backward.find_nodes(op="placeholder"):
            if node.name == self.node.name:
                return list(_readers_of(node))
        return []

    def class_dimension(self) -> Optional[int]:
        """Of the log-softmax whose output it is, if nothing reads it but for its exponentials."""
        if _name(self.node) != "_log_softmax" or not isinstance(self.node.args[1], int):
            return None
        reads_exp = all(_name(user) in ("_log_softmax_backward_data", "nll_loss_backward")
                        for user, _ in self.readers())
        return self.node.args[1] if reads_exp else None

    def is_statistic(self) -> bool:
        """Whether it is of many values, which are then multiplied by it."""
        source = self.node.args[0] if self.node.target is operator.getitem else None
        if isinstance(source, fx.Node):
            return self.node.args[1] not in (0, None) and ("norm" in _name(source) or _name(source) == "var_mean")
        shape = self.node.meta["val"].shape
        return _name(self.node) in _STATISTICS or (len(shape) > 1 and str(shape[-1]) == "1")

    def limits(self) -> Optional[tuple[float, float]]:
        """Of its values."""
        return _LIMITS.get(_name(self.node))


def _name(node: fx.Node) -> str:
    packet = getattr(node.target, "overloadpacket", None)
    return packet.__name__ if packet is not None else ""


def _readers_of(x: fx.Node) -> Iterator[tuple[fx.Node, int]]:
    for user in x.users:
        if _name(user) in _MOVERS or _name(user) in _SHIFTS:
            yield from _readers_of(user)
        elif user.op == "call_function":
            yield user, user.args.index(x) if x in user.args else policy.OTHERS


def _need_of(user: fx.Node, position: int) -> Need:
    name = _name(user)
    if name in ("le", "gt") and user.args[1] == 0:
        return Need(policy.SIGNS)
    if name in ("eq", "ne"):  # a maximum, looked for again
        return _EXACT
    if name == "threshold_backward" and user.args[2] != 0:
        return Need(8)
    if name == "pow" and not (isinstance(user.args[1], int) and user.args[1] >= 0):
        return _EXACT
    if name in ("exp", "exp2"):
        return Need(8, tokens=True)
    without_end = name[:-len("_backward")] if name.endswith("_backward") else name
    forward, positions = _BACKWARD.get(name, (f"aten::{without_end}", {}))
    rule = policy.rule_of(policy.TABLE, forward)
    if isinstance(rule, Need):
        return rule
    if rule is not None:
        return rule.get(positions.get(position, position), _EXACT if positions else _POINTWISE)
    return Need() if name in _LINEAR else _POINTWISE


def _hint(n: Any) -> int:
    """A number that may be symbolic, as it is now."""
    return int(n) if isinstance(n, int) else int(n.node.hint)


def stand_in(x: Tensor) -> Tensor:
    """A tensor of this shape as it is now, so that choosing a codec does not tie the graph to the shape."""
    return torch.empty_strided([_hint(n) for n in x.shape], [_hint(n) for n in x.stride()], dtype=x.dtype,
                               device="meta")


def _pooling(x: fx.Node) -> Optional[list[Dimension]]:
    """Of the max pooling whose indices x is, or, of the inductor's, the places in windows."""
    source = x.args[0] if x.target is operator.getitem else None
    if not isinstance(source, fx.Node) or x.args[1] != 1 or "max_pool" not in _name(source):
        return None
    rank = len(source.args[1])  # type: ignore[arg-type]
    sizes = source.args[0].meta["val"].shape[-rank:]  # type: ignore[union-attr]
    given: list[Any] = list(source.args[1:])
    widths: list[Any] = [given[i] if len(given) > i and given[i] else default
                         for i, default in enumerate((None, given[0], [0] * rank, [1] * rank))]
    if not all(isinstance(n, int) for n in sizes):
        return None
    lists = [list(w) * (rank if len(w) == 1 else 1) for w in widths]
    return [Dimension(*numbers) for numbers in zip(sizes, *lists)]


class Recipe(NamedTuple):
    """How a tensor is packed in a graph."""

    demand: Demand
    signs: bool = False
    limits: Optional[tuple[float, float]] = None
    pooling: Optional[list[Dimension]] = None
    largest: bool = False  # of each row is kept exactly, too: exp of it may be all of a softmax
    numbers: Optional[list[Any]] = None  # of size and stride: each, or where it is among those that are packed


def recipe_of(traced: Traced, x: Tensor, codec: Any, min_elements: int) -> Optional[Recipe]:
    """None for what passes."""
    is_value = x.dtype in CODED
    now = stand_in(x)
    pooling = _pooling(traced.node) if x.dtype in (torch.int64, torch.int8) else None
    bits = places.bits_of(pooling) if pooling else None
    if pooling and bits and now.numel() >= min_elements:
        return Recipe(Demand(bits, [], 32), pooling=pooling)
    if now.numel() < min_elements or now.layout != torch.strided or not (is_value or x.dtype == torch.bool):
        return None
    if traced.is_statistic() or any(s == 0 and n > 1 for s, n in zip(now.stride(), now.shape)):
        return None
    if x.dtype == torch.bool:
        return Recipe(Demand(1, [], 32))
    classes = traced.class_dimension()
    if classes is not None:
        need = policy.TABLE.get("aten::_log_softmax", Need())
        demand = policy.demand_of_logarithms(need, now, classes, codec.bits, codec.group)  # type: ignore[arg-type]
        return None if demand.bits == policy.EXACT else Recipe(demand)
    is_static = all(isinstance(n, int) for n in x.shape)
    limits = traced.limits()
    window = codec.window_of(x.dim()) if is_static else []
    needs = [_need_of(user, position) for user, position in traced.readers()]
    demands = [policy.demand_of(n._replace(bits=max(n.bits, 8)) if limits and n.bits >= 0 else n, now, codec.bits,
                                window, codec.group) for n in needs]
    if not demands:
        return None
    largest = any(_name(user) in ("exp", "exp2") for user, _ in traced.readers())
    demand, signs = demands[0], any(d.bits == policy.SIGNS for d in demands)
    for other in demands[1:]:
        demand = demand.joined(other)
    if demand.bits == policy.EXACT:
        return None
    signs = signs and demand.bits > 0
    # Signs clamp what is restored: a bias, where it is rotated.
    group = demand.group or policy.GROUP if signs else demand.group
    return Recipe(demand._replace(by_rows=False, group=group), signs, limits, largest=largest)


_modes: list[Any] = []


def start() -> None:
    """The compiler hands over all that its graphs save but parameters, until stop."""
    if CAN_TRACE:
        _modes.append(_functorch.saved_tensors_hooks_filtering_mode)
        _functorch.saved_tensors_hooks_filtering_mode = "no_static"


def stop() -> None:
    """Ends what start began."""
    if CAN_TRACE:
        _functorch.saved_tensors_hooks_filtering_mode = _modes.pop()
