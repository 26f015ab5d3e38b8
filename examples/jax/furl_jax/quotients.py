# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""Where a jaxpr divides by what varies from value to value: beside such a factor a small error of another one may
become a large error of the gradient."""

from __future__ import annotations

from typing import Iterable

from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var

from . import graph

# Unbounded near an ordinary argument, as quotients are.
STEEP = frozenset(["rsqrt", "pow", "tan", "erf_inv", "digamma", "lgamma", "polygamma"])
ENDS = graph.PRODUCTS | graph.BOUNDED | {"sin", "cos"}


class Flow:
    """What is known of the variables of a jaxpr and of the bodies of its loops and calls.

    quotients   : made by a division, or from such a value, but for what ENDS has mixed or bounded.
    repeated    : the same for several neighbours, such as the statistics of a norm: dividing by them is harmless.
    cotangents  : made from those that are given; JAX knows these to be linear in them.
    """

    def __init__(self, jaxpr: Jaxpr, quotients: Iterable[Var] = (), repeated: Iterable[Var] = (),
                 cotangents: Iterable[Var] = ()):
        self.quotients, self.repeated, self.cotangents = set(quotients), set(repeated), set(cotangents)
        self._next: dict[Var, Var] = {}
        self._walk(jaxpr)
        self._exposed = {self._root(variable) for variable in self.quotients & self.cotangents}

    def is_exposed(self, variable: Var) -> bool:
        """Whether a cotangent is divided by something that varies, before or after, with no sum between."""
        return self._root(variable) in self._exposed

    def _walk(self, jaxpr: Jaxpr) -> None:
        for equation in jaxpr.eqns:
            bodies = graph.bodies(equation)
            for body, operands in bodies:
                self._enter(equation, body, operands)
            if not bodies:
                self._apply(equation)

    def _enter(self, equation: JaxprEqn, body: Jaxpr, operands: list[graph.Atom]) -> None:
        first, end = graph.carried(equation)
        for i, (inner, outer) in enumerate(zip(body.invars, operands, strict=True)):
            self._copy(outer, inner, may_repeat=not first <= i < end)
        while True:
            self._walk(body)
            before = len(self.quotients), len(self.cotangents)
            for inner, result in zip(body.invars[first:end], body.outvars):
                self._copy(result, inner, may_repeat=False)
            if (len(self.quotients), len(self.cotangents)) == before:
                break
        for outer, result in zip(equation.outvars, body.outvars, strict=True):
            self._copy(result, outer, may_repeat=equation.primitive.name != "cond")

    def _copy(self, of: graph.Atom, to: Var, may_repeat: bool) -> None:
        if isinstance(of, Literal):
            return
        for known in (self.quotients, self.cotangents):
            if of in known:
                known.add(to)
        if may_repeat and of in self.repeated:
            self.repeated.add(to)
        else:
            self.repeated.discard(to)
        if of in self.cotangents:
            self._join(of, [to])

    def _apply(self, equation: JaxprEqn) -> None:
        name, results = equation.primitive.name, equation.outvars
        operands = [atom for atom in equation.invars if isinstance(atom, Var)]
        from_cotangents = [atom for atom in operands if atom in self.cotangents]
        if from_cotangents:
            self.cotangents.update(results)
        varying = [atom for atom in operands if atom not in self.repeated and not graph.is_repeated(atom, equation)]
        if not varying:
            self.repeated.update(results)
            return
        self.repeated.difference_update(results)
        if self._divides(equation, varying) or (name not in ENDS and any(atom in self.quotients for atom in varying)):
            self.quotients.update(result for result in results if graph.is_inexact(result))
        if name not in graph.PRODUCTS | {"reduce_sum"}:
            for atom in from_cotangents:
                if atom in varying:
                    self._join(atom, results)

    def _divides(self, equation: JaxprEqn, varying: list[Var]) -> bool:
        name = equation.primitive.name
        if name == "div":
            return equation.invars[1] in varying
        if name == "pow" and isinstance(equation.invars[1], Literal):
            return bool(equation.invars[1].val < 0)
        return name in STEEP or (name == "integer_pow" and equation.params["y"] < 0)

    def _join(self, cotangent: Var, others: list[Var]) -> None:
        for other in others:
            if self._root(cotangent) is not self._root(other):
                self._next[self._root(cotangent)] = self._root(other)

    def _root(self, variable: Var) -> Var:
        while variable in self._next:
            variable = self._next[variable]
        return variable
