"""Strides round a cycle whose size is named: x[a·i + …], pulled back in linear work for every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import assert_reads_back

import combdiff as cd
from combdiff.ir import Delta, extent, subterms
from combdiff.ir.interpreter import evaluate

Ring = cd.Space(cd.Cyclic("n"))


@cd.program
def doubled(x: Ring, y: Ring):
    return cd.sum(lambda i: x[2 * i] ** 2 * y[i])


@cd.program
def shifted(x: Ring, y: cd.Space("b", cd.Cyclic("n"))):
    return cd.sum(lambda b, i: cd.sin(x[3 - 4 * i]) * y[b, i] * y[b, i + 1])


@cd.program
def two(x: cd.Space(cd.Cyclic("n"), cd.Cyclic("m")), y: cd.Space(cd.Cyclic("n"), cd.Cyclic("m"))):
    return cd.sum(lambda i, j: cd.exp(x[-3 * i + 1, 2 * j]) * y[i, j])


@cd.program
def both(x: cd.Space(cd.Cyclic("n"), cd.Cyclic("n")), y: Ring):
    return cd.sum(lambda i: x[2 * i, 3 * i] ** 2 * y[i])


PROGRAMS = [doubled, shifted, two, both]


def arrays_of(f: Any, n: int) -> tuple[list[Any], dict[str, int]]:
    rng, sizes = np.random.default_rng(n), {"n": n, "m": n + 1, "b": 2}
    return [rng.random([extent(axis, sizes) for axis in p.type.axes]) for p in f.parameters], sizes


@pytest.mark.parametrize("f", [doubled, shifted])
def test_the_work_is_linear(f: Any) -> None:
    gradient = cd.grad(f)
    small, large = (
        (int(gradient.cost(n=n, b=2).flops) for n in (100, 400))
        if f is shifted
        else (int(gradient.cost(n=n).flops) for n in (100, 400))
    )
    assert large < 5 * small


def test_a_long_ring() -> None:
    n = 200_000
    x, y, expected = np.linspace(0, 1, n), np.ones(n), np.zeros(n)
    np.add.at(expected, 2 * np.arange(n) % n, 2.0)
    np.testing.assert_allclose(cd.grad(doubled)(x, y), expected * x)


@cd.program
def hopping(S: cd.Space("n", cd.Cyclic("K"), cd.Cyclic("K")), U: cd.Space("n", cd.Cyclic("K")), w: cd.Space(3)):
    shifts = cd.tensor(lambda b: w[b + 1], b=cd.Symmetric(1))
    return cd.sum(lambda i, k, b: shifts[b] * cd.exp(S[i, k, k + b] * U[i, k + b]))


def test_weights_of_what_is_read_at_two_places_of_a_cycle() -> None:
    S, U, w = (np.random.default_rng(3).normal(size=shape) for shape in ((2, 5, 5), (2, 5), 3))
    cd.testing.check_grad(hopping, ("S", "U", "w"), S=S, U=U, w=w)


def test_other_indices_of_a_stride_round_a_cycle_stay() -> None:
    """A summed index that only the condition still reads is not summed before the condition is."""

    @cd.program
    def f(x: cd.Space(cd.Cyclic(3)), y: cd.Space("a", cd.Cyclic(3))):
        return cd.sum(lambda i, j: cd.sin(x[i + 2 * j]) * y[i, j])

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=3), rng.normal(size=(2, 3))
    expected = [
        np.cos(x[d]) * sum(y[i, j] for i in range(2) for j in range(3) if (i + 2 * j - d) % 3 == 0) for d in range(3)
    ]
    for simplify in (True, False):
        np.testing.assert_allclose(cd.grad(f, "x", simplify=simplify)(x, y), expected, rtol=1e-12)


EDGES = {
    "but the first": lambda i, n: i > 0,
    "but the first three": lambda i, n: i >= 3,
    "but the last": lambda i, n: i < n - 1,
    "but the last two": lambda i, n: i + 2 < n,
    "first": lambda i, n: i <= 0,
    "last": lambda i, n: i >= n - 1,
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", EDGES)
def test_conditions_at_the_edge_of_a_cycle_leave_no_sum_in_a_derivative(name: str) -> None:
    """What is read at other places is asked modulo n where it is; its δ went unsolved, and sums grew with the steps."""

    @cd.program
    def f(x: Ring, y: Ring):
        def here(z, i):
            return cd.where(EDGES[name](i, x.shape[0]), z[i] * y[i - 1], 0) + cd.sin(z[1 - i])

        first = cd.tensor(lambda i: here(x, i))
        return cd.sum(lambda i: here(first, i) * x[i + 2])

    gradient, raw = cd.grad(f), cd.grad(f, simplify=False)
    assert "Σ" not in str(gradient)
    for n in range(1, 6):
        x, y = np.random.default_rng(n).normal(size=(2, n))
        expected = evaluate(raw.term.body, dict(zip(raw.term.parameters, (x, y), strict=True)), {"n": n})
        np.testing.assert_allclose(gradient(x, y), expected, atol=1e-12)


@pytest.mark.thorough
def test_steps_around_a_cycle_are_derived_in_linear_length() -> None:
    def written(steps: int) -> int:
        @cd.program
        def f(x: Ring):
            state = x
            for _ in range(steps):
                before = state
                state = cd.tensor(lambda i: cd.where(i > 0, before[i] * before[i - 1], before[i]))  # noqa: B023  (at once)
            return state.sum()

        return len(str(cd.grad(f)))

    two, four, six = written(2), written(4), written(6)
    assert six - four <= 1.1 * (four - two)


small = st.integers(1, 7)


@given(small, small, st.integers(1, 4), st.sampled_from([(1, 1), (1, -1), (-1, 1), (2, 1), (1, 3)]), st.integers(-3, 8))
def test_windows_on_a_ring_of_any_length(
    places: int, results: int, taps: int, steps: tuple[int, int], start: int
) -> None:
    """With fewer results than places, as many or more: the δ is solved. It stayed, and all products were masked."""
    a, b = steps

    @cd.program
    def f(x: cd.Space(cd.Cyclic(places)), w: cd.Space(taps), y: cd.Space(results)):
        def window(i):
            return cd.sum(lambda k: w[k] * x[a * i + b * k + start], k=taps)

        return cd.sum(lambda i: cd.where(i >= 1, y[i] * window(i) ** 2, cd.sin(window(i))), i=results)

    gradient, raw = cd.grad(f, "x"), cd.grad(f, "x", simplify=False)
    assert all(node.lookup or len(node.free) == 1 for node in subterms(gradient.term) if isinstance(node, Delta))
    rng = np.random.default_rng(0)
    arrays = {p: rng.normal(size=size) for p, size in zip(raw.term.parameters, (places, taps, results), strict=True)}
    expected = evaluate(raw.term.body, arrays, {})
    for route in (gradient, raw, assert_reads_back(gradient.term, arrays, {})):
        np.testing.assert_allclose(route(**{p.name: one for p, one in arrays.items()}), expected, atol=1e-12)


def test_a_long_ring_of_fewer_results_takes_little_memory() -> None:
    @cd.program
    def f(x: cd.Space(cd.Cyclic(2000)), w: cd.Space(5)):
        return cd.sum(lambda i: cd.sum(lambda k: w[k] * x[i + k]) ** 3, i=1959)

    for gradient in (cd.grad(f, "x"), cd.grad(f, "x", simplify=False)):
        assert gradient.cost().peak_bytes < 1 << 20
    assert str(cd.grad(f, "x")).endswith("3 Σ_k [(d - k) mod 2000 ≤ 1958] w[k] (Σ_i w[i] x[d + i - k])²")


def test_whole_turns_round_a_ring_are_none() -> None:
    @cd.program
    def f(x: cd.Space(cd.Cyclic(6)), y: Ring):
        n = y.shape[0]
        return cd.sum(lambda d: (x[d + 7] - x[d + 1] + cd.sum(lambda k: x[d + 6 * k], k=3)) ** 2) + y[n + 1] - y[1 - n]

    assert str(cd.simplify(f)) == "(x, y) ↦ 9 Σ_d x[d]²"
