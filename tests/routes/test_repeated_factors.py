"""Products in which sums and Σ's occur several times: each counts as often as it stands there.

    x (1 + x/(2 + x²))²        (Σ_k 1/(1 + x[k]²/a²))² / a²        log Σ_{k ≤ i} exp((x[k] + a)²)

Factors are compared by what they are, so that a rewriting which leaves out "the" factor must leave the others there.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import combdiff as cd

BASES = (
    *("x", "y", "a", "(x + a)", "(x - y)", "(1 + x*y)", "(x/(2 + x**2) + 1)", "(1 + y/(a**2 + y**2))"),
    *("(x - x.mean())", "x.sum()", "(x + a).sum()", "(1/(1 + x**2/a**2)).sum()", "np.exp(x - y)", "np.exp(y).sum()"),
    *("np.sqrt(1 + x**2)", "(np.outer(x, y) - np.eye(4)*a).sum(1)", "np.where(x > y, x, 2*y)", "np.maximum(x, y)"),
)
BELOW = ("a", "(1 + x**2)", "(a**2 + y**2)", "(x**2 + y**2)", "np.sqrt(x**2 + a**2)", "np.exp(x).sum()", "(x + 5*a)")


class Drawn(random.Random):
    """Texts of programs of vectors x and y and a number a."""

    def power(self, base: str) -> list[str]:
        """One to three factors that are one, as such or as a power."""
        count = self.choice((1, 2, 2, 3))
        return [f"{base}**{count}"] if count > 1 and self.random() < 0.3 else [base] * count

    def product(self) -> str:
        factors = [factor for base in self.sample(BASES, self.choice((1, 2, 2, 3))) for factor in self.power(base)]
        self.shuffle(factors)
        below = [factor for base in self.sample(BELOW, self.choice((0, 1, 1, 2))) for factor in self.power(base)]
        return " * ".join(factors) + "".join(f" / {factor}" for factor in below)

    def program(self) -> str:
        one, other = self.product(), self.product()
        return self.choice(
            (
                one,
                one,
                f"{one} {self.choice('+-')} {other}",
                f"({one}).sum() * {other}",
                f"({one} - {other}) * ({one} - {other}) * x",
                f"np.log(np.cumsum(np.exp(np.tanh({one}) * {self.choice(('(x + a) * (x + a)', 'y * y'))})))",
                f"np.log(np.exp((x + a) * (x + a) - y[:, None]).sum(1)) * ({one})",
                f"np.sqrt(1 + ({one})**2)",
                f"np.exp(-(x - y) * (x - y)) * ({one})",
            )
        )


def compare(text: str, seed: int) -> None:
    """Value and gradient, simplified or not, with those of NumPy."""
    rng = np.random.default_rng(seed)
    f: Any = eval(f"lambda x, y, a: ({text} + np.zeros(4)).sum()", {"np": np})
    f.__annotations__ = {"x": cd.Space(4), "y": cd.Space(4), "a": cd.Space()}
    program, simplify = cd.program(f), seed % 2 == 0
    arrays: dict[str, Any] = {"x": rng.normal(size=4), "y": rng.normal(size=4), "a": np.float64(0.5 + rng.random())}
    value = (cd.simplify(program) if simplify else program)(**arrays)
    assert value == pytest.approx(f(**arrays), rel=1e-9, abs=1e-10), f"{seed}: {text}"
    name = "xya"[rng.integers(3)]
    step = 1e-6 * rng.normal(size=np.shape(arrays[name]))
    ahead, behind = (f(**arrays | {name: arrays[name] + way * step}) for way in (1, -1))
    gradient = cd.grad(program, name, simplify=simplify)(**arrays)
    size = np.abs(gradient).max() * np.abs(step).max() + abs(value) * 1e-8
    close = pytest.approx((ahead - behind) / 2, rel=1e-4, abs=1e-4 * size + 1e-14)
    assert np.sum(gradient * step) == close, f"{seed}: {text}"


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 36, 6))
def test_factors_count_as_often_as_they_occur(first: int) -> None:
    for seed in range(first, first + 6):
        compare(Drawn(seed).program(), seed)


@pytest.mark.parametrize(
    "text",
    [
        "x * (1 + x/(2 + x**2))**2",  # hypotenuses multiply a sum out
        "(a * a) * (a * a) * x / (x**2 + a**2)**2",  # and have sides in products in products
        "(1/(1 + x**2/a**2)).sum() * (1/(1 + x**2/a**2)).sum() / a**2",  # a divisor goes under a Σ
        "np.log(np.cumsum(np.exp(3 * (x + a) * (x + a))))",  # exponents are multiplied out
    ],
)
def test_none_of_them_is_lost(text: str) -> None:
    compare(text, 0)
    compare(text, 1)


def test_a_power_of_a_sum_with_a_unit_matrix_is_printed_as_one() -> None:
    @cd.program
    def f(x: cd.Space("n")):  # type: ignore[valid-type]
        return cd.tensor(lambda i, j: (x[i] * cd.delta(i, j) - x[i] * x[j]) * (x[i] * cd.delta(i, j) - x[i] * x[j]))

    x = np.arange(1.0, 4.0)
    text = f.matrix()
    assert text == "(diag(x) - x·xᵀ)^∘2"
    np.testing.assert_allclose(cd.read(text, {"x": cd.Space("n")})(x), f(x))
