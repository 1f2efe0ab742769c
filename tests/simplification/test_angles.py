"""Sines and cosines of two angles that are one of their sum or difference: arms, pendulums, phases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd
from combdiff.testing import random_array


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("cos(x) cos(y) + sin(x) sin(y)", "cos(x - y)"),
        ("cos(x) cos(y) - sin(x) sin(y)", "cos(x + y)"),
        ("sin(x) cos(y) + cos(x) sin(y)", "sin(x + y)"),
        ("a sin(x) cos(y) - a cos(x) sin(y) + a", "a (1 + sin(x - y))"),
        ("cos(x)^2 - sin(x)^2", "cos(2 x)"),
        ("a cos(x + y) cos(x) + a sin(x + y) sin(x)", "a cos(y)"),
        ("sin(x) cos(x)^2 + sin(x)^3", "sin(x)"),
        ("3 a sin(y)^2 + 3 a cos(y)^2", "3 a"),
        ("3 a - 3 a sin(x)^2 + y", "3 a cos(x)² + y"),
        ("cos(x)^2 - 1", "-sin(x)²"),
        ("1 - a sin(x)^2", "1 - a sin(x)²"),
        ("a cos(x) cos(y) + sin(x) sin(y)", "a cos(x) cos(y) + sin(x) sin(y)"),
        ("cos(x) cos(a) + sin(x) sin(y)", "cos(a) cos(x) + sin(x) sin(y)"),
    ],
)
def test_angles_are_added(written: str, expected: str) -> None:
    assert str(cd.simplify(cd.read(f"(a, x, y) ↦ {written}"))) == f"(a, x, y) ↦ {expected}"


def test_the_reach_of_an_arm_turns_with_its_elbow_alone() -> None:
    reach = cd.read("(a, b, p, q) ↦ (a cos(p) + b cos(p + q))² + (a sin(p) + b sin(p + q))²")
    assert str(cd.grad(reach, wrt="a")) == "(a, b, p, q) ↦ 2 (b cos(q) + a)"
    assert str(cd.grad(reach, wrt="q")) == "(a, b, p, q) ↦ -2 a b sin(q)"
    assert str(cd.grad(reach, wrt="p")) == "(a, b, p, q) ↦ 0"


def test_two_angles_of_a_sum_stay_apart_where_they_have_indices_of_their_own() -> None:
    phases = cd.read("x (n)\nx ↦ Σ_{i,j} (cos(x[i]) cos(x[j]) + sin(x[i]) sin(x[j]))")
    assert str(cd.simplify(phases)) == "x ↦ (Σ_i cos(x[i]))² + (Σ_i sin(x[i]))²"  # n cosines for n²


ANGLES = st.sampled_from(["x", "y", "x + y", "2 x", "x - y", "z"])
FUNCTIONS = st.sampled_from(["sin", "cos"])
PRODUCTS = st.tuples(st.sampled_from(["2", "-2", "a"]), FUNCTIONS, ANGLES, FUNCTIONS, ANGLES)
TERMS = st.one_of(st.sampled_from(["2", "a", "(-a)"]), PRODUCTS.map(lambda p: "({}) {}({}) {}({})".format(*p)))


@given(st.lists(TERMS, min_size=2, max_size=4), st.booleans())
def test_sums_of_products_keep_their_values(terms: list[str], imaginary: bool) -> None:
    text = " + ".join(terms)
    spaces = dict.fromkeys("axyz", cd.Space(dtype=complex if imaginary else float))
    written = cd.read(f"(a, x, y, z) ↦ {text}", spaces)
    at = np.array([0.7, -1.3, 0.4, 2.1]) + (1j * np.array([0.2, 0.5, -0.8, 0.3]) if imaginary else 0)
    assert np.isclose(cd.simplify(written)(*at), written(*at), rtol=1e-12, atol=1e-12)


@pytest.mark.thorough
def test_sines_of_sines_are_written_out_together() -> None:
    supersymmetric = cd.Space("n", "n", "n", dtype=complex, symmetry=["A[i,j,k] = A[j,i,k]", "A[i,j,k] = A[k,j,i]"])

    @cd.program
    def twice(A: supersymmetric):
        x = cd.tensor(lambda i: 2 * A[i, i, i])
        y = cd.tensor(lambda i: cd.sin(x[i] / (2 + abs(x[i]) ** 2)))
        return cd.tensor(lambda i: cd.sin(y[i] / (2 + abs(y[i]) ** 2)))

    assert cd.testing.check_routes(twice, A=random_array(supersymmetric, np.random.default_rng(1), {"n": 2})) < 1e-5
