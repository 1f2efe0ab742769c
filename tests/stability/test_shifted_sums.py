"""Masked softmax and log-sum-exp at extreme arguments: as good as the quotient that is shifted by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd

M, ROWS = cd.Space("n", "n"), cd.Space("n")
EXTREME = st.sampled_from([0.0, 1.0, -1e-300, 1e3, -1e3, 999.0, 1e12, 1e17, -1e300, 1e300, -np.inf])


@cd.program
def told(s: M, v: ROWS):
    """A condition in front of the exponential."""
    e = cd.tensor(lambda i, j: cd.where(j <= i, cd.exp(s[i, j]), 0))
    return cd.tensor(lambda i: cd.sum(lambda j: e[i, j] * v[j]) / cd.sum(lambda j: e[i, j]))


@cd.program
def inside(s: M, v: ROWS):
    """−∞ in the exponent."""
    e = cd.exp(cd.tensor(lambda i, j: cd.where(j <= i, s[i, j], -np.inf)))
    return cd.tensor(lambda i: cd.sum(lambda j: e[i, j] * v[j]) / cd.sum(lambda j: e[i, j]))


@cd.program
def logarithms(s: M):
    return cd.tensor(lambda i: cd.log(cd.sum(lambda j: cd.where(j <= i, cd.exp(s[i, j]), 0))))


def shares(s: Any) -> Any:
    """The softmax of what is on and below the diagonal, shifted by hand."""
    masked = np.where(np.tri(len(s), dtype=bool), s, -np.inf)
    powers = np.exp(masked - masked.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


pullback, pushforward = cache(cd.pullback), cache(cd.pushforward)


@pytest.mark.thorough
@settings(max_examples=examples(3), deadline=None)
@given(st.data())
def test_masked_softmax(data: st.DataObject) -> None:
    s = np.array(data.draw(st.lists(st.lists(EXTREME, min_size=3, max_size=3), min_size=3, max_size=3)))
    np.fill_diagonal(s, np.maximum(np.diag(s), -1e300))  # something is left of every row
    s[np.triu_indices(3, 1)] = data.draw(st.sampled_from([0.0, 1e300, np.inf, np.nan]))  # is not looked at
    v, k, t = np.array([1.0, 2.0, -3.0]), np.array([1.0, -0.5, 2.0]), np.arange(9.0).reshape(3, 3)
    p = shares(s)
    slopes = p * (v - (p @ v)[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for program in (told, inside):
            pull, push = pullback(program, "s"), pushforward(program, "s")
            np.testing.assert_allclose(program(s, v), p @ v, rtol=1e-14, atol=1e-14)
            np.testing.assert_allclose(pull(s, v, k), k[:, None] * slopes, rtol=1e-14, atol=1e-14)
            np.testing.assert_allclose(push(s, v, t), (slopes * t).sum(1), rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(pullback(logarithms, "s")(s, k), k[:, None] * p, rtol=1e-15, atol=1e-15)


def test_a_quotient_by_a_number_and_exponentials_is_bounded() -> None:
    """exp(x[i]) ≤ 2 + Σ_j exp(x[j]): what stands beside the quotient is no part of its exponents."""

    @cd.program
    def beside(x: ROWS, y: ROWS):
        return cd.sum(lambda i: y[i] * x[i]) - y.sum() * cd.log(2 + cd.exp(x).sum())

    gradient = cd.grad(beside, "x")
    y = np.array([1.0, -2.0, 0.5])
    for size in (0.0, 1.0, 1e3, -1e3):
        x = size + np.array([0.0, 1.0, -1.0])
        top = max(0.0, x.max())
        shares = np.exp(x - top) / (2 * np.exp(-top) + np.exp(x - top).sum())
        np.testing.assert_allclose(gradient(x, y), y - y.sum() * shares, rtol=1e-14)
    assert gradient.source().count("np.exp(") <= 4


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", *BACKENDS])
def test_causal_attention(backend: str) -> None:
    """Logits of a thousand that differ by little: value, gradient and Hessian-vector product of each library."""
    A = cd.Space("n", "d")

    @cd.program
    def attention(q: A, k: A, v: A):
        e = cd.tensor(lambda i, j: cd.where(j <= i, cd.exp(cd.sum(lambda c: q[i, c] * k[j, c])), 0))
        z = cd.tensor(lambda i: cd.sum(lambda j: e[i, j]))
        return cd.sum(lambda i, c: (cd.sum(lambda j: e[i, j] * v[j, c]) / z[i]) ** 2)

    rng = np.random.default_rng(0)
    q, k, v, t = (rng.normal(size=(4, 2)) for _ in range(4))
    q[:, 0], k[:, 0] = 1.0, 1e3 + k[:, 0] / 8
    both, product = (d.compile(backend=backend) for d in (cd.value_and_grad(attention, "q"), cd.hvp(attention, "q")))

    def slope(q: Any) -> Any:
        p = shares(q @ k.T)
        outer = 2 * (p @ v) @ v.T
        return (p * (outer - (p * outer).sum(1, keepdims=True))) @ k

    value, gradient = map(np.asarray, both(q, k, v))
    assert "_boxes" not in logarithms.source()
    digits = 1e-12 if value.dtype == np.float64 else 1e-3  # JAX takes single precision, by default
    np.testing.assert_allclose(value, ((shares(q @ k.T) @ v) ** 2).sum(), rtol=digits)
    np.testing.assert_allclose(gradient, slope(q), atol=1e4 * digits)
    central = (slope(q + 1e-6 * t) - slope(q - 1e-6 * t)) / 2e-6
    found = np.asarray(product(q, k, v, t))
    assert np.isfinite(found).all()
    if value.dtype == np.float64:
        np.testing.assert_allclose(found, central, rtol=1e-3, atol=1e-3)


@pytest.mark.thorough
def test_hessians_of_sums_within_sums() -> None:
    """Two steps of a chain of hidden states."""

    @cd.program
    def chain(T: cd.Space("k", "k")):
        first = cd.tensor(lambda j: cd.log(cd.sum(lambda i: cd.exp(T[0, i] + T[i, j]))))
        return cd.log(cd.sum(lambda i, j: cd.exp(first[i] + T[i, j])))

    T, V = np.array([[0.3, -0.4], [1.0, 0.2]]), np.array([[1.0, 2.0], [-1.0, 0.5]])
    gradient, H = cd.grad(chain, simplify=False), cd.hessian(chain, simplify=False)
    central = (gradient(T + 1e-6 * V) - gradient(T - 1e-6 * V)) / 2e-6
    np.testing.assert_allclose(np.tensordot(H(T), V, 2), central, atol=1e-8)
    assert np.isfinite(H(5e3 * T)).all()


@pytest.mark.thorough
def test_planning_is_linear() -> None:
    """Each scaled number is made once: twice the gates take about twice the bindings."""
    from combdiff.stability import stable

    def gated(steps: int) -> int:
        @cd.program
        def f(x: ROWS, W: M):
            h = x
            for _ in range(steps):
                h = h * (1 / (1 + cd.exp(-(W @ h))))
            return h.sum()

        return len(stable(cd.grad(f, "W", simplify=False).term).body.bindings)  # type: ignore[attr-defined]

    sizes = [gated(steps) for steps in (2, 4, 8)]
    assert sizes[2] - sizes[1] <= 2.2 * (sizes[1] - sizes[0])


@cd.program
def weighted_shares(q: ROWS, x: ROWS):
    return cd.sum(lambda i: cd.exp(q[i]) * cd.softmax(x)[i])


@pytest.mark.thorough
def test_a_factor_that_shares_no_exponent_with_a_quotient_stays_as_it_is() -> None:
    assert "np.exp(q)" in weighted_shares.source()
    q, x = np.array([0.3, 1.0, -2.0]), np.array([1000.0, -1000.0, 999.0])
    share = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    assert weighted_shares(q, x) == pytest.approx(np.exp(q) @ share, rel=1e-14)
    expected = share * (np.exp(q) - np.exp(q) @ share)
    np.testing.assert_allclose(cd.grad(weighted_shares, "x")(q, x), expected, rtol=1e-13, atol=1e-300)


MASKED = "masked norm"  # of its product, as the two rules leave it, the exponents of masked sums do not cancel yet
LARGE_EXPONENTS: dict[str, Callable[..., Any]] = {
    "norm": lambda x, y, m: np.linalg.norm(cd.softmax(2 * x - y)),
    MASKED: lambda x, y, m: np.linalg.norm(cd.softmax(np.where(m > 0, x, -np.inf))),
    "squares": lambda x, y, m: np.sum(np.exp(2 * x)) / np.sum(np.exp(x)) ** 2,
    "cubes": lambda x, y, m: np.sum(cd.softmax(x) ** 3),
    "variance": lambda x, y, m: np.var(cd.softmax(x)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("simplified", [True, False])
@pytest.mark.parametrize("name", LARGE_EXPONENTS)
def test_powers_of_exponentials_cancel_at_any_size(name: str, simplified: bool) -> None:
    """At 1e17 the numbers between which exponents differ are no whole ones any more; at 1e3 all has its limit."""
    body = LARGE_EXPONENTS[name]

    @cd.program
    def f(x: cd.Space("n"), y: cd.Space("n"), m: cd.Space("n")):
        return body(x, y, m)

    gradient, product = cd.grad(f, simplify=simplified), cd.hvp(f, simplify=simplified)
    x, y, m, v = np.array([1.5, 2.0, -1.0]), np.array([0.5, -0.25, 1.0]), np.array([1.0, 1.0, 0.0]), np.ones(3)
    v[0], step = -2.0, 1e-5
    change = (f(x + step * v, y, m) - f(x - step * v, y, m)) / (2 * step)
    assert gradient(x, y, m) @ v == pytest.approx(change, rel=1e-7, abs=1e-9)
    turned = (gradient(x + step * v, y, m) - gradient(x - step * v, y, m)) / (2 * step)
    np.testing.assert_allclose(product(x, y, m, v), turned, rtol=1e-6, atol=1e-8)
    for size in (1e4, 1e17, 1e100, 1e290):
        for factor in (1.0, -1.0):
            given = factor * size * x, size * y, m
            assert f(*given) == pytest.approx(f(factor * 1e3 * x, 1e3 * y, m), rel=1e-14)
            assert not np.any(gradient(*given))
            assert (name == MASKED and not simplified) or not np.any(product(*given, v))


@pytest.mark.thorough
def test_what_is_below_a_shift_needs_no_other() -> None:
    @cd.program
    def f(x: cd.Space("n")):
        return np.linalg.norm(cd.softmax(x))

    assert cd.grad(f).source().count("np.exp(") == 1
