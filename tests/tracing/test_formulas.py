"""Arrays that a program makes of numbers are printed, and derived, as formulas of their indices."""

from __future__ import annotations

import linecache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

import combdiff as cd

FORMULAS = {
    "np.arange(4)": "i<4 ↦ x i",
    "np.arange(1.0, 9.0, 2.0)": "i<4 ↦ x (2i + 1)",
    "np.arange(5)[::-1]": "i<5 ↦ x (4 - i)",
    "np.linspace(0, 1, 5)": "i<5 ↦ 1/4 x i",
    "np.linspace(-1, 1, 4)": "i<4 ↦ x (2/3 i - 1)",
    "np.array([3, 5, 7])": "i<3 ↦ x (2i + 3)",
    "np.abs(np.arange(5) - 2)": "i<5 ↦ x |i - 2|",
    "np.eye(4)[1]": "i<4 ↦ δ(i, 1) x",
    "np.array([0, 0, 2.5])": "i<3 ↦ 5/2 δ(i, 2) x",
    "np.array([1, 1, 1, -1])": "i<4 ↦ x (1 - 2 δ(i, 3))",
    "np.array([1, 1, 1e-9, 1])": "i<4 ↦ x ([i ≠ 2] + 1e-09 δ(i, 2))",
    "np.array([1, 1, np.inf, 1])": "i<4 ↦ x ([i ≠ 2] + inf δ(i, 2))",
    "np.eye(6) - np.ones((6, 6)) / 6": "(i<6, j) ↦ x (δ(i, j) - 1/6)",
    "np.eye(4) + 1e-3": "(i<4, j) ↦ x (0.001 + δ(i, j))",
    "np.array([1, 1, 0, 0, 0])": "i<5 ↦ [i ≤ 1] x",
    "np.array([0, 0, 2, 2.0])": "i<4 ↦ 2 [i ≥ 2] x",
    "np.array([3, 3, 5, 5])": "i<4 ↦ x (3 [i ≤ 1] + 5 [i ≥ 2])",
    "(-1) ** np.arange(6)": "i<6 ↦ x ([i mod 2 = 0] - [i mod 2 = 1])",
    "np.arange(6) % 2 == 0": "i<6 ↦ [i mod 2 = 0] x",
    "1 - np.eye(4)": "(i<4, j<4) ↦ [i ≠ j] x",
    "np.ones((3, 3)) - np.eye(3)": "(i<3, j<3) ↦ [i ≠ j] x",
    "np.eye(3, 5, k=1)": "(i<3, j<5) ↦ δ(i + 1, j) x",
    "np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)": "(i<4, j<4) ↦ x (δ(i - 1, j) + δ(i + 1, j))",
    "np.roll(np.eye(4), 1, axis=0)": "(i<4, j<4) ↦ x (δ(i - 1, j) + δ(i + 3, j))",
    "np.fliplr(np.eye(4))": "(i<4, j<4) ↦ δ(3 - i, j) x",
    "1j * np.eye(3)": "(j<3, k) ↦ i δ(j, k) x",
    "np.tri(4)": "(i<4, j<4) ↦ [i ≥ j] x",
    "np.tri(3, 5, 1)": "(i<3, j<5) ↦ [i + 1 ≥ j] x",
    "np.triu(np.ones((4, 4), dtype=bool), 1)": "(i<4, j<4) ↦ [i < j] x",
    "np.triu(np.full((4, 4), -np.inf), 1)": "(i<4, j<4) ↦ -inf [i < j] x",
    "np.abs(np.arange(4)[:, None] - np.arange(4))": "(i<4, j<4) ↦ x |j - i|",
    "np.arange(3)[:, None] - np.arange(4)": "(i<3, j<4) ↦ x (i - j)",
    "np.arange(3)[:, None] + np.arange(4)": "(i<3, j<4) ↦ x (i + j)",
    "np.arange(4)[None, :, None] * np.ones((2, 4, 3))": "(i<2, j<4, k<3) ↦ x j",
    "np.arange(6) ** 2": "i<6 ↦ x i²",
    "np.linspace(0, 1, 11) ** 2": "i<11 ↦ 0.01 x i²",
    "(np.arange(7) - 2) ** 2": "i<7 ↦ x (i - 2)²",
    "(2 * np.arange(7) - 3) ** 2": "i<7 ↦ x (9 - 12 i + 4 i²)",
    "(np.arange(3)[:, None] - np.arange(4)) ** 2 / 2": "(i<3, j<4) ↦ 1/2 x (j - i)²",
    "np.diag([1, 2, 3])": "(i<3, j) ↦ δ(i, j) x (i + 1)",
    "np.full((2, 3), 0.5)": "(i<2, j<3) ↦ 1/2 x",
}
NAMED = [
    "np.array([0.1, 0.3])",
    "np.array([0.25, 0.5, 0.75])",
    "np.array([[0, 1], [1, 0]])",
    "np.array([1.0, 2.0, 4.0, 8.0])",
    "np.array([0.0, -0.0, 0.0])",
    "np.array([np.nan, 1.0, 1.0])",
    "np.full((2, 2), -np.inf)",
    "np.vander(np.arange(3))",
    "np.array([10**18, 10**18 + 1, 10**18 + 3])",
    "np.eye(4)[:, [0, 2, 3, 1]]",
]


def times(made: str) -> cd.Program:
    """x times an array that the program makes."""
    body = f"def f(x):\n    return x * ({made})\n"
    linecache.cache[made] = (len(body), None, body.splitlines(True), made)
    found: dict[str, Any] = {"np": np}
    exec(compile(body, made, "exec"), found)
    found["f"].__annotations__ = {"x": cd.Space()}
    return cd.program(found["f"])


@pytest.mark.parametrize("made", FORMULAS)
def test_an_array_has_a_formula(made: str) -> None:
    program = times(made)
    assert str(program) == f"x ↦ {FORMULAS[made]}"
    np.testing.assert_allclose(program(2.0), 2.0 * eval(made), rtol=1e-15)
    np.testing.assert_allclose(cd.read(str(program), {"x": cd.Space()})(2.0), 2.0 * eval(made), rtol=1e-15)


@pytest.mark.parametrize("made", NAMED)
def test_another_keeps_a_name(made: str) -> None:
    program = times(made)
    assert list(program.fixed) == ["c"]
    np.testing.assert_array_equal(program(2.0), 2.0 * eval(made))


@given(
    st.one_of(
        arrays(int, st.tuples(st.integers(1, 6)), elements=st.integers(-1, 1)),
        arrays(int, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.integers(0, 1)),
        arrays(float, st.tuples(st.integers(2, 5)), elements=st.sampled_from([0.0, 0.1, 0.2, -np.inf])),
        arrays(bool, st.tuples(st.integers(1, 3), st.integers(1, 3))),
    )
)
def test_whatever_is_found_has_the_elements(array: np.ndarray) -> None:
    @cd.program
    def shifted(x: cd.Space()):
        return x + (array + 0)

    np.testing.assert_allclose(shifted(1.0), 1.0 + array, rtol=1e-15)


def test_what_had_a_name_keeps_it() -> None:
    """Its elements may be changed, and its reader knows the name."""
    weights, table = np.arange(4), np.arange(8).reshape(4, 2)

    @cd.program
    def named(x: cd.Space(4)):
        return (x * weights * table[:, 0]).sum()

    assert str(named) == "(x, weights, c) ↦ Σ_i x[i] weights[i] c[i]"


def test_indices_at_equal_distances_are_an_expression() -> None:
    @cd.program
    def read(x: cd.Space(6)):
        return (x[np.arange(0, 6, 2)] * x[[-1, -2, -3]] * x[[3, 3, 3]]).sum()

    assert str(cd.simplify(read)) == "x ↦ x[3] Σ_{i<3} x[5 - i] x[2i]"
    x = np.array([1.0, 2.0, -3.0, 0.5, 4.0, 2.5])
    np.testing.assert_allclose(read(x), (x[::2] * x[:2:-1] * x[3]).sum())
    cd.testing.check_grad(read, x=x)


def test_a_stencil_is_written_out() -> None:
    kernel = np.array([1, -2, 1])

    @cd.program
    def bent(x: cd.Space(8)):
        return (np.convolve(x, [1, -2, 1], "valid") ** 2).sum()

    @cd.program
    def turned(x: cd.Space(8)):
        return (np.correlate(x, np.array([1j, 0, 2]), "same") ** 2).sum().real

    @cd.program
    def by_name(x: cd.Space(8)):
        return (np.convolve(x, kernel, "valid") ** 2).sum()

    assert str(cd.simplify(bent)) == "x ↦ Σ_{i<6} (x[i] + x[i + 2] - 2 x[i + 1])²"
    assert list(by_name.fixed) == ["kernel"]
    x = np.random.default_rng(0).normal(size=8)
    np.testing.assert_allclose([bent(x), by_name(x)], (np.convolve(x, kernel, "valid") ** 2).sum())
    np.testing.assert_allclose(turned(x), (np.correlate(x, np.array([1j, 0, 2]), "same") ** 2).sum().real)
    for program in (bent, turned):
        cd.testing.check_grad(program, x=x)


def test_interpolation_between_whole_numbers_divides_by_none() -> None:
    @cd.program
    def between(x: cd.Space(5), t: cd.Space()):
        return np.interp(t, np.arange(5), x)

    assert str(cd.grad(between)) == (
        "(x, t) ↦\n  t2[i<4] = min(max(t - i, 0), 1)\n  d<5 ↦ [d ≥ 1] t2[d - 1] - [d ≤ 3] t2[d] + δ(d, 0)"
    )
    cd.testing.check_grad(between, x=np.array([1.0, 2.0, -3.0, 0.5, 4.0]), t=np.array(2.3))


def test_pairs_of_different_points_are_a_range_of_sums() -> None:
    @cd.program
    def energy(x: cd.Space(5)):
        return ((1 - np.eye(5)) / (1 + (x[:, None] - x) ** 2)).sum()

    assert str(cd.grad(energy)) == "x ↦ d ↦ 4 Σ_{i≠d} (x[i] - x[d]) / (1 + (x[d] - x[i])²)²"
    cd.testing.check_grad(energy, x=np.array([1.0, 2.0, -3.0, 0.5, 4.0]))


def test_what_is_left_out_does_not_cost_digits() -> None:
    """Of u − δ(i, j) u beside 1e-12 few would be right, and 1 - cd.eye("n") is no other mask."""

    @cd.program
    def fixed(d: cd.Space(4, 4)):
        return np.log((1 - np.eye(4)) / d + 1e-12).sum()

    @cd.program
    def named(d: cd.Space("n", "n")):
        return np.log((1 - cd.eye("n")) / d + 1e-12).sum()

    d = 0.01 + np.random.default_rng(0).random((4, 4))
    expected = np.log((1 - np.eye(4)) / d + 1e-12).sum()
    for program in (fixed, named):
        np.testing.assert_allclose([program(d), cd.simplify(program)(d)], expected, rtol=1e-14)
        np.testing.assert_allclose(cd.grad(program)(d), (np.eye(4) - 1) / (d + 1e-12 * d**2), rtol=1e-12)


@pytest.mark.parametrize(
    "mask",
    [
        "np.where(np.tri(4) > 0, s, -np.inf)",
        "s + np.triu(np.full((4, 4), -np.inf), 1)",
        "np.where(np.tri(4, dtype=bool), s, -np.inf)",
    ],
)
def test_a_causal_mask_is_a_bound_of_sums(mask: str) -> None:
    lines = [
        "def f(q, v):",
        "s = q @ q.T",
        f"e = np.exp({mask})",
        "return (e / e.sum(axis=1, keepdims=True) @ v).sum()",
    ]
    body = "\n    ".join(lines)
    found: dict[str, Any] = {"np": np}
    exec(body, found)
    found["f"].__annotations__ = {"q": cd.Space(4, 3), "v": cd.Space(4, 3)}
    program = cd.program(found["f"])
    gradient = cd.grad(program, "v")
    assert "inf" not in str(gradient)
    assert not gradient.fixed
    R = np.random.default_rng(0)
    cd.testing.check_grad(program, "q", q=R.normal(size=(4, 3)), v=R.normal(size=(4, 3)))
