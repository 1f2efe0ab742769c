"""A range that is given wins; and nothing depends on the order in which the ranges of indices become known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.errors import IndexingError

Line = cd.Space(cd.Real())
RNG = np.random.default_rng(0)

NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "1j*w*r": lambda w, r: cd.exp(1j * w * r),
    "w*r": lambda w, r: cd.exp(-w * r),
    "w/2.5j": lambda w, r: cd.exp(w / 2.5j + r),
    "w**2": lambda w, r: cd.exp(-(w**2)) * r,
    "abs(w)": lambda w, r: cd.exp(-abs(w)) * abs(r - w),
    "w": lambda w, r: w * cd.cos(r),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_an_index_is_a_number_before_its_range_is_known(name: str) -> None:
    """All orders of the factors are one program."""
    found = set()
    for order in permutations(range(3)):

        @cd.program
        def f(g: Line, h: Line):
            def term(w: Any, r: Any) -> Any:
                factors = [lambda: g[w], lambda: h[r], lambda: NUMBERS[name](w, r)]
                made = {n: factors[n]() for n in order}  # noqa: B023  (called at once)
                return made[0] * made[1] * made[2]

            return cd.tensor(lambda r: cd.sum(lambda w: term(w, r)))

        found.add(str(f))
    assert len(found) == 1


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_whole_index_is_a_number_in_every_order(name: str, order: int) -> None:
    def product(x: Any, w: Any, r: Any) -> Any:
        return x[w] * x[r] * NUMBERS[name](w, r) if order else NUMBERS[name](w, r) * x[w] * x[r]

    @cd.program
    def f(x: cd.Space("n")):
        return cd.sum(lambda w, r: product(x, w, r))

    x = np.array([1.0, 3.0, -2.0])
    places = np.arange(3)
    expected = sum(product(x, w, r) for w in places for r in places)
    assert f(x) == pytest.approx(expected)


@cd.program
def corner(X: cd.Space("n", 3)):
    return cd.sum(lambda i, k: X[i, k] ** 3, k=2)


@cd.program
def differences(x: cd.Space(5)):
    return cd.sum(lambda i: (x[i + 1] - x[i]) ** 3, i=4)


@cd.program
def inner(x: cd.Space(cd.Symmetric(3))):
    return cd.sum(lambda b: x[b] ** 3, b=cd.Symmetric(1))


@cd.program
def block(A: cd.Space("n", "n"), x: cd.Space("n")):
    return cd.tensor(lambda i: cd.sum(lambda j: A[i, j] * x[j] * x[i], j=2), i=3)


@cd.program
def whole(x: cd.Space("n"), w: cd.Space("m")):
    return cd.sum(lambda i: x[i] ** 2 * w[i] * x[i + 1], i="m")


CASES: list[tuple[Any, dict[str, Any], Callable[..., Any]]] = [
    (corner, {"X": RNG.normal(size=(4, 3))}, lambda X: (X[:, :2] ** 3).sum()),
    (differences, {"x": RNG.normal(size=5)}, lambda x: (np.diff(x) ** 3).sum()),
    (inner, {"x": RNG.normal(size=7)}, lambda x: (x[2:5] ** 3).sum()),
    (block, {"A": RNG.normal(size=(4, 4)), "x": RNG.normal(size=4)}, lambda A, x: (A[:3, :2] @ x[:2]) * x[:3]),
    (whole, {"x": RNG.normal(size=5), "w": RNG.normal(size=3)}, lambda x, w: (x[:3] ** 2 * w * x[1:4]).sum()),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("f", "arrays", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_a_range_that_is_given_wins(f: cd.Program, arrays: dict[str, Any], expected: Callable[..., Any]) -> None:
    np.testing.assert_allclose(f(**arrays), expected(**arrays))
    cd.testing.check_routes(f, **arrays)
    if f is not block:
        gradient, H = cd.grad(f), cd.hessian(f)
        (name, x), h = next(iter(arrays.items())), 1e-5
        dense = H(**arrays).reshape(x.size, x.size)
        for row, step in zip(dense, h * np.eye(x.size).reshape(x.size, *x.shape), strict=True):
            ends = [gradient(**{**arrays, name: x + sign * step}).reshape(-1) for sign in (1, -1)]
            np.testing.assert_allclose(row, (ends[0] - ends[1]) / (2 * h), atol=1e-6)
        np.testing.assert_allclose(H.diag()(**arrays).reshape(-1), np.diag(dense))


def test_what_leaves_the_tensor_is_refused() -> None:
    with pytest.raises(IndexingError, match=r"axis 0 of x is read at i = 5 .*, but it has the indices 0 … 4"):

        @cd.program
        def f(x: cd.Space(5)):
            return cd.sum(lambda i: x[i], i=7)

    with pytest.raises(IndexingError, match=r"axis 0 of x is read at i \+ 1 = 3 .*0 … 2 for m = 3, n = 3"):
        whole(np.ones(3), np.ones(3))
    with pytest.raises(IndexingError, match=r"axis 0 of A is read at i = 1 .*0 … 0 for n = 1"):
        block(np.ones((1, 1)), np.ones(1))


def test_an_index_that_is_only_shifted_round_a_cycle() -> None:
    """x[i + 1]·x[i − 2] goes once round the cycle; on other axes a range is asked for."""

    @cd.program
    def f(x: cd.Space(cd.Cyclic("n"))):
        return cd.sum(lambda i: x[i + 1] * x[-i] * x[i + 1])

    x = np.array([1.0, -2.0, 0.5, 3.0, 0.25])
    shifted = (np.arange(5) + 1) % 5
    np.testing.assert_allclose(f(x), (x[shifted] ** 2 * x[-np.arange(5)]).sum())
    with pytest.raises(IndexingError, match="the domain of the index i is unknown"):

        @cd.program
        def g(x: cd.Space("n")):
            return cd.sum(lambda i: x[i + 1])


@cd.program
def neighbours(x: cd.Space("n")):
    return cd.sum(lambda i: x[i] * x[i + 1], i=x.shape[0] - 1)


@cd.program
def powers(x: cd.Space("n")):
    return cd.scan(lambda carry, _: (carry * x, None), x, length=x.shape[0])[0]


def test_a_size_of_the_program_is_a_range() -> None:
    """i=x.shape[0] − 1 says what i="n - 1" says, and length=x.shape[0] what length="n" says."""
    x = np.array([0.5, 2.0, 3.0])
    assert str(neighbours) == "x ↦ Σ_{i<n - 1} x[i] x[i + 1]"
    assert neighbours(x) == 7
    np.testing.assert_allclose(powers(x), x**4)


@pytest.mark.parametrize("size", [lambda x: x[0], lambda x: x, lambda x: x.shape[0] ** 2])
def test_a_value_is_no_range(size: Callable[[Any], Any]) -> None:
    def program(x: cd.Space("n")):  # type: ignore[no-untyped-def, valid-type]
        return cd.sum(lambda i: x[0], i=size(x))

    with pytest.raises(cd.UnsupportedError, match="used as a size, but is no sum of sizes"):
        cd.program(program)
