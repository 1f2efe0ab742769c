"""Random quotients, logarithms and roots of exponentials have the values and slopes that NumPy gives them.

    exp(1 − x + y) / (2 + exp(0.5 z − |x|))²          log(z² + exp(2 x))

What keeps them from overflowing at large numbers changes none at these.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import combdiff as cd


class Drawn(random.Random):
    """Texts of programs of x, y and z."""

    def exponent(self) -> str:
        factor, more = self.choice((1, 1, 1, -1, 2, -2, 0.5, -1.5)), self.choice("xyz")
        shifted = (
            "",
            "",
            "",
            f" + {self.choice((-3, -1, 0.5, 2, 3))}",
            f" - {more}**2",
            f" - np.abs({more})",
            f" + {more}",
        )
        return f"{factor} * {self.choice('xyz')}{self.choice(shifted)}"

    def exponential(self) -> str:
        return f"np.exp({self.exponent()})"

    def term(self) -> str:
        own, weight = self.exponential(), self.choice(("z**2", "2", "(1 + y**2)"))
        over_pairs = "np.exp(x[:, None] * y[None, :] - x[:, None]).sum(1)"
        return self.choice((own, own, own, f"{own} * {weight}", f"{own}.sum()", over_pairs, weight))

    def denominator(self) -> str:
        terms = [self.choice(("1", "2", "0.5", self.exponential())), self.exponential()]
        return f"({' + '.join([*terms, *(self.term() for _ in range(self.randint(0, 1)))])})"

    def quotient(self) -> str:
        one, other = self.term(), self.term()
        numerator = self.choice((one, one, f"({one} + {other})", f"({one} - {other})", f"{one} * {other}", "1"))
        return f"{numerator} / {self.denominator()}{self.choice(('', '', '**2', '**3'))}"

    def program(self) -> str:
        one, other = self.quotient(), self.quotient()
        below, above = self.denominator(), self.denominator()
        return self.choice(
            (
                one,
                one,
                f"{one} {self.choice('+-*')} {other}",
                f"np.log({below}) - {self.exponent()}",
                f"np.log({above} / {below})",
                f"1 / (1 + ({one})**2)",
                f"np.sqrt({above}) / {below}",
                f"np.tanh({self.exponent()}) * {one}",
                f"np.where(x > 0, {one}, {other})",
            )
        )


def compare(seed: int) -> None:
    drawn, rng = Drawn(seed), np.random.default_rng(seed)
    text = drawn.program()
    f: Any = eval(f"lambda x, y, z: ({text}).sum()", {"np": np})
    f.__annotations__ = dict.fromkeys("xyz", cd.Space("n"))
    program = cd.program(f)
    arrays = dict(zip("xyz", rng.normal(size=(3, 4)) * drawn.choice((0.5, 1, 2)), strict=True))
    assert program(**arrays) == pytest.approx(f(**arrays), rel=1e-8, abs=1e-10), f"seed {seed}: {text}"
    name, step = drawn.choice("xyz"), 1e-5 * rng.normal(size=4)
    gradient = cd.grad(program, name, simplify=drawn.random() < 0.3)(**arrays)
    ahead, behind = (f(**arrays | {name: arrays[name] + way * step}) for way in (1, -1))
    size = np.abs(gradient).max() * np.abs(step).max() + abs(f(**arrays)) * 1e-9
    assert gradient @ step == pytest.approx((ahead - behind) / 2, rel=1e-4, abs=1e-4 * size + 1e-14), f"{seed}: {text}"


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", range(0, 240, 6))
def test_quotients_of_exponentials(first: int) -> None:
    for seed in range(first, first + 6):
        compare(seed)
