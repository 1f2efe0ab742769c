"""Saturation: every built-in law on its smallest example, the schedule, budgets, costs, rule files and determinism."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import Case, programs

import combdiff as cd
from combdiff.checking import type_of
from combdiff.domains import Cyclic, Function, Range, Space, Symmetric
from combdiff.egraph import saturation
from combdiff.egraph.encoding import Codec
from combdiff.egraph.extraction import Extractor, cost, read
from combdiff.egraph.saturation import RULE_FILES, STEP, Budget, equivalent, rule_directory, simplify
from combdiff.errors import BudgetWarning, RuleError
from combdiff.indexing import Affine, Delta, affine, delta, indicator
from combdiff.primitives import function, power, square
from combdiff.printing import text
from combdiff.reference import evaluate
from combdiff.sharing import share, split
from combdiff.substitution import subterms
from combdiff.terms import (
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Lambda,
    Mul,
    Number,
    Primitive,
    Sum,
    Term,
    Var,
    add,
    conj,
    mul,
    negate,
    total,
)
from combdiff.testing import random_array

ROOT = Path(__file__).parent.parent
GIVEN: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}
SIZES = {"n": 3, "m": 2}

i, j, d, e = (Var(name, Range("n")) for name in "ijde")
k, l = Var("k", Cyclic("n")), Var("l", Cyclic("n"))  # noqa: E741
b = Var("b", Symmetric("m"))
x, y, u = Var("x", Space("n")), Var("y", Space("n")), Var("u", Space(Cyclic("n")))
w = Var("w", Space(Symmetric("m"), symmetry=["w[b] = w[-b]"]))
z = Var("z", Space("n", dtype=complex))
G = Var("G", Space("n", "n"))
S = Var("S", Space("n", "n", symmetry=["S[i,j] = S[j,i]"]))
A = Var("A", Space("n", "n", symmetry=["A[i,j] = -A[j,i]"]))
H = Var("H", Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"]))
r, s, t = Var("r", Space()), Var("s", Space()), Var("t", Space())
c, v = Var("c", Space(dtype=complex)), Var("v", Space(dtype=complex))
R = Var("R", Function(Space("n"), result=Space("n")))
HALF, I = Number(Fraction(1, 2)), Number(0, 1)
FREE = {d: 1, e: 2, k: 1, l: 2, b: 1}


def at(tensor: Term, *indices: Term) -> Term:
    return Apply(tensor, indices)


def fn(name: str, *arguments: Term) -> Term:
    return Primitive(name, arguments)


class _Square:
    """R(u) = u² with no derivative."""

    def __call__(self, array: Any) -> Any:
        return array**2


def environment() -> dict[Var, Any]:
    """Positive arrays (so that roots and logarithms are real) for every tensor above, and values for free indices."""
    rng = np.random.default_rng(4)
    arrays: dict[Var, Any] = {R: _Square(), **FREE}
    for var in (x, y, u, w, z, G, S, A, H, r, s, t, c, v):
        assert isinstance(var.type, Space)
        array = random_array(var.type, rng, SIZES)
        arrays[var] = np.abs(array) + 0.5 if var in (x, y, r, s, t) else array
    return arrays


ENVIRONMENT = environment()


def value(term: Term) -> Any:
    return evaluate(term, ENVIRONMENT, SIZES)


def kept(term: Term) -> Term:
    """The simplified term, found equal to the term in value and not dearer."""
    simple = simplify(term)
    assert value(simple) == pytest.approx(value(term), rel=1e-10, abs=1e-12)
    assert cost(simple) <= cost(term)
    return simple


# --- the laws ------------------------------------------------------------------------------------------------------

LAW = re.compile(r':name "([^"]*)"')


def law_names() -> list[str]:
    """Every law of the built-in rule files."""
    return [name for file in RULE_FILES for name in LAW.findall((rule_directory() / file).read_text("utf-8"))]


@pytest.fixture
def fired(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each law has matched since the test began."""
    found: dict[str, int] = {}

    def run(egraph: Any, program: str) -> None:
        for output in egraph.run_program(*egraph.parse_program(program)):
            report = getattr(output, "report", None)
            for name, matches in report.num_matches_per_rule.items() if report is not None else ():
                found[name] = found.get(name, 0) + matches

    monkeypatch.setattr(saturation, "_run", run)
    return found


def _delta_in(inner: Term) -> Term:
    """Σ_i of something that holds δ(i, d)."""
    return total((i,), inner)


DELTA = Delta(i, d, Range("n"))
ARRAY = Apply(R, (Lambda((e,), mul(at(x, e), at(G, e, i))),))  # opaque, depends on i

# A term on which the law matches; the laws of substitution go down what stands beside the δ.
EXAMPLES: Mapping[str, Term] = {
    "members of a product": mul(r, s),
    "members of a sum": add(r, s),
    "associativity": mul(r, s),
    "product of products": Mul((r, Mul((s, t)))),
    "sum of sums": Add((r, Add((s, t)))),
    "multiple of a sum in a sum": Add((r, Mul((Number(2), Add((s, t)))))),
    "once is itself": add(mul(HALF, r), mul(HALF, r)),
    "zero times is zero": add(mul(Number(2), r), mul(Number(-2), r)),
    "multiple of zero": mul(Number(2), add(r, negate(r))),
    "multiple of a multiple": Mul((Number(2), Mul((Number(3), r)))),
    "multiple of a number": mul(Number(3), fn("power", Number(2), Number(-1))),
    "multiple in a product": Mul((r, Mul((Number(2), s)))),
    "number in a product": mul(r, fn("power", Number(2), Number(-1))),
    "Σ of a multiple": total((i,), mul(Number(2), at(x, i))),
    "like terms": Add((r, r)),
    "like terms, one a multiple": add(mul(Number(2), r), r),
    "like terms, both multiples": add(mul(Number(2), r), mul(Number(3), r)),
    "sum of numbers": Add((r, ONE, fn("power", Number(2), Number(-1)))),
    "zero term": add(s, r, negate(r)),
    "empty sum": add(r, negate(r)),
    "product of one": total((i,), mul(delta(i, d), at(x, i))),
    "sum of one": add(r, r),
    "conjugate twice": Conj(Conj(c)),
    "conjugate of a number": Conj(fn("power", Number(2), Number(-1))),
    "conjugate of a float": conj(mul(Number(0.3, 0.1), c)),
    "conjugate of a multiple": conj(mul(I, c)),
    "conjugate of a product": conj(mul(c, v)),
    "conjugate of a sum": conj(add(c, v)),
    "conjugate of Σ": conj(total((i,), at(z, i))),
    "δ is real": conj(Delta(d, e, Range("n"))),
    "an indicator is real": conj(indicator(affine([(d, 1), (e, -1)]))),
    "f(z*) = f(z)*": conj(fn("exp", c)),
    "a real function is real": conj(fn("abs", c)),
    "Re of a real": fn("real", r),
    "Im of a real": fn("imag", r),
    "Re of a conjugate": fn("real", conj(c)),
    "Im of a conjugate": fn("imag", conj(c)),
    "a real factor leaves Re and Im": fn("real", mul(r, c)),
    "a real multiple leaves Re and Im": fn("imag", mul(Number(2), c)),
    "Re and Im of Σ": fn("real", total((i,), at(z, i))),
    "Re and Im of a sum": fn("real", add(mul(delta(d, e), c), v)),
    "a part of a number": fn("real", add(mul(delta(d, e), c), v)),
    "a δ in Re or Im": fn("real", mul(delta(d, e), c)),
    "square": square(r),
    "cube": power(r, Number(3)),
    "power one": fn("power", r, ONE),
    "power zero": fn("power", r, ZERO),
    "reciprocal of a number": fn("power", Number(2), Number(-1)),
    "reciprocal of a multiple": fn("power", mul(Number(2), r), Number(-1)),
    "power times base": mul(r, fn("power", r, Number(-1))),
    "product of powers": mul(fn("power", r, Number(4)), fn("power", r, Number(-2))),
    "exp of log": fn("exp", fn("log", r)),
    "square of a root": mul(fn("sqrt", r), fn("sqrt", r)),
    "square of an absolute value": mul(fn("abs", c), fn("abs", c)),
    "|z| sign z = z": mul(fn("abs", c), fn("sign", c)),
    "sin² + cos² = 1": add(mul(fn("sin", r), fn("sin", r)), mul(fn("cos", r), fn("cos", r))),
    "δ is symmetric": delta(d, e),
    "δ meets Σ": _delta_in(mul(DELTA, at(x, i), at(y, i))),
    "Σ of δ": _delta_in(DELTA),
    "δ of equals": _delta_in(mul(DELTA, Delta(i, e, Range("n")), Delta(i, d, Range("n")))),
    "Σ over nothing": _delta_in(mul(DELTA, at(x, i))),
    "Σ of Σ": Sum((i,), Sum((j,), at(G, i, j))),
    "Σ of a sum": total((i,), add(at(x, i), at(y, i))),
    "Σ of zero": total((i,), add(at(x, i), negate(at(x, i)))),
    "a δ": delta(d, e),
    "a δ in a product": mul(delta(d, e), r),
    "a δ in a sum": add(delta(d, e), r),
    "a δ in a multiple": mul(Number(2), delta(d, e)),
    "a δ in a conjugate": conj(mul(c, delta(d, e))),
    "a δ under Σ": _delta_in(DELTA),
    "expand to free a δ": _delta_in(mul(at(y, i), add(mul(DELTA, r), at(x, i)))),
    "product of two": _delta_in(mul(at(y, i), add(mul(DELTA, r), at(x, i)))),
    "replace": _delta_in(mul(DELTA, at(x, i))),
    "keep": _delta_in(mul(DELTA, at(G, i, e))),
    "replace in an access": _delta_in(mul(DELTA, at(x, i))),
    "replace in an index form": _delta_in(mul(DELTA, at(u, affine([(i, 1)], 1)))),
    "replace in a step": _delta_in(mul(DELTA, at(u, affine([(i, 1)], 1)))),
    "replace in a negated index": _delta_in(mul(DELTA, at(u, affine([(i, -1)])))),
    "replace in an opaque part": _delta_in(mul(DELTA, at(ARRAY, i))),
    "replace in δ": _delta_in(mul(DELTA, Delta(i, e, Range("n")), at(x, i))),
    "replace in an indicator": _delta_in(mul(DELTA, indicator(affine([(i, 1), (e, -1)])), at(x, i))),
    "replace in a number": _delta_in(mul(DELTA, fn("exp", add(ONE, at(x, i))))),
    "replace in a float": _delta_in(mul(DELTA, Number(0.3), at(x, i))),
    "replace in a multiple": _delta_in(mul(DELTA, fn("exp", mul(Number(2), at(x, i))))),
    "replace in a conjugate": _delta_in(mul(DELTA, conj(at(z, i)))),
    "replace in a product": _delta_in(mul(DELTA, at(x, i), at(y, i))),
    "replace in a sum": _delta_in(mul(DELTA, add(at(x, i), at(y, i)))),
    "replace in a function": _delta_in(mul(DELTA, fn("exp", at(x, i)))),
    "replace under Σ": _delta_in(mul(DELTA, total((j,), mul(at(G, i, j), at(x, j))))),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_law_fires_on_its_smallest_example_and_keeps_the_value(name: str, fired: dict[str, int]) -> None:
    kept(EXAMPLES[name])
    assert fired.get(name), f"{name} did not match; {sorted(law for law, count in fired.items() if count)} did"
