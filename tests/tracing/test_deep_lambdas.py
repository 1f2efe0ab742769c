"""Sums of hundreds of terms and loops of hundreds of steps inside a lambda: no expression is too deep."""

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.substitution import _Substitution

Vector = cd.Space("n")
STEPS = 130


@cd.program
def terms(x: Vector):
    return cd.sum(lambda i: sum(np.sin(k * x[i]) for k in range(STEPS)))


def stepped(value):
    for _ in range(STEPS):
        value = value + np.sin(value) / STEPS
    return value


@cd.program
def steps(x: Vector):
    return cd.sum(lambda i: stepped(x[i]))


def loop(x):
    return stepped(x).sum()


def added(x):
    return sum(np.sin(k * x).sum() for k in range(STEPS))


CASES = [pytest.param(terms, added, id="terms"), pytest.param(steps, loop, id="steps", marks=pytest.mark.thorough)]


@pytest.mark.parametrize(("program", "function"), CASES)
def test_what_is_nested_deeply_in_a_lambda_has_its_value_and_its_gradient(program, function):
    x = np.array([0.3, 0.7])
    value, gradient = cd.value_and_grad(program, simplify=False)(x)
    turned = [function(x + 1e-30j * e).imag / 1e-30 for e in np.eye(2)]
    assert value == pytest.approx(function(x), rel=1e-12)
    np.testing.assert_allclose(gradient, turned, rtol=1e-10)


def test_tracing_makes_terms_in_proportion_to_the_steps():
    """The index of a lambda is renamed once for all the names that the user gave to steps."""

    def visited(steps):
        def body(i, x):
            value = x[i]
            for _ in range(steps):
                value = value + np.sin(value)
            return value

        def function(x: Vector):
            return cd.sum(lambda i: body(i, x))

        visits = 0

        def counted(self, term, replacement):
            nonlocal visits
            visits += 1
            return run(self, term, replacement)

        run = _Substitution.run
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_Substitution, "run", counted)
            cd.program(function)
        return visits

    assert visited(80) < 2.5 * visited(40)
