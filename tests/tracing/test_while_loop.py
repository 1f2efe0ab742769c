"""Steps as long as a condition holds: values and derivatives of the steps that are done, nan where they do not end."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from backends import converted, double_precision, on
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd

Number, Vector = cd.Space(), cd.Space("n")
LIMIT = 12


@cd.program
def fall(v: Vector, g: Number):
    """Position of what is thrown up until it is down again; the height is the last element of a tuple."""

    def step(state):
        x, speed, height = state
        return x + 0.25 * v * height, speed - g, height + 0.25 * speed

    x, speed, height = cd.while_loop(lambda state: state[2] >= 0, step, (v, 1.0, 0.0), limit=LIMIT)
    return (x * x).sum() * speed + height**2


def fallen(v: Any, g: Any) -> Any:
    """The same in a Python loop."""
    x, speed, height = v, 1.0, 0.0
    for _ in range(LIMIT):
        if height < 0:
            break
        x, speed, height = x + 0.25 * v * height, speed - g, height + 0.25 * speed
    return np.nan if height >= 0 else (x * x).sum() * speed + height**2


@cache
def gradients() -> dict[str, cd.Program]:
    return {mode: cd.jacobian(fall, ("v", "g"), mode) for mode in ("forward", "reverse")}


@pytest.mark.thorough
@given(st.floats(0.28, 1.5), st.integers(0, 99))
@settings(max_examples=examples(10), deadline=None)
def test_values_and_derivatives_are_those_of_the_steps_that_are_done(g: float, seed: int) -> None:
    v, h = np.random.default_rng(seed).normal(size=3), 1e-6
    assert fall(v, g) == pytest.approx(fallen(v, g), rel=1e-12)
    at_edge = any(np.isnan(fallen(v, g + d)) for d in (-h, h)) or abs(fallen(v, g + h) - fallen(v, g - h)) > 1e-3
    if at_edge:  # one step more or less
        return
    by_v = [(fallen(v + h * e, g) - fallen(v - h * e, g)) / (2 * h) for e in np.eye(3)]
    by_g = (fallen(v, g + h) - fallen(v, g - h)) / (2 * h)
    for mode, derivative in gradients().items():
        found = derivative(v, g)
        np.testing.assert_allclose(found[0], by_v, rtol=1e-6, atol=1e-8, err_msg=mode)
        np.testing.assert_allclose(found[1], by_g, rtol=1e-6, atol=1e-8, err_msg=mode)


def test_a_loop_that_does_not_end_is_nan_and_so_are_its_derivatives() -> None:
    v = np.ones(3)
    assert np.isnan(fall(v, 0.01))
    for derivative in gradients().values():
        assert all(np.isnan(part).all() for part in derivative(v, 0.01))


def test_the_number_of_steps_may_be_named() -> None:
    @cd.program
    def halved(x: Number, u: cd.Space("T")):
        return cd.while_loop(lambda y: y > 1, lambda y: y / 2, x, limit="T") + 0 * u.sum()

    assert halved(40.0, np.zeros(9)) == 0.625
    assert cd.grad(halved, "x")(40.0, np.zeros(9)) == 1 / 64


@pytest.mark.thorough
def test_numpys_loop_over_the_states_ends_with_the_condition() -> None:
    @cd.program
    def halved(x: Vector, a: Number):
        return cd.while_loop(lambda y: (y * y).sum() > 1, lambda y: y * a, x, limit=3000).sum()

    assert "break" in halved.source()
    x, arguments = np.array([40.0, 3.0]), {"a": 0.5}
    steps = int(np.ceil(np.log2(np.hypot(*x))))
    assert halved(x, **arguments) == 43 * 0.5**steps
    np.testing.assert_allclose(cd.grad(halved)(x, **arguments), [0.5**steps] * 2)
    assert np.isclose(cd.grad(halved, "a")(x, **arguments), 43 * steps * 0.5 ** (steps - 1))
    limited = cd.grad(halved, "a").compile(memory_limit="120KB")
    assert np.isclose(limited(x, **arguments), 43 * steps * 0.5 ** (steps - 1))


@cd.program
def halvings(x: Number, a: Number):
    """x·aⁿ for the first n at which it is below 1, times the sum of all before."""
    y, count = cd.while_loop(lambda s: s[0] > 1, lambda s: (a * s[0], s[1] + s[0]), (x, 0.0), limit=10**6)
    return y * count


def test_tangents_move_with_the_states_and_keep_none_of_them() -> None:
    """Forward, values and derivatives are one loop that ends with its condition, on JAX a `lax.while_loop`."""
    tangent = cd.pushforward(halvings, "a")
    h = 1e-6
    difference = (halvings(40.0, 0.5 + h) - halvings(40.0, 0.5 - h)) / (2 * h)
    assert tangent(40.0, 0.5, 1.0) == pytest.approx(difference, rel=1e-7)
    assert tangent.source().count("in range(") == 1
    assert "step by step" not in tangent.source()
    assert "jax.lax.scan" not in tangent.source("jax")
    with double_precision():
        found = on("jax", tangent)(*converted("jax", map(np.asarray, (40.0, 0.5, 1.0))))
    assert float(found) == pytest.approx(tangent(40.0, 0.5, 1.0), rel=1e-12)


def test_the_steps_of_a_loop_are_those_where_its_condition_holds() -> None:
    """The condition stands at the head of a step, and nothing in it is chosen by it; its derivative has the same."""
    assert "where" not in halvings.source().partition("break")[0]
    for program in (halvings, cd.pushforward(halvings, "a")):
        text = program.source("jax")
        step = text[text.index("_step(carry)") : text.index("jax.lax.while_loop")]
        assert "where" not in step
        assert "logical_not" not in step


def test_several_conditions_end_a_loop_and_one_of_another_number_does_not() -> None:
    @cd.program
    def path(x: Number, u: cd.Space("T")):
        def step(y, s):
            return cd.where(y > 1, cd.where(y < 9, y * y - s, y), y), None

        return cd.scan(step, x, u)[0]

    @cd.program
    def turned(x: Number, u: cd.Space("T")):
        return cd.scan(lambda y, s: (cd.where(s > 1, y * y, y), None), x, u)[0]

    u = np.array([0.5, 2.0, 0.5, 0.5, 3.0])
    assert path.source().count("break") == 1
    assert "break" not in turned.source()
    assert "while_loop" not in path.source("jax")
    assert turned(2.0, u) == 16
    assert path(2.0, u) == 10.25
    assert path(1.5, u) == (1.75**2 - 2) ** 2 - 0.5
    assert path(0.5, u) == 0.5


def test_what_needs_all_states_keeps_them_beside_a_tangent() -> None:
    """The states of all steps are asked for: the loop and its tangent stay apart."""

    @cd.program
    def path(x: Number):
        return cd.scan(lambda y, _: (cd.where(y > 1, y * cd.sin(y), y), y * y), x, length=4)[1]

    tangent, h = cd.pushforward(path, "x"), 1e-6
    difference = (path(2.0 + h) - path(2.0 - h)) / (2 * h)
    np.testing.assert_allclose(tangent(2.0, 1.0), difference, rtol=1e-6)


def test_a_scan_that_comes_to_rest_by_a_comparison_has_all_of_its_states() -> None:
    @cd.program
    def path(x: Number):
        last, ys = cd.scan(lambda y, _: (cd.where(y > 1, y / 2, y), cd.where(y > 1, 2 * y, -y)), x, length=7)
        return last, ys

    last, ys = path(5.0)
    assert last == 0.625
    np.testing.assert_array_equal(ys, [10, 5, 2.5, -0.625, -0.625, -0.625, -0.625])
    back = cd.grad(cd.program(path_sum), "x")
    assert back(5.0) == 2 + 1 + 0.5 - 4 / 8


def path_sum(x: Number):
    return cd.scan(lambda y, _: (cd.where(y > 1, y / 2, y), cd.where(y > 1, 2 * y, -y)), x, length=7)[1].sum()


REFUSED = {
    "no function": (lambda x: cd.while_loop(True, lambda y: y, x, 3), cd.TraceError, "as its condition, not True"),
    "an array": (
        lambda x: cd.while_loop(lambda y: y > 1, lambda y: y, x, 3),
        cd.TraceError,
        "of a tensor compare a sum or its largest element",
    ),
    "a number": (
        lambda x: cd.while_loop(lambda y: y.sum(), lambda y: y, x, 3),
        cd.TraceError,
        "the condition of cd.while_loop gives",
    ),
    "another form": (
        lambda x: cd.while_loop(lambda y: y.sum() > 1, lambda y: (y, y), x, 3),
        cd.TypeMismatchError,
        "gives a carry (·, ·), but takes one ·",
    ),
    "no limit": (lambda x: cd.while_loop(lambda y: y.sum() > 1, lambda y: y, x, -1), cd.TypeMismatchError, "-1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_misuse_is_told(name: str) -> None:
    loop, kind, message = REFUSED[name]

    def used(x: Vector):
        return cd.sum(lambda i: loop(x)[i])

    with pytest.raises(kind) as caught:
        cd.program(used)
    assert message in str(caught.value)
