"""Random programs of softmax, log-sum-exp, norms and variances keep their digits at large and small numbers.

    logsumexp(np.where(m > 0, softmax(x) - x, -inf))        (x - np.mean(x)) / np.std(x)        log1p(exp(2 y))

Value, gradient and Hessian-vector product against mpmath with 120 digits. An error counts where it is beyond
what the rounding of the arguments alone makes of the exact result.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

mpmath = pytest.importorskip("mpmath")

Numbers = list[Any]
Environment = dict[str, Any]
Drawn = tuple[str, Callable[[Environment], Any]]
SIZES = (1, 1, 30, 800, 1e5, 1e-5)  # exponents beside which one of a softmax keeps its digits
DIGITS = 120
ENTRIES = 3
Vector = cd.Space("n")


def logsumexp(v: Numbers) -> Any:
    most = max(v)
    return most + mpmath.log(sum(mpmath.exp(a - most) for a in v))


def softmax(v: Numbers) -> Numbers:
    whole = logsumexp(v)
    return [mpmath.exp(a - whole) if a > -mpmath.inf else mpmath.mpf(0) for a in v]


def centred(v: Numbers) -> Numbers:
    return [a - sum(v) / len(v) for a in v]


def norm(v: Numbers) -> Any:
    return mpmath.sqrt(sum(a * a for a in v))


def std(v: Numbers) -> Any:
    return norm(centred(v)) / mpmath.sqrt(len(v))


def softplus(a: Any) -> Any:
    return max(a, 0) + mpmath.log1p(mpmath.exp(-abs(a)))


def sigmoid(a: Any) -> Any:
    return mpmath.exp(-softplus(-a))


def tanh(a: Any) -> Any:
    down = mpmath.exp(-2 * abs(a))
    return mpmath.sign(a) * (1 - down) / (1 + down)


def kept(v: Numbers, mask: Numbers, other: Any) -> Numbers:
    return [a if there else other for a, there in zip(v, mask, strict=True)]


OF_VECTORS: dict[str, Callable[[Numbers, Environment], Numbers]] = {
    "cd.softmax({0})": lambda v, _: softmax(v),
    "(1/(1 + np.exp(-{0})))": lambda v, _: [sigmoid(a) for a in v],
    "np.log1p(np.exp({0}))": lambda v, _: [softplus(a) for a in v],
    "np.tanh({0})": lambda v, _: [tanh(a) for a in v],
    "({0}/np.linalg.norm({0}))": lambda v, _: [a / norm(v) for a in v],
    "(({0} - np.mean({0}))/np.std({0}))": lambda v, _: [a / std(v) for a in centred(v)],
    "({0} - cd.logsumexp({0}))": lambda v, _: [a - logsumexp(v) for a in v],
    "np.where(m > 0, {0}, 0)": lambda v, e: kept(v, e["m"], mpmath.mpf(0)),
    "cd.softmax(np.where(m > 0, {0}, -np.inf))": lambda v, e: softmax(kept(v, e["m"], -mpmath.inf)),
}
TO_NUMBERS: dict[str, Callable[[Numbers, Environment], Any]] = {
    "cd.logsumexp({0})": lambda v, _: logsumexp(v),
    "cd.logsumexp(np.where(m > 0, {0}, -np.inf))": lambda v, e: logsumexp(kept(v, e["m"], -mpmath.inf)),
    "np.linalg.norm({0})": lambda v, _: norm(v),
    "np.var({0})": lambda v, _: std(v) ** 2,
    "np.std({0})": lambda v, _: std(v),
    "np.sum({0}*w)": lambda v, e: mpmath.fdot(v, e["w"]),
    "np.sum(cd.softmax({0})*w)": lambda v, e: mpmath.fdot(softmax(v), e["w"]),
    "np.log(np.sum(np.exp({0})*w**2))": lambda v, e: logsumexp(
        [a + 2 * mpmath.log(abs(b)) for a, b in zip(v, e["w"], strict=True)]
    ),
    "np.sum(np.log(1/(1 + np.exp(-{0})))*w)": lambda v, e: -mpmath.fdot([softplus(-a) for a in v], e["w"]),
    "np.sum(np.logaddexp({0}, w)*w)": lambda v, e: mpmath.fdot(
        [b + softplus(a - b) for a, b in zip(v, e["w"], strict=True)], e["w"]
    ),
}


class Writer(random.Random):
    """Texts of programs of x, y, w and m, and what they are of mpmath's numbers."""

    def vector(self, depth: int) -> Drawn:
        if not depth or self.random() < 0.2:
            name, factor = self.choice("xy"), self.choice((1, 1, 2, -1, 0.5, -3))
            return f"({factor}*{name})", lambda e: [factor * a for a in e[name]]
        text, inner = self.vector(depth - 1)
        form, function = self.choice(list(OF_VECTORS.items()))
        return form.format(text), lambda e: function(inner(e), e)

    def number(self, depth: int) -> Drawn:
        text, inner = self.vector(depth)
        form, function = self.choice(list(TO_NUMBERS.items()))
        return form.format(text), lambda e: function(inner(e), e)

    def program(self) -> Drawn:
        text, number = self.number(self.choice((1, 1, 2)))
        kind = self.choice(("itself", "itself", "sigmoid", "difference", "logaddexp"))
        if kind == "itself":
            return text, number
        if kind == "sigmoid":
            return f"(1/(1 + np.exp(-{text})))", lambda e: sigmoid(number(e))
        more, other = self.number(1)
        if kind == "difference":
            return f"({text} - {more})", lambda e: number(e) - other(e)
        return f"np.logaddexp({text}, {more})", lambda e: other(e) + softplus(number(e) - other(e))


def moved(e: Environment, name: str, by: Numbers, step: Any) -> Environment:
    return {**e, name: [a + step * b for a, b in zip(e[name], by, strict=True)]}


def exact(f: Callable[[Environment], Any], name: str, move: Numbers, step: Any) -> dict[str, Callable[..., Numbers]]:
    """Value, gradient and Hessian-vector product, by central differences with more digits than steps take away."""
    units = [[mpmath.mpf(i == j) for j in range(ENTRIES)] for i in range(ENTRIES)]
    fine = step * mpmath.mpf(10) ** -25

    def gradient(e: Environment) -> Numbers:
        return [(f(moved(e, name, u, fine)) - f(moved(e, name, u, -fine))) / (2 * fine) for u in units]

    def product(e: Environment) -> Numbers:
        ends = (gradient(moved(e, name, move, step)), gradient(moved(e, name, move, -step)))
        return [(one - other) / (2 * step) for one, other in zip(*ends, strict=True)]

    return {"value": lambda e: [f(e)], "gradient": gradient, "product": product}


def rounded(e: Environment, seed: int) -> Environment:
    """The same numbers, each an ulp away."""
    draw = random.Random(seed)
    return {
        name: v if name == "m" else [a * (1 + draw.choice((-1, 1)) * mpmath.mpf(2) ** -52) for a in v]
        for name, v in e.items()
    }


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of 0/0 where all that counts is below the smallest number
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_keep_their_digits(seed: int) -> None:
    draw, rng = Writer(seed), np.random.default_rng(seed)
    text, f = draw.program()
    body = eval(f"lambda x, y, w, m: {text}", {"np": np, "cd": cd})
    body.__annotations__ = dict.fromkeys("xywm", Vector)
    body.__name__ = "drawn"
    program = cd.program(body)
    name = "x" if "x)" in text else "y"
    sizes = {"x": draw.choice(SIZES), "y": draw.choice(SIZES), "w": 1.0}
    arrays = {key: rng.normal(size=ENTRIES) * size for key, size in sizes.items()}
    arrays["m"] = rng.permutation([1.0, 1.0, 0.0])
    move = rng.normal(size=ENTRIES) * sizes[name]
    with mpmath.workdps(DIGITS):
        e: Environment = {key: [mpmath.mpf(float(a)) for a in array] for key, array in arrays.items()}
        step = mpmath.mpf(10) ** -25 / max(1, mpmath.mpf(sizes[name]))
        routes = exact(f, name, [mpmath.mpf(float(a)) for a in move], step)
        for what, found in (
            ("value", program(**arrays)),
            ("gradient", cd.grad(program, name)(**arrays)),
            ("product", cd.hvp(program, name)(*(arrays[key] for key in "xywm"), move)),
        ):
            expected = routes[what](e)
            others = [routes[what](rounded(e, 7 * seed + n)) for n in range(2)]
            scale = max(1, *map(abs, expected))
            for place, (one, value) in enumerate(zip(np.atleast_1d(found), expected, strict=True)):
                lost = max(abs(other[place] - value) for other in others)
                if abs(value) > mpmath.mpf(10) ** 290 or lost > abs(value) / 100 + mpmath.mpf(10) ** -300:
                    continue  # beyond doubles, or no digit of it is determined by the arguments
                allowed = 1000 * lost + abs(value) / 10**9 + scale / 10**11
                assert abs(mpmath.mpf(float(one)) - value) <= allowed, (text, sizes, what, one, float(value))
