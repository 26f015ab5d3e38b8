# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What a jaxpr says about its values: what they are made of, and what reads them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Iterable, Mapping, Sequence

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

# One operand, whose elements are moved, repeated or cast.
VIEWS = frozenset(["broadcast_in_dim", "reshape", "transpose", "squeeze", "expand_dims", "rev", "copy", "copy_p",
                   "convert_element_type", "stop_gradient", "reduce_precision", "pvary"])
# What reads the result reads the operand, as far as noise goes.
PASSED_ON = VIEWS | {"neg", "slice", "dynamic_slice", "concatenate", "pad", "reduce_sum", "select_n"}
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "scan": "jaxpr"}
REPEAT = "repeat"

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


def num_bytes(atom: Atom) -> int:
    aval: Any = atom.aval
    return int(aval.size * aval.dtype.itemsize)


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
    first, end = equation.params["num_consts"], equation.params["num_consts"] + equation.params["num_carry"]
    while True:
        found = depends(body, reached)
        results = [isinstance(atom, Var) and atom in found for atom in body.outvars]
        carried = [a or b for a, b in zip(reached[first:end], results)]
        if carried == reached[first:end]:
            return results
        reached = reached[:first] + carried + reached[end:]


def readers(jaxpr: Jaxpr, names: Mapping[Var, frozenset[int]]) -> dict[int, set[str]]:
    """For each number that variables have been given: the primitives that read these, looking through views and
    into loops, and REPEAT where elements are used several times in a row."""
    marked: dict[Var, frozenset[int]] = dict(names)
    found: dict[int, set[str]] = defaultdict(set)
    for equation in jaxpr.eqns:
        of_operands = [marked.get(atom, frozenset()) if isinstance(atom, Var) else frozenset()
                       for atom in equation.invars]
        numbers = frozenset().union(*of_operands)
        name = equation.primitive.name
        if not numbers:
            continue
        for atom, of_operand in zip(equation.invars, of_operands):
            if name in ("broadcast_in_dim", "mul", "div") and num_bytes(atom) < num_bytes(equation.outvars[0]):
                for number in of_operand:
                    found[number].add(REPEAT)
        if name in PASSED_ON:
            for variable in equation.outvars:
                marked[variable] = marked.get(variable, frozenset()) | numbers
        elif name in CALLS:
            inner = equation.params[CALLS[name]]
            inner = getattr(inner, "jaxpr", inner)
            for number, primitives in readers(inner, dict(zip(inner.invars, of_operands, strict=True))).items():
                found[number] |= primitives
        elif name == "div":
            for part, of_operand in zip(("mul", "div"), of_operands):
                for number in of_operand:
                    found[number].add(part)
        else:
            for number in numbers:
                found[number].add(name)
    return found
