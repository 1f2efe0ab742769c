"""Random programs on cycles: conditions on indices, which count from 0 there, beside indices that go around.

A tensor t[i] = [i ≥ 2] … read at i − 1, −i or −1 is that of an index that has gone around: [i ≥ 2] asks for i mod n.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import (
    Lambda,
    Var,
    affine,
    apply,
    evaluate,
    function,
    indicator,
    inline_single_uses,
    let,
    mul,
)

CONDITIONS: tuple[Callable[[Any, int, Any], Any], ...] = (
    lambda i, c, n: i > c,
    lambda i, c, n: i <= c // 3,
    lambda i, c, n: i < n - 1 - c,
    lambda i, c, n: i >= n - 1 - c // 3,
    lambda i, c, n: i != c % 3,
    lambda i, c, n: i == c % 3,
)


def drawn(seed: int) -> tuple[cd.Program, cd.Space, int]:
    """A program of two vectors on a cycle, their Space, and its size."""
    random = Random(seed)
    size = random.randint(1, 5)
    domain = cd.Cyclic("n" if random.random() < 0.6 else size)
    conditions = [(random.choice(CONDITIONS), random.randint(0, 4)) for _ in range(3)]
    places = [(random.choice((1, 1, 1, -1)), random.randint(-2, 2)) for _ in range(7)]
    stages = random.randint(1, 2)

    def program(x: cd.Space(domain), y: cd.Space(domain)):
        n = x.shape[0]
        for stage in range(stages):
            holds, c = conditions[stage]
            (a, b), (e, g), (p, q) = places[3 * stage : 3 * stage + 3]
            z = x
            x = cd.tensor(
                lambda i: cd.where(holds(i, c, n), z[a * i + b] * y[e * i + g], cd.sin(z[p * i + q])),  # noqa: B023
                i=domain,
            )
        (holds, c), (a, b), w = conditions[2], places[6], x
        return cd.sum(lambda i: cd.where(holds(i, c, n), w[a * i + b] ** 2 * y[i], w[i]), i=domain)

    return cd.program(program), cd.Space(domain), size


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(40))
def test_conditions_ask_for_the_index_on_its_cycle(seed: int) -> None:
    program, space, size = drawn(seed)
    x, y = np.random.default_rng(seed).normal(size=(2, size))
    gradient, raw = cd.grad(program), cd.grad(program, simplify=False)
    scope = dict(zip(raw.term.parameters, (x, y), strict=True))
    expected = evaluate(raw.term.body, scope, {"n": size})
    slopes = [(program(x + d, y) - program(x - d, y)) / 2e-6 for d in 1e-6 * np.eye(size)]
    np.testing.assert_allclose(expected, slopes, rtol=1e-6, atol=1e-7)
    back = cd.read(str(gradient), {"x": space, "y": space})
    for found in (gradient(x, y), raw(x, y), back(x, y)):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_what_is_read_at_one_place_is_read_on_its_cycle() -> None:
    """Of t[i] = [i ≥ 1] x[i] alone t[−1] is read, twice: bound as one number it is x[n − 1], not [−1 ≥ 1] x[−1]."""
    cycle = cd.Cyclic("n")
    x, t, i = Var("x", cd.Space(cycle)), Var("t", cd.Space(cycle)), Var("i", cycle)
    last = apply(t, (affine([], -1),))
    value = Lambda((i,), mul(indicator(affine([(i, 1)], -1)), function("sin", apply(x, (i,)))))
    body = let([(t, value)], mul(last, function("cos", last)))
    scope = {x: np.array([0.3, -1.2, 0.8])}
    assert np.isclose(evaluate(body, scope, {"n": 3}), np.sin(0.8) * np.cos(np.sin(0.8)))
    assert np.isclose(evaluate(inline_single_uses(body), scope, {"n": 3}), evaluate(body, scope, {"n": 3}))
