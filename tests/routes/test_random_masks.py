"""Sums of products under random conditions of their indices, planned, against the reference interpreter.

    Σ_b [a ≤ b] [2a − b ≥ 1] sin(T[a, b]) U[b, c − 1]

All axes have the same length, so that a mask or an axis in a wrong place gives a wrong number rather than an error.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from backends import TORCH, converted, on

import combdiff as cd
from combdiff.ir.interpreter import evaluate

INDICES, TENSORS, LENGTH = "abcd", "TUVW", 4
FUNCTIONS: Sequence[Callable[[Any], Any]] = (lambda z: z, lambda z: z, cd.sin, lambda z: cd.exp(z / 3), lambda z: z * z)
CONDITIONS: Sequence[Callable[[Any, Any, int], Any]] = (
    lambda i, j, c: i <= j + c,
    lambda i, j, c: i < j + c,
    lambda i, j, c: i != j + c,
    lambda i, j, c: i != j + c,
    lambda i, j, c: i != j + c,
    lambda i, j, c: i == j + c,
    lambda i, j, c: (i + 2 * j + c) % 3 == 1,
    lambda i, j, c: 2 * i - j >= c,
    lambda i, _, c: i >= 1 + (c > 0),
)

Condition = tuple[str, str, int, Callable[[Any, Any, int], Any]]


class Drawn:
    """A program of one or more products, each under its own conditions, summed over the indices that are left."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.indices = INDICES[: self.rng.choice((2, 3, 3, 4))]
        self.out = self.indices[: self.rng.randint(0, min(3, len(self.indices)))]
        self.summed = self.indices[len(self.out) :]
        self.orders: dict[str, int] = {}
        self.terms = [self.term() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        self.outside = [one for one in self.conditions() if {one[0], one[1]} <= {*self.out}]

    def term(self) -> tuple[list[tuple[str, list[tuple[str, int]], Any]], list[Condition]]:
        factors = []
        for _ in range(self.rng.choice((1, 1, 2, 2, 3))):
            if len(self.orders) < len(TENSORS):
                name = TENSORS[len(self.orders)]
                read = self.rng.sample(self.indices, min(self.rng.choice((1, 2, 2, 3, 3)), len(self.indices)))
                self.orders[name] = len(read)
                places = [(index, self.rng.choice((0, 0, 0, 0, -1, 1))) for index in read]
                factors.append((name, places, self.rng.choice(FUNCTIONS)))
        return factors, self.conditions()

    def conditions(self) -> list[Condition]:
        return [
            (*self.rng.sample(self.indices, 2), self.rng.choice((-2, -1, 0, 0, 1, 2)), self.rng.choice(CONDITIONS))
            for _ in range(self.rng.choice((0, 1, 1, 1, 2)))
        ]

    def body(self, tensors: dict[str, Any], at: dict[str, Any]) -> Any:
        total: Any = 0
        size = next(iter(tensors.values())).shape[0]
        for factors, conditions in self.terms:
            product: Any = 1.0
            for name, places, function in factors:
                product = product * function(tensors[name][tuple(at[index] + offset for index, offset in places)])
            for index, offset in (place for _, places, _ in factors for place in places if place[1]):
                within = at[index] >= 1 if offset < 0 else at[index] < size - 1
                product = cd.where(within, product, 0)
            total = total + under(conditions, at, product)
        return total

    def program(self) -> cd.Program:
        def elements(tensors: dict[str, Any], *places: Any) -> Any:
            at = named(self.out, places)
            found = over(self.summed, cd.sum, lambda *more: self.body(tensors, at | named(self.summed, more)))
            return under(self.outside, at, found)

        def f(*given: Any) -> Any:
            tensors = dict(zip(self.orders, given, strict=True))
            return over(self.out, cd.tensor, lambda *places: elements(tensors, *places))

        scope = {"f": f}
        exec(f"def drawn({', '.join(self.orders)}):\n    return f({', '.join(self.orders)})", scope)
        traced: Any = scope["drawn"]
        traced.__annotations__ = {name: cd.Space(*("n",) * order) for name, order in self.orders.items()}
        return cd.program(traced)


def named(indices: str, places: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(indices, places, strict=True))


def over(indices: str, make: Callable[..., Any], elements: Callable[..., Any]) -> Any:
    """A sum or tensor over indices of those names."""
    if not indices:
        return elements()
    listed = ", ".join(indices)
    return make(eval(f"lambda {listed}: elements({listed})", {"elements": elements}), **dict.fromkeys(indices, "n"))


def under(conditions: list[Condition], at: dict[str, Any], value: Any) -> Any:
    for i, j, offset, holds in conditions:
        value = cd.where(holds(at[i], at[j], offset), value, 0)
    return value


def compare(seed: int, library: str = "numpy") -> None:
    case = Drawn(seed)
    program, rng = case.program(), np.random.default_rng(seed)
    arrays = [rng.normal(size=(LENGTH,) * order) for order in case.orders.values()]
    if case.rng.random() < 0.35:
        program = cd.pullback(program, case.rng.choice(list(case.orders)), simplify=case.rng.random() < 0.3)
        arrays.append(rng.normal(size=(LENGTH,) * len(case.out)))
    values = dict(zip(program.term.parameters, arrays, strict=True))
    expected = evaluate(program.term.body, values, {"n": LENGTH})
    given = arrays if library == "numpy" else converted(library, arrays)
    close = 1e-4 if library == "jax" else 1e-8
    found = np.asarray(on(library, program)(*given))
    np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=f"seed {seed}\n{program}")


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 600, 20))
def test_masked_sums_of_products(first: int) -> None:
    for seed in range(first, first + 20):
        compare(seed)


@pytest.mark.thorough
@pytest.mark.parametrize("library", ["jax", TORCH])
def test_on_other_libraries(library: str) -> None:
    for seed in range(1000, 1030):
        compare(seed, library)


def plain(case: Drawn) -> Drawn:
    """The same without reads beside an index: what these read outside of an array is 0, and counts as that."""
    case.terms = [
        (
            [(name, [(index, 0) for index, _ in places], function) for name, places, function in factors],
            [one for one in conditions if one[3] is not CONDITIONS[5]],
        )
        for factors, conditions in case.terms
    ]
    return case


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", range(0, 160, 10))
def test_what_no_condition_reads_has_no_share(first: int) -> None:
    """An infinite entry, or nan, leaves finite what it does not reach in the reference, which reads what it may."""
    for seed in range(first, first + 10):
        case, rng = plain(Drawn(seed)), np.random.default_rng(seed)
        program = case.program()
        arrays = [rng.normal(size=(LENGTH,) * order) for order in case.orders.values()]
        arrays[0][tuple(case.rng.choices(range(LENGTH), k=arrays[0].ndim))] = case.rng.choice((np.inf, -np.inf, np.nan))
        values = dict(zip(program.term.parameters, arrays, strict=True))
        with np.errstate(all="ignore"):
            expected = np.asarray(evaluate(program.term.body, values, {"n": LENGTH}))
            found = np.asarray(program(*arrays))
        finite = np.isfinite(expected)
        np.testing.assert_allclose(
            found[finite], expected[finite], rtol=1e-8, atol=1e-8, err_msg=f"seed {seed}\n{program}"
        )
