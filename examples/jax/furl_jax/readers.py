# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0
"""What reads the residuals in a backward pass."""

from __future__ import annotations

from collections import defaultdict
from typing import Iterable, Mapping

from jax.extend.core import Jaxpr, JaxprEqn, Var

from . import graph
from .quotients import Flow

Numbers = frozenset[int]
NONE: Numbers = frozenset()


def readers(jaxpr: Jaxpr, names: Mapping[Var, Numbers], flow: Flow) -> dict[int, set[str]]:
    """For each number that variables have been given: the primitives that read these, looking through views and
    into loops, graph.REPEAT where elements are used several times in a row, and graph.QUOTIENT for factors of what
    flow says to be divided by something that varies. What is recomputed from a variable by products counts as the
    variable: an exponential of a product is read by "exp" and not by products alone."""
    search = _Search(names, flow)
    search.walk(jaxpr)
    return search.found


class _Search:
    def __init__(self, names: Mapping[Var, Numbers], flow: Flow):
        self.marked, self.flow = dict(names), flow
        self.found: dict[int, set[str]] = defaultdict(set)

    def walk(self, jaxpr: Jaxpr) -> None:
        for equation in jaxpr.eqns:
            if any(self.of(atom) for atom in equation.invars):
                if equation.primitive.name in (*graph.CALLS, "cond"):
                    self._enter(equation)
                else:
                    self._read(equation)

    def of(self, atom: graph.Atom) -> Numbers:
        return self.marked.get(atom, NONE) if isinstance(atom, Var) else NONE

    def _mark(self, variables: Iterable[Var], numbers: Numbers) -> bool:
        """Whether that is new."""
        new = [variable for variable in variables if not numbers <= self.of(variable)]
        for variable in new:
            self.marked[variable] = self.of(variable) | numbers
        return bool(new)

    def _enter(self, equation: JaxprEqn) -> None:
        first, end = graph.carried(equation)
        if equation.primitive.name == "cond":
            self._add(self.of(equation.invars[0]), "cond")
        for body, operands in graph.bodies(equation):
            for variable, atom in zip(body.invars, operands, strict=True):
                self._mark([variable], self.of(atom))
            self.walk(body)
            while any([self._mark([variable], self.of(result))
                       for variable, result in zip(body.invars[first:end], body.outvars)]):
                self.walk(body)
            for variable, result in zip(equation.outvars, body.outvars, strict=True):
                self._mark([variable], self.of(result))

    def _read(self, equation: JaxprEqn) -> None:
        name, results = equation.primitive.name, equation.outvars
        numbers = NONE.union(*map(self.of, equation.invars))
        for i, atom in enumerate(equation.invars):
            if graph.is_repeated(atom, equation):
                self._add(self.of(atom), graph.REPEAT)
            if name not in graph.PASSED_ON:
                self._add(self.of(atom), "mul" if name == "div" and i == 0 else name)
            if name in ("mul", "div") and (results[0] in self.flow.quotients or self.flow.is_exposed(results[0])):
                self._add(self.of(atom), graph.QUOTIENT)
        is_recomputed = self.flow.cotangents.isdisjoint(results)  # which a print does not have
        if name in graph.PASSED_ON or (is_recomputed and name in graph.PRODUCTS | {"mul"}):
            self._mark(results, numbers)
        elif is_recomputed and name == "div":
            self._mark(results, self.of(equation.invars[0]))

    def _add(self, numbers: Numbers, reader: str) -> None:
        for number in numbers:
            self.found[number].add(reader)
