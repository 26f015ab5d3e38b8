# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What a jaxpr says about its values: what they are made of, and what reads them."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

# One operand, whose elements are moved, repeated or cast.
VIEWS = frozenset(["broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "rev", "copy", "copy_p",
                   "convert_element_type", "stop_gradient", "reduce_precision", "pvary"])
# What reads the result reads the operand, as far as noise goes.
PASSED_ON = VIEWS | {"neg", "slice", "dynamic_slice", "concatenate", "pad", "reduce_sum", "select_n"}
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "scan": "jaxpr"}
LOOKED_INTO = CALLS | {"checkpoint": "jaxpr", "remat2": "jaxpr"}
PRODUCTS = frozenset(["dot_general", "ragged_dot_general", "conv_general_dilated"])
# Between 0 and 1, or -1 and 1, with differences that count: 8 bits where they are factors of a derivative.
BOUNDED = frozenset(["exp", "exp2", "logistic", "tanh", "erf"])
# Elementwise, where an operand of fewer elements is used for several in a row.
REPEATING = frozenset(["broadcast_in_dim", "mul", "div", "add", "sub", "add_any", "max", "min", "pow", "select_n"])
REPEAT, QUOTIENT = "repeat", "quotient"

Atom = Var | Literal


def inlined(function: Callable[..., Any], *arguments: Any) -> ClosedJaxpr:
    """The jaxpr of a function, with the leaves of its arguments as inputs, without calls of jitted functions, which
    hide what values are made of."""
    closed = jax.make_jaxpr(function)(*arguments)
    return jax.make_jaxpr(lambda *values: _outputs(closed.jaxpr, closed.consts, values))(*jax.tree.leaves(arguments))


def bind(equation: JaxprEqn, values: Sequence[Any]) -> list[Any]:
    """Its results for these operands."""
    given = equation.primitive.get_bind_params(equation.params)
    functions, parameters = given if isinstance(given, tuple) else ((), given)  # a pair until jax 0.9
    with equation.ctx.manager:
        results = equation.primitive.bind(*functions, *values, **parameters)
    return list(results) if equation.primitive.multiple_results else [results]


class Deferred:
    """An argument that is made when an equation reads it, from what the equation before has computed."""

    def __init__(self, make: Callable[[Any], Any]):
        self.make = make


def evaluate(jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Any]) -> Callable[[Atom], Any]:
    """All values of a jaxpr: a function from its variables to them. Arguments may be deferred, but not the last."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))
    latest = arguments[-1] if arguments else None

    def read(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            return atom.val
        if isinstance(values[atom], Deferred):
            values[atom] = values[atom].make(latest)
        return values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        if equation.primitive.name in ("jit", "pjit"):
            inner = equation.params["jaxpr"]
            results = _outputs(inner.jaxpr, inner.consts, operands)
        else:
            results = bind(equation, operands)
        values.update(zip(equation.outvars, results, strict=True))
        latest = results[0] if results else latest
    return read


def _outputs(jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    read = evaluate(jaxpr, constants, arguments)
    return [read(atom) for atom in jaxpr.outvars]


def producers(jaxpr: Jaxpr) -> dict[Var, JaxprEqn]:
    return {variable: equation for equation in jaxpr.eqns for variable in equation.outvars}


def used(jaxpr: Jaxpr) -> set[Var]:
    """The variables that equations or the results of a jaxpr read."""
    atoms = [*jaxpr.outvars, *(atom for equation in jaxpr.eqns for atom in equation.invars)]
    return {atom for atom in atoms if isinstance(atom, Var)}


def num_bytes(atom: Atom) -> int:
    aval: Any = atom.aval
    return int(aval.size * aval.dtype.itemsize)


def is_repeated(atom: Atom, equation: JaxprEqn) -> bool:
    """Whether the equation uses an element of this operand for several of its results."""
    if equation.primitive.name not in REPEATING:
        return False
    operand: Any = atom.aval
    result: Any = equation.outvars[0].aval
    return bool(operand.size < result.size)


def is_inexact(atom: Atom) -> bool:
    aval: Any = atom.aval
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))


def source(atom: Atom, made_by: Mapping[Var, JaxprEqn]) -> tuple[Atom, list[JaxprEqn]]:
    """What a value is a view of, if that is not larger, and the equations that make the value of it."""
    views: list[JaxprEqn] = []
    best, num_best = atom, 0
    while isinstance(atom, Var) and atom in made_by and made_by[atom].primitive.name in VIEWS:
        views.append(made_by[atom])
        if len(views[-1].invars) != 1:
            break
        atom = views[-1].invars[0]
        if num_bytes(atom) <= num_bytes(best):
            best, num_best = atom, len(views)
    return best, views[:num_best][::-1]


def depends(jaxpr: Jaxpr, arguments: Iterable[bool]) -> set[Var]:
    """The variables of a jaxpr that are made from the arguments that are named, with others or without."""
    found = {variable for variable, is_one in zip(jaxpr.invars, arguments, strict=True) if is_one}
    for equation in jaxpr.eqns:
        reached = [isinstance(atom, Var) and atom in found for atom in equation.invars]
        if equation.primitive.name == "scan":
            results = _scan_depends(equation, reached)
        else:
            results = [any(reached)] * len(equation.outvars)
        found.update(variable for variable, is_one in zip(equation.outvars, results, strict=True) if is_one)
    return found


def _scan_depends(equation: JaxprEqn, reached: list[bool]) -> list[bool]:
    body = equation.params["jaxpr"].jaxpr
    first, end = carried(equation)
    while True:
        found = depends(body, reached)
        results = [isinstance(atom, Var) and atom in found for atom in body.outvars]
        carry = [a or b for a, b in zip(reached[first:end], results)]
        if carry == reached[first:end]:
            return results
        reached = reached[:first] + carry + reached[end:]


def bodies(equation: JaxprEqn) -> list[tuple[Jaxpr, list[Atom]]]:
    """The jaxprs that an equation calls, with the operands that they get."""
    name, parameters = equation.primitive.name, equation.params
    if name == "cond":
        return [(branch.jaxpr, equation.invars[1:]) for branch in parameters["branches"]]
    if name not in LOOKED_INTO:
        return []
    inner = parameters[LOOKED_INTO[name]]
    return [(getattr(inner, "jaxpr", inner), equation.invars)]


def carried(equation: JaxprEqn) -> tuple[int, int]:
    """The first operand that a loop replaces by its result, and the end of these."""
    if equation.primitive.name != "scan":
        return 0, 0
    if "ft_in" in equation.params:  # jax 0.12
        first, num_carried, _ = (len(list(part)) for part in equation.params["ft_in"].unpack())
    else:
        first, num_carried = equation.params["num_consts"], equation.params["num_carry"]
    return first, first + num_carried
