"""δ's of an index and an integer that a parameter holds: sums over segments, messages along edges, chosen classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import BACKENDS, converted, on

import combdiff as cd

RNG = np.random.default_rng(5)
EDGES = np.array([0, 1, 2, 3, 3]), np.array([1, 1, 0, 2, 0])


@cd.program
def segments(x: cd.Space("e"), idx: cd.Space("e", dtype=int)):
    return cd.tensor(lambda a: cd.sum(lambda e: cd.delta(idx[e], a) * x[e] ** 2), a=5)


@cd.program
def messages(
    h: cd.Space("n", "d"), source: cd.Space("e", dtype=int), target: cd.Space("e", dtype=int), W: cd.Space("d", "d")
):
    sent = cd.tensor(lambda a, k: cd.sum(lambda e: cd.delta(a, target[e]) * h[source[e], k]), a="n")
    return cd.tanh(sent @ W).sum()


@cd.program
def surprise(z: cd.Space("n", "k"), chosen: cd.Space("n", dtype=int)):
    rest = cd.tensor(lambda i: cd.log(cd.sum(lambda j: cd.exp(z[i, j]))))
    return cd.sum(lambda i, k: cd.delta(chosen[i], k) * (rest[i] - z[i, k]))


def of_segments(x: Any, idx: Any) -> Any:
    found = np.zeros(5)
    np.add.at(found, idx, x**2)
    return found


def of_messages(h: Any, source: Any, target: Any, W: Any) -> Any:
    sent = np.zeros(h.shape)
    np.add.at(sent, target, h[source])
    return np.tanh(sent @ W).sum()


def of_choices(z: Any, chosen: Any) -> Any:
    return (np.log(np.exp(z).sum(1)) - z[np.arange(len(z)), chosen]).sum()


CASES: dict[Any, tuple[Any, dict[str, Any]]] = {
    segments: (of_segments, {"x": RNG.normal(size=5), "idx": np.array([0, 4, 4, 2, 0])}),
    messages: (
        of_messages,
        {"h": RNG.normal(size=(4, 2)), "source": EDGES[0], "target": EDGES[1], "W": RNG.normal(size=(2, 2))},
    ),
    surprise: (of_choices, {"z": RNG.normal(size=(4, 3)), "chosen": np.array([0, 2, 1, 1])}),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_every_route_agrees_with_numpy(f: Any) -> None:
    by_hand, arrays = CASES[f]
    np.testing.assert_allclose(f(**arrays), by_hand(**arrays), atol=1e-12)
    cd.testing.check_routes(f, **arrays)


@pytest.mark.thorough
@pytest.mark.parametrize("f", [messages, surprise], ids=lambda f: f.name)
def test_hessians_are_differences_of_gradients(f: Any) -> None:
    _, arrays = CASES[f]
    name, gradient, step = f.parameters[0].name, cd.grad(f), 1e-6
    vector = RNG.normal(size=arrays[name].shape)
    ends = [gradient(**{**arrays, name: arrays[name] + sign * step * vector}) for sign in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(cd.hvp(f)(*arrays.values(), vector), expected, atol=1e-8)
    dense = cd.hessian(f)(**arrays)
    np.testing.assert_allclose(np.tensordot(dense, vector, vector.ndim), expected, atol=1e-8)


@pytest.mark.sample(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.name)
def test_other_libraries_agree(f: Any, backend: str) -> None:
    _, arrays = CASES[f]
    given = converted(backend, arrays.values())
    derivative = cd.grad(f) if f is not segments else cd.jacobian(f)
    for program in (f, derivative):
        np.testing.assert_allclose(np.asarray(on(backend, program)(*given)), program(**arrays), atol=1e-5)


def test_an_integer_that_is_no_index_is_refused() -> None:
    with pytest.raises(cd.CombdiffError, match=r"an index is idx\[1\] = 7, but there are the indices 0 … 4"):
        segments(np.ones(2), np.array([0, 7]))


def test_only_an_index_by_itself_is_compared_with_an_integer() -> None:
    with pytest.raises(cd.IndexingError, match=r"an integer is compared with a \+ 1"):

        @cd.program
        def f(x: cd.Space("e"), idx: cd.Space("e", dtype=int)):
            return cd.tensor(lambda a: cd.sum(lambda e: cd.delta(idx[e], a + 1) * x[e]), a=5)


def test_products_and_systems_ask_for_their_vector() -> None:
    @cd.program
    def f(x: cd.Space("n"), y: cd.Space("n")):
        return cd.sum(lambda i: y[i] * x[i] ** 4)

    H = cd.hessian(f)
    with pytest.raises(cd.ArgumentError, match="no right-hand side is given") as error:
        H.solve()
    assert "give it first, before x, y" in str(error.value)
    with pytest.raises(cd.ArgumentError, match="no vector is given"):
        H.matvec()
