"""Sizes that are sums of names: slices, differences, joins and pads of axes whose size is only named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, convert, double_precision, on

import combdiff as cd
from combdiff.ir import names_in, resized, size_parts, size_sum, size_value

A = np.random.default_rng(0).normal(size=(7, 5))

CASES: dict[str, Callable[[Any], Any]] = {
    "differences": lambda A: ((A[1:] - A[:-1]) ** 2).sum() + (np.diff(A[:, 0], 2) ** 3).sum(),
    "ends": lambda A: (A[-3:] * A[:3] ** 2).sum() + (A[:0:-1] * A[1:] ** 2).sum(),
    "total variation": lambda A: np.sqrt((A[1:, :-1] - A[:-1, :-1]) ** 2 + (A[:-1, 1:] - A[:-1, :-1]) ** 2 + 1).sum(),
    "joins": lambda A: (np.concatenate([A[:, 0], A[0] ** 2, A[1]]) ** 3).sum() + np.hstack([A, A[:, :1]]).sum(),
    "pads and rolls": lambda A: (np.pad(A[0], 1)[2:] * A[0] ** 2).sum() + (np.roll(A, 1, axis=0) * A**2).sum(),
    "splits and means": lambda A: np.split(A[:, 0], [2, 4])[2].sum() ** 2 + A[1:].mean() * A[:, 1:].var(),
}


def _program(body: Callable[[Any], Any], *axes: Any) -> cd.Program:
    def f(A):  # type: ignore[no-untyped-def]
        return body(A)

    f.__annotations__["A"] = cd.Space(*(axes or ("n", "m")))
    return cd.program(f)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    f = _program(CASES[name])
    assert f(A) == pytest.approx(CASES[name](A))
    assert cd.testing.check_grad(f, "A", A=A) < 1e-6
    fixed = _program(CASES[name], 7, 5)
    np.testing.assert_allclose(cd.grad(f)(A), cd.grad(fixed)(A), atol=1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("backend", [TORCH, "jax", "dask"])
def test_other_libraries_agree(backend: str) -> None:
    total = _program(lambda A: sum(case(A) for name, case in CASES.items() if name != "total variation"))
    gradient = cd.grad(total, simplify=False)
    with double_precision():
        found = back(on(backend, gradient)(convert(backend, A)))
    np.testing.assert_allclose(found, gradient(A), rtol=1e-8, atol=1e-10)


def test_the_print_names_the_size_and_reads_back() -> None:
    f = _program(lambda x: np.diff(x, 2).sum() ** 2 + ((x[1:] - x[:-1]) ** 2).sum(), "n")
    assert "i<n - 1" in str(f)
    assert cd.read(str(f), spaces={"A": cd.Space("n")}) == f
    products = _program(lambda x: x[1:] * x[:-1], "n")
    text = str(cd.pullback(products))
    assert "A[d - 1] k[d - 1]" in text
    np.testing.assert_allclose(cd.pullback(products)(np.arange(3.0), np.array([1.0, 2.0])), [1, 4, 2])


def test_what_an_index_is_at_an_end_is_written_where_it_is_read() -> None:
    """δ(d, 0) says that there are elements, so that 0 is a place among them."""
    ends = _program(lambda x: np.concatenate([x[1:] ** 2, x[:1] * x[-1:]]), "n")
    assert str(cd.pullback(ends)).endswith("+ δ(d, 0) A[n - 1] k[n - 1]")


def test_a_space_may_have_a_sum_of_names_as_size() -> None:
    f = _program(lambda x: (x[::2] * x[1::2]).sum(), "2*n")
    assert f(np.arange(6.0)) == 26
    np.testing.assert_array_equal(cd.grad(f)(np.arange(6.0)), [1, 0, 3, 2, 5, 4])
    inner = _program(lambda x: (x[1:] ** 2).sum(), "k")
    outer = _program(lambda x: inner(x[1:]), "n")
    assert outer(np.arange(4.0)) == 13
    assert cd.Space("n-1") == cd.Space("-1 + n")


def test_sums_have_one_writing() -> None:
    assert size_sum(("n - 1", 2), ("m", -1), (3, 1)) == "2*n + 1 - m"
    assert size_sum(("n", 1), ("n", -1), (4, 1)) == 4
    assert size_parts("2*n + m - 3") == ({"m": 1, "n": 2}, -3)
    assert names_in("n - m") == {"n", "m"}
    assert size_value("n - 5", {"n": 3}) == 0
    assert resized("n - 1", {"n": "k + 2"}) == "k + 1"


def test_what_does_not_fit_is_refused() -> None:
    ends, pairs = _program(CASES["ends"]), _program(lambda x: x[::2].sum(), "2*n")
    with pytest.raises(cd.CombdiffError, match="for n = 2"):
        ends(A[:2])
    with pytest.raises(cd.ArgumentError, match=r"has 5 elements, which is no 2\*n"):
        pairs(np.ones(5))
    with pytest.raises(cd.ArgumentError, match="has 7 elements, but 6 were expected for n = 7"):
        cd.pullback(_program(lambda x: x[1:] * 2, "n"))(A[:, 0], np.ones(7))
    with pytest.raises(cd.UnsupportedError, match="steps of 2, but n by 2 has no name as a size"):
        _program(lambda x: x[::2].sum(), "n")
    with pytest.raises(cd.SpaceError, match="no whole-number sum of names"):
        cd.Space("n*m")


def test_convolutions_of_two_named_lengths() -> None:
    """All of one, whichever is the longer; of the modes that ask which is that says its own sentence."""

    @cd.program
    def squares(x: cd.Space("n"), w: cd.Space("m")):
        return (np.convolve(x, w) ** 2).sum()

    @cd.program
    def correlated(x: cd.Space("n", dtype=complex), w: cd.Space("m", dtype=complex)):
        return np.correlate(x, w, "full")

    generator = np.random.default_rng(0)
    for n, m in ((5, 3), (3, 5), (1, 4), (4, 1)):
        x, w = generator.normal(size=n), generator.normal(size=m)
        assert squares(x, w) == pytest.approx((np.convolve(x, w) ** 2).sum())
        assert cd.testing.check_grad(squares, ("x", "w"), x=x, w=w) < 1e-7
        x, w = x + 1j * generator.normal(size=n), w + 1j * generator.normal(size=m)
        np.testing.assert_allclose(correlated(x, w), np.correlate(x, w, "full"), rtol=1e-12)
    with pytest.raises(cd.UnsupportedError, match="mode='same' of vectors of named sizes"):

        @cd.program
        def same(x: cd.Space("n"), w: cd.Space("m")):
            return np.convolve(x, w, "same")
