"""An index is a number too, and may be divided with a rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert, on

import combdiff as cd

X = np.array([0.0, 2.0, 3.0, 4.0])


@cd.program
def numbers(x: cd.Space("n")):
    return cd.sum(lambda i: (i + 1) ** 2 * x[i] + x[i] ** i / (i + 1) + 2**i * x[i] + 0.5 * i - abs(i - 2) * x[i] ** 3)


@cd.program
def rests(x: cd.Space(4)):
    return cd.sum(lambda i: x[i // 2] * x[3 - i % 2] ** 2 * ((i // 2) % 3 + i // 2 // 2 + i % 3 - 0.5), i=8)


def test_an_index_is_the_number_that_it_is() -> None:
    i = np.arange(4)
    terms = (i + 1) ** 2 * X + X**i / (i + 1) + 2**i * X + 0.5 * i - abs(i - 2) * X**3
    assert numbers(X) == pytest.approx(terms.sum())
    assert cd.testing.check_grad(numbers, "x", x=X + 1) < 1e-7
    slope = (i + 1) ** 2 + np.array([0, 1 / 2, 2 * 3 / 3, 3 * 16 / 4]) + 2.0**i - 3 * abs(i - 2) * X**2
    np.testing.assert_allclose(cd.grad(numbers)(X), slope)  # x⁰ has the derivative 0 at 0, too
    assert cd.grad(numbers)(X.astype(np.float32)).dtype == np.float32


def test_squares_of_distances_have_one_sign() -> None:
    """exp(−(i − d)²) and exp(−(d − i)²) are one, so that the gradient of a smoothing form has one sum."""

    @cd.program
    def smooth(x: cd.Space("n"), s: cd.Space()):  # type: ignore[no-untyped-def, valid-type]
        return cd.sum(lambda i, j: np.exp(-((i - j) ** 2) / s) * x[i] * x[j])

    @cd.program
    def moment(x: cd.Space("n"), y: cd.Space("n")):  # type: ignore[no-untyped-def, valid-type]
        return cd.sum(lambda i, j: (i - j) ** 2 * x[i] * y[j] + (j - i) ** 2 * x[j] * y[i])

    assert str(cd.grad(smooth)) == "(x, s) ↦ d<n ↦ 2 Σ_i x[i] exp(-(i - d)² / s)"
    assert str(cd.simplify(moment)) == "(x, y) ↦ 2 Σ_{i,j} x[i] y[j] (j - i)²"
    assert cd.testing.check_grad(smooth, "x", x=X, s=2.0) < 1e-7
    assert cd.testing.check_grad(moment, "y", x=X, y=X + 1) < 1e-7


def test_rests_of_divisions_read_elements_and_count() -> None:
    i = np.arange(8)
    assert rests(X) == pytest.approx((X[i // 2] * X[3 - i % 2] ** 2 * ((i // 2) % 3 + i // 2 // 2 + i % 3 - 0.5)).sum())
    assert cd.testing.check_grad(rests, "x", x=X) < 1e-7


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", [TORCH, "jax", "dask"])
def test_other_libraries_count_alike(backend: str) -> None:
    np.testing.assert_allclose(back(on(backend, numbers)(convert(backend, X))), numbers(X), rtol=1e-6)
    np.testing.assert_allclose(back(on(backend, rests)(convert(backend, X))), rests(X), rtol=1e-6)


@pytest.mark.parametrize("backend", [TORCH])
def test_whole_numbers_stand_beside_real_ones_in_products(backend: str) -> None:
    """PyTorch's products take one element type, and its slices no negative steps."""

    @cd.program
    def sorted_rows(A: cd.Space(4, 4)):
        rows = np.take_along_axis(A, np.argsort(A, axis=1), axis=1)
        return (rows * np.arange(4)).sum() + (A[::-2] * np.arange(4)).sum() + (A[3:1:-1] ** 2).sum()

    A = np.cos(np.arange(16.0)).reshape(4, 4)
    for program in (sorted_rows, cd.grad(sorted_rows)):
        np.testing.assert_allclose(back(on(backend, program)(convert(backend, A))), program(A), rtol=1e-6)


def test_numbers_are_printed_as_their_indices() -> None:
    @cd.program
    def f(x: cd.Space("n")):
        return cd.sum(lambda i: i * x[i] ** 2)

    assert str(f) == "x ↦ Σ_i i x[i]²"
    assert str(cd.grad(f)) == "x ↦ d ↦ 2 x[d] d"


def test_labels_are_compared_with_an_index() -> None:
    @cd.program
    def sums(label: cd.Space("n", dtype=int), x: cd.Space("n"), c: cd.Space("k")):
        return cd.tensor(lambda j: c[j] * cd.sum(lambda i: cd.where(label[i] == j, x[i], 0)))

    np.testing.assert_array_equal(sums(np.array([0, 1, 1]), np.arange(3.0), np.ones(2)), [0, 3])


def test_a_range_that_is_given_wins() -> None:
    @cd.program
    def f(A: cd.Space("n", "m")):
        return cd.sum(lambda i, k: k * A[i, k], k=2)

    assert f(np.ones((2, 3))) == 2


N = 7
COMPARED = {
    "(i // 2) % 3 == 1": lambda i, j, n: (i // 2) % 3 == 1,
    "(i // 2) % 3 != 1": lambda i, j, n: (i // 2) % 3 != 1,
    "(i // 2 + 1) % 3 == 2": lambda i, j, n: (i // 2 + 1) % 3 == 2,
    "i // 2 == j": lambda i, j, n: i // 2 == j,
    "i // 2 > j": lambda i, j, n: i // 2 > j,
    "i // 3 == j // 3": lambda i, j, n: i // 3 == j // 3,
    "i // 2 + j // 3 < 3": lambda i, j, n: i // 2 + j // 3 < 3,
    "i % 3 == j": lambda i, j, n: i % 3 == j,
    "i % 3 != j": lambda i, j, n: i % 3 != j,
    "i % 3 == j % 3": lambda i, j, n: i % 3 == j % 3,
    "i % 3 == j % 2": lambda i, j, n: i % 3 == j % 2,
    "i % 3 == 4": lambda i, j, n: i % 3 == 4,
    "i % 3 != -1": lambda i, j, n: i % 3 != -1,
    "i % 5 < 2": lambda i, j, n: i % 5 < 2,
    "(i + 1) % n == 2": lambda i, j, n: (i + 1) % n == 2,
    "(i + 3) % n != j": lambda i, j, n: (i + 3) % n != j,
    "(i - 1) % n >= 3": lambda i, j, n: (i - 1) % n >= 3,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", COMPARED)
def test_divided_indices_are_compared_as_numbers_are(name: str) -> None:
    holds = COMPARED[name]

    @cd.program
    def f(x: cd.Space("n")):
        return cd.sum(lambda i, j: cd.where(holds(i, j, x.shape[0]), x[i] ** 3 * x[j], 2 * x[j]), i="n", j="n")

    x = np.linspace(-1, 2, N)
    expected = sum(x[i] ** 3 * x[j] if holds(i, j, N) else 2 * x[j] for i in range(N) for j in range(N))
    assert f(x) == pytest.approx(expected)
    assert cd.testing.check_grad(f, "x", x=x) < 1e-7
    for program in (f, cd.grad(f)):
        assert cd.read(str(program), spaces={"x": cd.Space("n")}) == program


AROUND = {
    "x[(i + 1) % n]": (
        lambda x, i, n: x[i] * x[(i + 1) % n] ** 2,
        "x ↦ d ↦ 2 x[d] x[(d - 1) mod n] + x[(d + 1) mod n]²",
    ),
    "x[(2 i) % n]": (
        lambda x, i, n: x[i] * x[(2 * i) % n],
        "x ↦ d<n ↦ x[(2 d) mod n] + Σ_r δ((2 r) mod n, d) x[r]",
    ),
    "x[(i + 1) % 7]": (
        lambda x, i, n: x[i] * x[(i + 1) % 7] ** 2,
        "x ↦ d ↦ 2 x[d] x[(d - 1) mod 7] + x[(d + 1) mod 7]²",
    ),
    "i % n": (lambda x, i, n: x[i] * ((i + 1) % n), "x ↦ d<n ↦ (d + 1) mod n"),
}


@pytest.mark.parametrize("name", AROUND)
def test_indices_are_reduced_modulo_sizes(name: str) -> None:
    body, gradient = AROUND[name]

    def f(x):  # type: ignore[no-untyped-def]
        return cd.sum(lambda i: body(x, i, x.shape[0]), i=f.__annotations__["x"].axes[0])

    f.__annotations__["x"] = cd.Space(7 if "7" in name else "n")
    program, x = cd.program(f), np.linspace(-1, 2, N)
    assert program(x) == pytest.approx(sum(body(x, i, N) for i in range(N)))
    assert str(cd.grad(program)) == gradient
    assert cd.testing.check_grad(program, "x", x=x) < 1e-7


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (lambda x, i: x[i // x.shape[0]], "i // n: the divisor is a size that has only a name"),
        (lambda x, i: x[(i // 2) % x.shape[0]], r"\(i // 2\) % n: what was divided is divided by a size"),
        (lambda x, i: x[(i + 1) % 0], r"\(i \+ 1\) % 0: the modulus must be a positive whole number or a size"),
    ],
)
def test_divisions_that_are_not_of_numbers_are_refused(body: Any, said: str) -> None:
    with pytest.raises(cd.IndexingError, match=said):

        @cd.program
        def f(x: cd.Space("n")):
            return cd.sum(lambda i: x[i] * body(x, i))


SIZED = {
    "x[n - 1 - i]": (lambda x: cd.tensor(lambda i: x[x.shape[0] - 1 - i], i="n"), lambda x: x[::-1]),
    "x[n - 1]": (lambda x: x[x.shape[0] - 1], lambda x: x[-1]),
    "i < n - 1": (
        lambda x: cd.sum(lambda i: cd.where(i < x.shape[0] - 1, (x[i + 1] - x[i]) ** 2, 0), i="n"),
        lambda x: (np.diff(x) ** 2).sum(),
    ),
    "n - 2 >= i": (
        lambda x: cd.sum(lambda i: cd.where(x.size - 2 >= i, x[i] * x[i + 1], 0), i="n"),
        lambda x: x[:-1] @ x[1:],
    ),
    "i == n - 1": (
        lambda x: cd.tensor(lambda i: cd.where(i == x.shape[0] - 1, x[0] * x[i], x[i] ** 2), i="n"),
        lambda x: np.append(x[:-1] ** 2, x[0] * x[-1]),
    ),
    "i + j == n - 1": (
        lambda x: cd.sum(lambda i, j: cd.where(i + j == x.shape[0] - 1, x[i] * x[j], 0)),
        lambda x: x @ x[::-1],
    ),
    "abs(2 i - n) <= 1": (
        lambda x: cd.sum(lambda i: cd.where(abs(2 * i - x.shape[0]) <= 1, x[i], 0)),
        lambda x: x[abs(2 * np.arange(len(x)) - len(x)) <= 1].sum(),
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SIZED)
def test_sizes_are_whole_numbers_of_index_expressions(name: str) -> None:
    """In what an axis is read at, and in conditions, which guard what they multiply."""
    body, expected = SIZED[name]

    def f(x):
        return cd.sum(cd.sin(body(x)))

    f.__annotations__["x"] = cd.Space("n")
    program = cd.program(f)
    for n in (1, 2, 5):
        x = np.cos(np.arange(n) + 1.0)
        assert program(x) == pytest.approx(np.sin(expected(x)).sum())
        if n > 1:
            cd.testing.check_grad(program, "x", x=x)


def test_an_index_that_cancels_leaves_its_number() -> None:
    @cd.program
    def halves(x: cd.Space("n")):  # type: ignore[no-untyped-def, valid-type]
        return cd.sum(lambda i: (0.5 + 0 * i) * x[i])

    assert str(cd.simplify(halves)) == "x ↦ 1/2 Σ_i x[i]"
    assert halves([1.0, 2.0]) == 1.5


@pytest.mark.parametrize(
    "tensor",
    [
        lambda x: x[0] ** (cd.arange(x.shape[0]) / 4),
        lambda x: x[0] + 0.25 * cd.arange(x.shape[0]),
        lambda x: np.geomspace(x[0], 9, 4, endpoint=False),
    ],
)
@pytest.mark.parametrize("library", ["numpy", TORCH])
def test_fractions_of_indices_are_as_wide_as_the_arguments(tensor: Any, library: str) -> None:
    """A number that stands alone does not widen an array in PyTorch: ¼ of the indices has to be wide before."""

    def program(x: cd.Space("n")):  # type: ignore[no-untyped-def, valid-type]
        return tensor(x)

    x = np.array([1.7, 2.0, 3.0, 5.0])
    found = back(cd.program(program)(x if library == "numpy" else convert(library, x)))
    assert found.dtype == float
    np.testing.assert_allclose(found, cd.program(program)(x), rtol=1e-14)


@pytest.mark.thorough
def test_a_remainder_is_a_number_that_is_printed_so() -> None:
    @cd.program
    def f(x: cd.Space("n")):
        return cd.sum(lambda d: (d % 2) * x[d] + ((d % 4) % 3 + d // 2) ** 2 * x[d] ** 2)

    assert "(d mod 2) x[d]" in str(cd.simplify(f))
    for program in (f, cd.grad(f), cd.hvp(f)):
        spaces = {parameter.name: cd.Space("n") for parameter in program.parameters}
        assert cd.read(str(program), spaces=spaces) == program
    d, x = np.arange(7), np.linspace(-1, 1, 7)
    assert f(x) == pytest.approx((d % 2 * x + (d % 4 % 3 + d // 2) ** 2 * x**2).sum())
    assert cd.testing.check_grad(f, "x", x=x) < 1e-7


def test_remainders_of_values_are_read_back() -> None:
    @cd.program
    def f(x: cd.Space("n"), y: cd.Space("n")):
        return ((3 * x) % 2 + (x * y % (1 + y)) * np.where(y % 2 == 1, x, 2) * (x % 2 > 1)).sum()

    assert "(3 x[i]) mod 2" in str(f)
    assert cd.read(str(f)) == f


@pytest.mark.thorough
def test_a_condition_on_a_remainder_guards_what_is_read_there() -> None:
    """It was refused, as the condition and the read had each an index of their own for the remainder."""

    def f(y: cd.Space(4), w: cd.Space("m")):
        def kept(d, k):
            place = (d - k) % 6
            return cd.where((place <= 3) & (place != 2), y[place] * w[k], 0) + cd.where(place > 3, 1, y[place] * w[0])

        return cd.tensor(lambda d: cd.sum(lambda k: kept(d, k)), d=6)

    y, w = np.arange(1.0, 5), np.arange(1.0, 4)
    expected = np.zeros(6)
    for d, k in np.ndindex(6, 3):
        place = (d - k) % 6
        expected[d] += y[place] * w[k] * (place != 2) + y[place] * w[0] if place <= 3 else 1
    program = cd.program(f)
    for found in (program, cd.simplify(program), cd.read(str(program))):
        np.testing.assert_allclose(found(y, w), expected)

    @cd.program
    def squared(y: cd.Space(4), w: cd.Space("m")):
        return (program(y, w) ** 2).sum()

    assert cd.testing.check_grad(squared, "y", y=y, w=w) < 1e-7


def test_a_refusal_writes_a_remainder_as_the_user_did() -> None:
    @cd.program
    def f(y: cd.Space(4), w: cd.Space("m")):
        return cd.tensor(lambda d: cd.sum(lambda k: y[(d - k) % 6 - 1] * w[k]), d=6)

    with pytest.raises(cd.IndexingError, match=r"axis 0 of y is read at \(d - k\) % 6 - 1 = -1, but it has .* 0 … 3"):
        f(np.ones(4), np.ones(2))


def test_a_remainder_that_is_a_number_is_that_place() -> None:
    """It was an index of its own that a δ says to be a number; a print took what is left of one place for a lookup."""

    @cd.program
    def f(x: cd.Space(4)):
        return cd.tensor(lambda u: x[(3 * u) % 3] + x[(3 * u + 1) % 3] + x[(u - u) % 2], u=2)

    assert str(f) == "x ↦ u<2 ↦ 2 x[0] + x[1]"
    x = cd.Space(4)
    one = cd.read("x ↦ Σ_{p<2} Σ_{r=max(0, 1 - 2p)}^{min(1, 2 - 2p)} x[2p + r - 1]", {"x": x})
    assert cd.read(str(one), {"x": x})(np.arange(1.0, 5)) == one(np.arange(1.0, 5)) == 3
