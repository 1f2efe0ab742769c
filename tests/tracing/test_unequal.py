"""Sums over indices that differ: `i != j` is one condition, and what it leaves out is never looked at."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, double_precision
from hypothesis import given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.ir.domains import Cyclic, Range, Whole
from combdiff.ir.indices import Unequal, affine, delta, unequal
from combdiff.ir.interpreter import evaluate
from combdiff.ir.substitution import substitute, subterms
from combdiff.ir.terms import ONE, ZERO, Var

Points, Charges, Rows, Pairs = cd.Space("n", 3), cd.Space("n"), cd.Space("n", "k"), cd.Space("n", "n")
Plane, Ring = cd.Space("n", dtype=complex), cd.Space(cd.Cyclic("n"))


@cd.program
def lennard_jones(x: Points):
    d2 = cd.tensor(lambda i, j: cd.sum(lambda c: (x[i, c] - x[j, c]) ** 2))
    return 0.5 * cd.sum(lambda i, j: cd.where(i != j, 4 * (d2[i, j] ** -6 - d2[i, j] ** -3), 0))


@cd.program
def coulomb_of_points(x: Points, q: Charges):
    def distance(i: Any, j: Any) -> Any:
        return cd.sqrt(cd.sum(lambda c: (x[i, c] - x[j, c]) ** 2))

    return cd.sum(lambda i, j: cd.where(i != j, q[i] * q[j] / distance(i, j), 0))


@cd.program
def contrastive(z: Pairs):
    """Each row against the others: no element is compared with itself."""
    return cd.sum(lambda i: cd.log(cd.sum(lambda j: cd.where(i != j, cd.exp(z[i, j]), 0))) - z[i, 0])


@cd.program
def neighbours(P: Pairs, y: Rows):
    """The objective of t-SNE."""
    w = cd.tensor(lambda i, j: cd.where(i != j, 1 / (1 + cd.sum(lambda c: (y[i, c] - y[j, c]) ** 2)), 0))
    return cd.sum(lambda i, j: cd.where(i != j, P[i, j] * cd.log(P[i, j] * w.sum() / w[i, j]), 0))


# --- as it is printed ----------------------------------------------------------------------------------------------


def test_the_forces_of_lennard_jones_read_as_in_a_textbook() -> None:
    assert str(lennard_jones).splitlines()[-1] == "  2 Σ_{i,j≠i} (1 / d2[i,j]⁶ - 1 / d2[i,j]³)"
    forces = cd.grad(lennard_jones)
    assert str(forces).splitlines()[-1] == ("  (d, e) ↦ 24 Σ_{i≠d} (1 / d2[d,i]⁴ - 2 / d2[d,i]⁷) (x[d,e] - x[i,e])")
    assert r"24 \sum_{i \neq d} \left(" in forces.latex()


def test_the_field_of_charges() -> None:
    assert "Σ_{i≠d} q[i] / sqrt(Σ_c (x[d,c] - x[i,c])²)" in str(cd.grad(coulomb_of_points, wrt="q"))


def test_a_condition_that_is_not_summed_over_stays_in_brackets() -> None:
    gradient = cd.grad(contrastive)
    assert "[d ≠ e] exp(z[d,e]) / Σ_{j≠d} exp(z[d,j])" in str(gradient)
    assert r"[d \neq e]" in gradient.latex()


def test_one_condition_for_each_pair_of_three_indices() -> None:
    @cd.program
    def f(x: Charges):
        return cd.sum(lambda i, j, k: cd.where((i != j) & (j != k) & (i != k), x[i] * x[j] ** 2 * x[k] ** 3, 0))

    assert str(f) == "x ↦ Σ_{i,j≠i,k≠j,k≠i} x[i] x[j]² x[k]³"


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", [lennard_jones, coulomb_of_points, contrastive, neighbours], ids=lambda f: f.name)
def test_no_half_is_left(f: Any) -> None:
    wrt = "y" if f is neighbours else f.parameters[0].name
    for shown in (str(f), str(cd.grad(f, wrt)), cd.grad(f, wrt).combinators()):
        assert "<" not in shown
        assert ">" not in shown


# --- what is computed ----------------------------------------------------------------------------------------------


def test_the_term_is_computed_once_and_the_others_are_chosen_where_they_are_summed() -> None:
    """What stands at i = j may be infinite, so that it is left out, not multiplied by a matrix of zeros and ones."""
    source = cd.grad(lennard_jones).source()
    assert source.count("** (-7)") == source.count("np.where") == source.count("def ") == 1
    assert not any(word in source for word in ("eye", "astype"))


def test_a_sum_of_the_others_is_a_running_sum_from_each_end() -> None:
    @cd.program
    def others(x: Charges):
        return cd.tensor(lambda i: cd.sum(lambda j: cd.where(j != i, x[j], 0)), i="n")

    source = others.source()
    assert source.count("_running(np, x") == 2
    given = np.array([1e300, 1.0, 2.0, np.inf])
    assert others(given).tolist() == [np.inf, np.inf, np.inf, 1e300]


def test_what_it_leaves_out_may_be_read_outside() -> None:
    @cd.program
    def steps(x: Charges):
        return cd.sum(lambda i: cd.where(i != 0, (x[i] - x[i - 1]) ** 2, 0))

    assert steps(np.array([1.0, 3.0, 2.0])) == 5
    assert str(steps) == "x ↦ Σ_{i≠0} (x[i] - x[i - 1])²"
    assert "[d ≥ 1]" in str(cd.grad(steps))

    @cd.program
    def wrong(x: Charges):
        return cd.sum(lambda i: cd.where(i != 1, (x[i] - x[i - 1]) ** 2, 0))

    with pytest.raises(cd.IndexingError):
        wrong(np.array([1.0, 3.0, 2.0]))


def test_a_delta_within_it_vanishes() -> None:
    @cd.program
    def f(A: Pairs):
        return cd.sum(lambda i, j: cd.where(i != j, cd.delta(i, j) * cd.log(A[i, j]), A[i, j] ** 2))

    assert str(cd.grad(f)) == "A ↦ (d, e) ↦ 2 δ(d, e) A[e,e]"


def test_with_a_bound_it_is_a_bound() -> None:
    @cd.program
    def f(x: Charges):
        return cd.sum(lambda i, j: cd.where((i != j) & (i <= j), x[i] * x[j] ** 2, 0))

    @cd.program
    def strict(x: Charges):
        return cd.sum(lambda i, j: cd.where(i < j, x[i] * x[j] ** 2, 0))

    assert cd.grad(f) == cd.grad(strict)


# --- values, gradients and Hessians, by every route ----------------------------------------------------------------

INDICES = {
    "i != j": lambda i, j: i != j,
    "i != j + 1": lambda i, j: i != j + 1,
    "i != j - 2": lambda i, j: i != j - 2,
    "2*i != j": lambda i, j: 2 * i != j,
    "3*i != 2*j + 1": lambda i, j: 3 * i != 2 * j + 1,
    "i + j != 3": lambda i, j: i + j != 3,
    "i != 2": lambda i, j: i != 2,
    "i != j and j != 0": lambda i, j: (i != j) & (j != 0),
    "i != j and i >= j": lambda i, j: (i != j) & (i >= j),
    "i != j or i == 2": lambda i, j: (i != j) | (i == 2),
    "not i == j + 1": lambda i, j: ~(i == j + 1),
    "i != j and even": lambda i, j: (i != j) & (i % 2 == 0),
}
BODIES = {
    "inverse square": lambda x, y, i, j: y[i] / (x[i] - x[j]) ** 2,
    "logarithm": lambda x, y, i, j: y[j] * cd.log((x[i] - x[j]) ** 2),
    "root": lambda x, y, i, j: cd.sqrt((x[i] - x[j]) ** 2 + y[i] ** 2),
    "product": lambda x, y, i, j: x[i] * y[j] ** 2 * x[j] ** 2,
    "softmax": lambda x, y, i, j: cd.exp(x[i] - x[j]) * y[j],
}
SINGULAR = ("inverse square", "logarithm")  # where i = j


def program(space: cd.Space, condition: str, body: str, other: str, nested: bool) -> Any:
    """A sum of pairs under a condition, and perhaps what a sum within a logarithm gives."""
    chosen, term, rest = INDICES[condition], BODIES[body], BODIES[other]

    def f(x: space, y: space):  # type: ignore[valid-type]
        def inner(i: Any) -> Any:
            return cd.sum(lambda j: cd.where(chosen(i, j), cd.exp(term(x, y, i, j) / 50) + 0 * y[j], 0.25))

        if nested:
            return cd.sum(lambda i: y[i] * cd.log(inner(i)))
        return cd.sum(lambda i, j: cd.where(chosen(i, j), term(x, y, i, j), rest(x, y, i, j)))

    f.__annotations__ = {"x": space, "y": space}
    return cd.program(f)


def holds(condition: str, i: int, j: int, size: int) -> bool:
    return bool(INDICES[condition](_Wrapped(i, size), _Wrapped(j, size)))


class _Wrapped(int):
    """A whole number that is compared by == and != modulo a size, where one is given."""

    def __new__(cls, value: int, size: int) -> _Wrapped:
        found = super().__new__(cls, value)
        found.size = size
        return found

    def _same(self, other: int) -> bool:
        return (int(self) - int(other)) % self.size == 0 if self.size else int(self) == int(other)

    def __eq__(self, other: object) -> Any:
        return np.bool_(self._same(other))  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Any:
        return np.bool_(not self._same(other))  # type: ignore[arg-type]

    __hash__ = int.__hash__

    def __add__(self, other: int) -> _Wrapped:
        return _Wrapped(int(self) + int(other), self.size)

    def __sub__(self, other: int) -> _Wrapped:
        return _Wrapped(int(self) - int(other), self.size)

    def __mul__(self, other: int) -> _Wrapped:
        return _Wrapped(int(self) * int(other), self.size)

    __rmul__ = __mul__


def by_hand(condition: str, body: str, other: str, x: Any, y: Any, size: int) -> float:
    functions = {
        "inverse square": lambda i, j: y[i] / (x[i] - x[j]) ** 2,
        "logarithm": lambda i, j: y[j] * np.log((x[i] - x[j]) ** 2),
        "root": lambda i, j: np.sqrt((x[i] - x[j]) ** 2 + y[i] ** 2),
        "product": lambda i, j: x[i] * y[j] ** 2 * x[j] ** 2,
        "softmax": lambda i, j: np.exp(x[i] - x[j]) * y[j],
    }
    return sum(
        functions[body if holds(condition, i, j, size) else other](i, j) for i in range(len(x)) for j in range(len(x))
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[bool, str, str, str]:
    """A space, a condition, a body, and what stands where the condition fails; nothing singular where it holds."""
    around, condition = draw(st.booleans()), draw(st.sampled_from(sorted(INDICES)))
    apart = all(not holds(condition, i, i, 0) for i in range(5))
    smooth = [name for name in BODIES if name not in SINGULAR]
    body = draw(st.sampled_from(sorted(BODIES) if apart else smooth))
    return around, condition, body, draw(st.sampled_from(smooth))


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    scale = 1 + np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::combdiff.errors.BudgetWarning")
@settings(max_examples=2, deadline=None)
@given(cases(), st.integers(0, 2**31), st.booleans())
def test_every_route_agrees(case: tuple[bool, str, str, str], seed: int, nested: bool) -> None:
    around, condition, body, other = case
    rng = np.random.default_rng(seed)
    given = {"x": rng.permutation(5) * 0.7 + rng.uniform(0, 0.2, 5), "y": rng.uniform(0.5, 1.5, 5)}
    f = program(Ring if around else Charges, condition, body, other, nested)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        simple, unsimplified = cd.grad(f, "x"), cd.grad(f, "x", simplify=False)
        value, gradient, raw = f(**given), simple(**given), unsimplified(**given)
        along = cd.hvp(f, "x", simplify=False)(**given, x_dot=np.arange(5.0))
    if not nested:
        close(value, by_hand(condition, body, other, given["x"], given["y"], 5 if around else 0))
    close(raw, gradient)
    cd.testing.check_grad(f, "x", **given)
    for transformed in (simple, unsimplified):
        with np.errstate(all="ignore"):
            found = evaluate(transformed.term, {}, {"n": 5})(given["x"], given["y"])
        close(found, gradient)
    ahead, behind = (simple(given["x"] + 1e-6 * sign * np.arange(5.0), given["y"]) for sign in (1, -1))
    close(along, (ahead - behind) / 2e-6, 1e-4)


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize(
    ("condition", "around"), [("i != j", False), ("i != j + 1", True), ("2*i != j", True), ("i != 2", False)]
)
def test_hessians(condition: str, around: bool, simplify: bool) -> None:
    singular = condition == "i != j"
    f = program(Ring if around else Charges, condition, "inverse square" if singular else "softmax", "product", False)
    rng = np.random.default_rng(3)
    x, y = rng.permutation(5) * 0.7 + rng.uniform(0, 0.2, 5), rng.uniform(0.5, 1.5, 5)
    found, gradient = cd.hessian(f, "x", simplify=simplify)(x, y), cd.grad(f, "x")
    steps = 1e-6 * np.eye(5)
    close(found, np.array([gradient(x + step, y) - gradient(x - step, y) for step in steps]) / 2e-6, 1e-4)


@cd.program
def vortices(z: Plane):
    """The energy of charges in the plane, with a potential that holds them together."""
    return cd.sum(lambda i: cd.abs(z[i]) ** 2) - cd.sum(
        lambda i, j: cd.where(i != j, cd.log(cd.abs(z[i] - z[j]) ** 2), 0)
    )


@pytest.mark.thorough
def test_complex_gradients_and_hessians() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=4) + 1j * rng.normal(size=4)
    cd.testing.check_grad(vortices, "z", z=z)
    gradient, raw = cd.grad(vortices), cd.grad(vortices, simplify=False)
    assert str(gradient) == "z ↦ d ↦ 2 z[d] - 4 Σ_{i≠d} 1 / (z[d]* - z[i]*)"
    close(raw(z), gradient(z))
    with np.errstate(all="ignore"):
        close(evaluate(raw.term, {}, {"n": 4})(z), gradient(z))
    mixed, plain = cd.hessian(vortices)(z)
    for direction in np.concatenate([np.eye(4), 1j * np.eye(4)]):
        change = (gradient(z + 1e-6 * direction) - gradient(z - 1e-6 * direction)) / 2e-6
        close(2 * (mixed.conj() @ direction + (plain @ direction).conj()), change, 1e-4)


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # Dask computes later, where none are held back
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("condition", "around"), [("i != j", False), ("i != j + 1", True), ("2*i != j", False), ("i != j and even", True)]
)
def test_backends_agree(condition: str, around: bool, backend: str) -> None:
    rng = np.random.default_rng(1)
    given = {"x": rng.permutation(150) * 0.1 + rng.uniform(0, 0.02, 150), "y": rng.uniform(0.5, 1.5, 150)}
    body = "root" if condition in ("i != j + 1", "2*i != j") else "inverse square"
    gradient = cd.grad(program(Ring if around else Charges, condition, body, "product", False), "x")
    with double_precision():
        close(np.asarray(gradient.compile(backend=backend)(**given)), gradient(**given), 1e-7)


def test_large_arrays_are_done_box_by_box() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 3)) * 10
    apart = x[:, None] - x
    squares = (apart**2).sum(-1) + np.eye(300)
    factors = 24 * (squares**-4 - 2 * squares**-7)
    np.fill_diagonal(factors, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(cd.grad(lennard_jones)(x), np.einsum("ij,ijc->ic", factors, apart))


# --- the condition itself ------------------------------------------------------------------------------------------


def test_it_is_one_object_however_it_is_written() -> None:
    i, j = Var("i", Range("n")), Var("j", Range("n"))
    apart = unequal(affine([(i, 1), (j, -1)]))
    assert apart is unequal(affine([(j, 3), (i, -3)]))
    assert apart.opposite is delta(i, j)
    assert substitute(apart, {j: i}) is ZERO
    assert substitute(apart, {j: affine([(i, 1)], 1)}) is ONE
    assert unequal(affine([(i, 2), (j, -2)], 1)) is ONE


def test_on_a_cycle_it_counts_modulo_the_size() -> None:
    i, j = Var("i", Cyclic(4)), Var("j", Cyclic(4))
    apart = unequal(affine([(i, 2), (j, -2)]))
    assert isinstance(apart, Unequal)
    values = [[evaluate(apart, {i: a, j: b}, {}) for a in range(4)] for b in range(4)]
    assert values == [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    assert substitute(apart, {j: affine([(i, 1)], 2)}) is ZERO
    assert unequal(affine([], 4), Cyclic("n")) is not ONE
    assert unequal(affine([], 4), Whole()) is ONE


def test_nothing_of_a_condition_is_lost_in_a_derivative() -> None:
    conditions = [node for node in subterms(cd.grad(coulomb_of_points, "x").term) if isinstance(node, Unequal)]
    assert len(conditions) == 1
