"""Tensors made of sizes: as NumPy has them, of named sizes too, and conditions on what is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert

import combdiff as cd

MADE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ones": lambda m, n, k: m.ones((n, k)),
    "zeros": lambda m, n, k: m.zeros((n, k)) + m.ones(k),
    "full": lambda m, n, k: m.full((n, k), 2.5),
    "eye": lambda m, n, k: m.eye(n, k),
    "eye above": lambda m, n, k: m.eye(n, k, k=1) + m.eye(n, k, -1),
    "arange": lambda m, n, k: m.arange(n)[:, None] + m.arange(1, k + 1),
    "arange back": lambda m, n, k: m.arange(n - 1, -1, -1)[:, None] * m.arange(k),
    "linspace": lambda m, n, k: m.linspace(0, 1, n)[:, None] * m.linspace(-1, 2, k, endpoint=False),
    "triangle": lambda m, n, k: np.tril(m.ones((n, k))),
    "outer": lambda m, n, k: np.outer(m.ones(n), m.arange(k)),
}
X = np.random.default_rng(5).normal(size=(3, 4))


def program(make: Callable[[Any, Any, Any], Any], like: bool) -> cd.Program:
    class OfNumPy:
        """NumPy's functions with `like`, which asks the traced value."""

        def __init__(self, x: Any) -> None:
            self.x = x

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments, **options: getattr(np, name)(*arguments, **options, like=self.x)

    @cd.program
    def f(X: cd.Space("n", "k")):
        return (X * make(OfNumPy(X) if like else cd, *X.shape)).sum(axis=0)

    return f


@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_tensors_of_named_sizes_are_numpys(name: str, like: bool) -> None:
    if like and name in ("zeros", "linspace"):
        pytest.skip("NumPy's zeros reads the shape before it asks, and linspace takes no like")
    f = program(MADE[name], like)
    for x in (X, X[:1], X[:, :1]) if name != "linspace" else (X,):
        expected = (x * MADE[name](np, *x.shape)).sum(axis=0)
        np.testing.assert_allclose(f(x), expected, atol=1e-12)


@pytest.mark.parametrize("backend", ["jax", TORCH, "dask"])
def test_other_libraries_agree(backend: str) -> None:
    @cd.program
    def f(X: cd.Space("n", "k")):
        return tuple(make(cd, *X.shape) * X for make in MADE.values())

    for found, expected in zip(f(convert(backend, X)), f(X), strict=True):
        np.testing.assert_allclose(back(found), expected, atol=1e-6)


def test_what_is_counted_compares_as_indices_do() -> None:
    @cd.program
    def causal(S: cd.Space("n", "n")):
        n = S.shape[0]
        return np.where(cd.arange(n)[:, None] >= cd.arange(n), S, -np.inf)

    @cd.program
    def masked(S: cd.Space("n", "n")):
        return np.where(np.tril(cd.ones(S.shape)) == 0, -np.inf, S)

    S = X[:, :3]
    for f in (causal, masked):
        assert str(f) == "S ↦ (i, j) ↦ [i ≥ j] S[i,j] - inf [i < j]"
        np.testing.assert_array_equal(f(S), np.where(np.tril(np.ones((3, 3))) > 0, S, -np.inf))

    @cd.program
    def relations(S: cd.Space("n", "n")):
        i, j = cd.arange("n")[:, None], cd.arange("n")
        return tuple(S * test for test in (i < j, i <= j, i > j + 1, 2 * i >= j, i == j, i != j, cd.eye("n") > 0.5))

    i, j = np.arange(3)[:, None], np.arange(3)
    expected = [S * test for test in (i < j, i <= j, i > j + 1, 2 * i >= j, i == j, i != j, i == j)]
    for found, right in zip(relations(S), expected, strict=True):
        np.testing.assert_array_equal(found, right)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a value": (lambda x: cd.zeros(x[0]), "is used as a size"),
    "a product of sizes": (lambda x: x.reshape(x.shape[0] ** 2), "is no sum of sizes with whole factors"),
    "half": (lambda x: cd.eye(2.5), "2.5 is no size of an axis"),
    "less than nothing": (lambda x: cd.ones(-1), "a tensor with -1 elements"),
    "steps": (lambda x: cd.arange(0, x.shape[0], 2), "arange with steps of 2"),
    "half a step": (lambda x: cd.arange(0, 3, 0.5), "an offset or step of arange is 0.5"),
    "texts": (lambda x: cd.ones(3, dtype=str), "full of <class 'str'>"),
    "order": (lambda x: cd.zeros(3, order="F"), "full in the order 'F'"),
    "NumPy alone": (lambda x: np.eye(x.shape[0]), "a whole number is made of the size n, which is only named"),
    "a triangle of NumPy's": (lambda x: np.tri(x.shape[0]), "a comparison of the size n, which is only named"),
    "a size that decides": (lambda x: x if x.shape[0] > 3 else -x, "a comparison of the size n, which is only named"),
    "counted by NumPy": (lambda x: np.arange(x.shape[0]), "an array is made of the size n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_users_line(name: str) -> None:
    operation, message = REFUSED[name]
    with pytest.raises(cd.CombdiffError) as caught:

        @cd.program
        def f(x: cd.Space("n")):
            return operation(x)

    assert message in caught.value.message
    assert caught.value.hint
    assert caught.value.location.file == __file__


def test_outside_of_programs_numpy_is_named() -> None:
    with pytest.raises(cd.TraceError, match="outside of a program"):
        cd.eye(3)


GAINS, UNIT = np.ones(4), np.eye(4)  # of the surroundings, whose names are shown


def doubled(start: Any, x: Any) -> Any:
    """Outside of the programs that call it: `start` is theirs, or of the surroundings."""
    return start + 2 * x


def closed_over(gain: np.ndarray) -> Callable[[Any], Any]:
    return lambda x: gain * x


tripled, Four = closed_over(np.full(4, 3.0)), cd.Space(4)


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        (lambda x: np.concatenate([np.ones(1), x[:-1]]) @ x, "x ↦ Σ_i x[i] ([i ≥ 1] x[i - 1] + [i ≤ 0])"),
        (lambda x: x @ np.full((4, 4), 0.5) @ x, "x ↦ 1/2 (Σ_j x[j])²"),
        (lambda x: doubled(np.zeros(4), x).sum(), "x ↦ 2 Σ_i x[i]"),
        (lambda x: doubled(GAINS, x).sum(), "(x, start) ↦ Σ_i (start[i] + 2 x[i])"),
        (lambda x: GAINS @ x, "(x, GAINS) ↦ Σ_i GAINS[i] x[i]"),
        (lambda x: np.einsum("i,i->", GAINS, x), "(x, GAINS) ↦ Σ_i GAINS[i] x[i]"),
        (lambda x: tripled(x).sum(), "(x, gain) ↦ Σ_i gain[i] x[i]"),
        (lambda x: x @ UNIT @ x, "(x, UNIT) ↦ Σ_{j,i} UNIT[i,j] x[j] x[i]"),
        (lambda x: x @ (np.eye(4) / 2) @ x, "x ↦ 1/2 Σ_j x[j]²"),
        (lambda x: (np.array([2, 2, 2, 2]) * x).sum(), "x ↦ 2 Σ_i x[i]"),
        (lambda x: np.real(np.full(4, 1j) @ (1j * x)), "x ↦ -Σ_i x[i]"),
        (lambda x: np.maximum(x, np.full(4, -np.inf)).sum(), "(x, c) ↦ Σ_i max(x[i], c[i])"),
    ],
)
def test_arrays_of_one_number_that_a_program_makes_are_that_number(body: Callable[[Any], Any], printed: str) -> None:
    def f(x: Four):
        return body(x)

    program, x = cd.program(f), np.array([0.3, -1.2, 0.7, 2.0])
    assert str(cd.simplify(program)) == printed
    np.testing.assert_allclose(program(x), body(x))
    cd.testing.check_grad(program, "x", x=x)


def test_a_variable_that_a_program_begins_with_is_no_constant_of_its_surroundings() -> None:
    @cd.program
    def f(x: Four):
        total, unit = np.zeros(4), np.eye(4)
        for _ in range(3):
            total = np.tanh(total + unit @ x)
        return total, cd.sum(lambda i: cd.constant(unit)[i, i] * x[i])

    assert str(cd.simplify(f)) == "x ↦ (i ↦ tanh(x[i] + tanh(x[i] + tanh(x[i]))), Σ_i x[i])"
    assert not f.fixed


def test_imaginary_multiples_of_counts_are_complex() -> None:
    """The result was made real, as that of counts alone is: all zeros."""

    @cd.program
    def f(Z: cd.Space("m", "n", dtype=complex), k: cd.Space("n", dtype=int)):  # type: ignore[no-untyped-def, valid-type]
        return np.sum(np.cumsum(Z, axis=1) + 2 * k * Z).imag

    k, Z = np.array([0, 3, 1]), np.ones((2, 3)) * (1 - 2j)
    expected = 1j * np.broadcast_to([3, 8, 3], (2, 3))
    np.testing.assert_array_equal(cd.grad(f, "Z")(Z, k), expected)
    np.testing.assert_array_equal(cd.grad(f, "Z", simplify=False)(Z, k), expected)
    assert cd.testing.check_grad(f, "Z", Z=Z, k=k) < 1e-6
