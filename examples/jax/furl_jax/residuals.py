# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Functions whose derivative keeps compressed residuals."""

from __future__ import annotations

import functools
from typing import Any, Callable, Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Literal, Var

from . import graph
from .codes import KEY_WORDS, VALUE_DTYPES, Compressed, Packed, check_key, code, restore_after, shaped
from .quotients import Flow
from .readers import readers as find_readers

POINTWISE = frozenset(["mul", "checkpoint", "remat2"])
BOUNDED_BITS = 8


def compress_residuals(
        function: Callable[..., Any], bits: int = 2, *, pointwise_bits: int = 4, weights: int | Sequence[int] = 0,
        activations: int | Sequence[int] = (), min_elements: int = 1024) -> Callable[..., Any]:
    """A function g(key, *arguments) that returns what function(*arguments) returns. Differentiated in reverse, it
    keeps compressed what jax.vjp(function, *arguments) would keep, and its gradients have noise of mean 0.

    key             : of jax.random, a new one for each call: it is what the noise depends on.
    bits            : 1 to 8, for what only products (of matrices, convolutions) read.
    pointwise_bits  : at least so many for what multiplies gradients elementwise, and for what jax.checkpoint
                      computes others from.
    weights         : positions of the arguments that hold weights. What is computed from them alone passes.
    activations     : positions of arguments that nobody else keeps for the backward pass, such as the output of
                      the layer before: they are compressed like what is computed inside. Other arguments pass.
    min_elements    : smaller arrays pass.

    Arguments are pytrees, given by position; what is not an array in them is left alone. Bools are kept in one bit
    each. Integers, denominators, float64, and what other primitives read, directly or through products, pass as they
    are, and so do quotients and negative powers of what varies and factors that meet one: softmax and its loss are
    best outside. The function must not close over values that are differentiated. No derivatives in
    forward mode or of second order.
    ValueError, or TypeError for keys, keywords, derivatives and what is closed over, names what is refused.
    """
    rules = _Rules(bits, pointwise_bits, _positions("weights", weights),
                   _positions("activations", activations), min_elements)

    @functools.wraps(function)
    def compressed(key: Array, *arguments: Any, **keywords: Any) -> Any:
        check_key(key)
        if keywords:
            raise TypeError(f"{', '.join(keywords)} given by keyword: all arguments must be given by position")
        rules.check_positions(len(arguments))
        call, arrays = _of_arrays(function, arguments)
        position = [p for p, argument in enumerate(arguments) for _ in filter(_is_array, jax.tree.leaves(argument))]
        return _with_compressed_vjp(call, rules, position)(key, *arrays)

    return compressed


def _of_arrays(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The function of the arrays in its arguments alone, and these arrays."""
    leaves, tree = jax.tree.flatten(arguments)
    places = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]

    def call(*arrays: Any) -> Any:
        filled = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        return function(*jax.tree.unflatten(tree, filled))

    return call, [leaves[place] for place in places]


def kept_bytes(function: Callable[..., Any], *arguments: Any) -> int:
    """Bytes that the derivative of function(*arguments) in reverse keeps from the forward pass: jax.vjp's residuals
    without arguments and constants. What is repeated, reshaped or cast counts as what it is made of, if that is
    smaller. Only shapes and dtypes of arrays in the arguments matter; what is not an array is left alone."""
    call, arrays = _of_arrays(function, arguments)

    def residuals(*values: Any) -> list[Any]:
        return jax.tree.leaves(jax.vjp(call, *values)[1])

    jaxpr = graph.inlined(residuals, *arrays).jaxpr
    made_by = graph.producers(jaxpr)
    sources = {_name(atom): atom for atom, _ in (graph.source(atom, made_by) for atom in jaxpr.outvars)}
    return sum(graph.num_bytes(atom) for name, atom in sources.items() if name in made_by)


class _Rules:
    """What becomes of an array."""

    def __init__(self, bits: int, pointwise_bits: int, weights: frozenset[int], activations: frozenset[int],
                 min_elements: int):
        for name, value in (("bits", bits), ("pointwise_bits", pointwise_bits)):
            if not isinstance(value, (int, np.integer)) or not 1 <= value <= 8:
                raise ValueError(f"{name} is {value}: must be 1..8")
        if not isinstance(min_elements, int) or min_elements < 0:
            raise ValueError(f"min_elements is {min_elements}: must be an integer from 0 on")
        self.bits, self.pointwise_bits = bits, max(bits, pointwise_bits)
        self.weights, self.activations, self.min_elements = weights, activations, min_elements

    def check_positions(self, num_arguments: int) -> None:
        for name, positions in (("weights", self.weights), ("activations", self.activations)):
            for position in positions:
                if position >= num_arguments:
                    raise ValueError(f"{name} is {position}: must be positions of the {num_arguments} arguments after "
                                     "the key, from 0 on")

    def bits_for(self, atom: Var, maker: str, readers: set[str]) -> int:
        """Of its codes; 0: it passes."""
        aval: Any = atom.aval
        if aval.size < self.min_elements:
            return 0
        if aval.dtype == jnp.bool_:
            return 1
        if aval.dtype not in VALUE_DTYPES or not readers:
            return 0
        if readers <= graph.PRODUCTS | {graph.REPEAT}:
            return self.bits
        # Nor what is repeated: statistics, each of which scales many values. Nor what meets a quotient.
        if not readers <= graph.PRODUCTS | POINTWISE:
            return 0
        return max(self.pointwise_bits, BOUNDED_BITS if maker in graph.BOUNDED else 0)


def _with_compressed_vjp(call: Callable[..., Any], rules: _Rules, position: list[int]) -> Callable[..., Any]:
    """position: of the argument that each array belongs to."""
    pullback: dict[str, Any] = {}

    @jax.custom_vjp
    def plain(key: Array, *arrays: Any) -> Any:
        closed, shapes = jax.make_jaxpr(call, return_shape=True)(*arrays)
        _check_closed_over(closed.consts)
        results = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *arrays)
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    def forward(key: Array, *arrays: Any) -> tuple[Any, list[Any]]:
        def with_residuals(*values: Any) -> tuple[list[Any], list[Any]]:
            out, pull = jax.vjp(call, *values)
            results, pullback["out"] = jax.tree.flatten(out)
            residuals, pullback["tree"] = jax.tree.flatten(pull)
            return results, residuals

        closed = graph.inlined(with_residuals, *arrays)
        _check_closed_over(closed.consts)
        num_results = pullback["out"].num_leaves
        read = graph.evaluate(closed.jaxpr, closed.consts, arrays)
        results = [jnp.asarray(read(atom)) for atom in closed.jaxpr.outvars[:num_results]]
        residuals = closed.jaxpr.outvars[num_results:]
        made_by = graph.producers(closed.jaxpr)
        sources = [graph.source(atom, made_by) for atom in residuals]
        pullback["views"] = [views for _, views in sources]
        bits = _choose_bits(closed.jaxpr, sources, results, residuals, rules, position, pullback)
        # JAX keeps some that nothing reads, such as that of the 0 of softplus(x) = logaddexp(x, 0).
        used = graph.used(pullback["jaxpr"].jaxpr)
        kept = {_name(atom): atom for (atom, _), variable in zip(sources, pullback["jaxpr"].jaxpr.invars)
                if variable in used}
        places = {name: place for place, name in enumerate(kept)}
        pullback["place"] = [places.get(_name(atom)) for atom, _ in sources]
        words = jax.random.bits(key, (len(kept), KEY_WORDS), jnp.uint32)
        return (jax.tree.unflatten(pullback["out"], results),
                [_keep(read(atom), bits.get(name, 0), words[i]) for i, (name, atom) in enumerate(kept.items())])

    def backward(kept: list[Any], cotangent: Any) -> tuple[Any, ...]:
        restored: dict[int, Any] = {}

        def restore(place: int, views: list[Any], after: Array) -> Any:
            if place not in restored:
                restored[place] = _restore(kept[place], after)
            value = restored[place]
            for equation in views:
                value, = graph.bind(equation, [value])
            return value

        residuals = [graph.Deferred(functools.partial(restore, place, views))
                     for place, views in zip(pullback["place"], pullback["views"], strict=True)]
        given = [c for c in jax.tree.leaves(cotangent) if _is_differentiable(c)]
        closed = pullback["jaxpr"]
        read = graph.evaluate(closed.jaxpr, closed.consts, [*residuals, *given])
        gradients = map(read, closed.jaxpr.outvars)
        return None, *(next(gradients) if is_one else None for is_one in pullback["differentiable"])

    plain.defvjp(forward, backward)
    return plain


def _choose_bits(jaxpr: Any, sources: list[Any], results: list[Any], residuals: list[Any], rules: _Rules,
                 position: list[int], pullback: dict[str, Any]) -> dict[Any, int]:
    """Of each variable that is kept; those that are missing pass."""
    reached = graph.depends(jaxpr, [p not in rules.weights for p in position])
    may_go = reached - {variable for variable, p in zip(jaxpr.invars, position) if p not in rules.activations}
    made_by = graph.producers(jaxpr)
    number: dict[Any, int] = {}
    numbers = [number.setdefault(_name(atom), len(number)) for atom, _ in sources]
    readers = _readers(residuals, results, numbers, pullback, Flow(jaxpr))
    for n, residual, (atom, _) in zip(numbers, residuals, sources, strict=True):
        if atom.aval.size < residual.aval.size:
            readers[n].add(graph.REPEAT)
    chosen = {}
    for name, n in number.items():
        if isinstance(name, Var) and name in may_go:
            maker = made_by[name].primitive.name if name in made_by else ""
            chosen[name] = rules.bits_for(name, maker, readers[n])
    return chosen


def _readers(residuals: list[Any], results: list[Any], numbers: list[int],
             pullback: dict[str, Any], forward: Flow) -> dict[int, set[str]]:
    """What reads each residual in the backward pass, whose jaxpr is made for that."""
    cotangents = [shaped(r.shape, r.dtype, jax.typeof(r)) for r in results if _is_differentiable(r)]

    def pull(values: list[Any], given: list[Any]) -> Any:
        rest = iter(given)
        full = [next(rest) if _is_differentiable(r) else np.zeros(r.shape, jax.dtypes.float0) for r in results]
        gradients = jax.tree.unflatten(pullback["tree"], values)(jax.tree.unflatten(pullback["out"], full))
        pullback["differentiable"] = [_is_differentiable(gradient) for gradient in gradients]
        return [gradient for gradient in gradients if _is_differentiable(gradient)]

    pullback["jaxpr"] = graph.inlined(
        pull, [shaped(r.aval.shape, r.aval.dtype, r.aval) for r in residuals], cotangents)
    jaxpr = pullback["jaxpr"].jaxpr
    given = [(v, r) for v, r in zip(jaxpr.invars, residuals) if isinstance(r, Var)]
    flow = Flow(jaxpr, [v for v, r in given if r in forward.quotients], [v for v, r in given if r in forward.repeated],
                jaxpr.invars[len(residuals):])
    return find_readers(jaxpr, {v: frozenset([n]) for v, n in zip(jaxpr.invars, numbers)}, flow)


def _check_closed_over(constants: Iterable[Any]) -> None:
    """Tracers of a derivative, below those of vmap: JAX would say that one has escaped."""
    for constant in constants:
        while type(constant).__module__.endswith("interpreters.batching"):
            constant = constant.val
        if type(constant).__module__.endswith("interpreters.ad"):
            raise TypeError("function closes over a value that is differentiated: it must be an argument")


def _keep(value: Any, bits: int, words: Array) -> Any:
    return value if bits == 0 else code(value, words, bits)


def _restore(value: Any, after: Array) -> Any:
    return restore_after(value, after) if isinstance(value, (Compressed, Packed)) else value


def _name(atom: Any) -> Any:
    return id(atom) if isinstance(atom, Literal) else atom


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


def _is_differentiable(value: Any) -> bool:
    return bool(jnp.issubdtype(value.dtype, jnp.inexact))


def _positions(name: str, positions: int | Sequence[int]) -> frozenset[int]:
    listed = positions if isinstance(positions, Iterable) else [positions]
    if not all(isinstance(position, int) and position >= 0 for position in listed):
        raise ValueError(f"{name} is {positions}: must be positions of arguments, from 0 on")
    return frozenset(listed)
