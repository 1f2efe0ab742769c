"""Derivatives do not depend on the letters of indices: programs that are equal up to them have equal derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd

Wheel = cd.Space(cd.Cyclic("n"))
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "correlation": (
        "cd.sum(lambda {0}, {1}: x[{0} + {1}] ** 2 * w[{1}] * v[{0}])",
        {"x": cd.Space(9), "w": cd.Space(3), "v": cd.Space(7)},
    ),
    "self": (
        "cd.sum(lambda {0}, {1}: x[{0} + {1}] * w[{1}] * w[{0}] * v[{0}])",
        {"x": cd.Space(5), "w": cd.Space(3), "v": cd.Space(3)},
    ),
    "image": (
        "cd.sum(lambda {0}, {1}, {2}, {3}: x[{0} + {2}, 2 * {1} + {3}] * w[{2}, {3}] * v[{0}, {1}])",
        {"x": cd.Space(4, 7), "w": cd.Space(2, 3), "v": cd.Space(3, 3)},
    ),
    "thrice": (
        "cd.sum(lambda {0}, {1}, {2}: cd.sin(x[{0} + 2 * {1} + {2}]) * w[{2}] * v[{0}] * y[{1}])",
        {"x": cd.Space(9), "w": cd.Space(3), "v": cd.Space(3), "y": cd.Space(3)},
    ),
    "wheel": (
        "cd.sum(lambda {0}, {1}: x[{0} + {1}] * w[{1}] * v[{0}] * w[{0} + 1])",
        {"x": cd.Space(cd.Cyclic(4)), "w": cd.Space(cd.Cyclic(4)), "v": cd.Space(cd.Cyclic(4))},
    ),
    "selection": (
        "cd.sum(lambda {0}, {1}, {2}, {3}: cd.delta({0} + {1}, {2} + {3}) * x[{0}, {1}, {2}, {3}] * u[{0}] * v[{1}] "
        "* u[{2}] * v[{3}])",
        {"x": cd.Space(3, 3, 3, 3), "u": cd.Space(3), "v": cd.Space(3)},
    ),
}
LETTERS = ["ijkl", "lkji", "qbzc"]


def written(name: str, letters: str) -> Any:
    """The program with its indices called by these letters."""
    body, spaces = PROGRAMS[name]
    scope: dict[str, Any] = {"cd": cd, "spaces": spaces}
    signature = ", ".join(f"{parameter}: spaces[{parameter!r}]" for parameter in spaces)
    exec(f"def f({signature}):\n    return {body.format(*letters)}", scope)
    return cd.program(scope["f"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_equal_programs_have_equal_derivatives(name: str) -> None:
    first = written(name, LETTERS[0])
    rng = np.random.default_rng(0)
    arrays = {p: rng.standard_normal([getattr(a, "size", a) for a in s.axes]) for p, s in PROGRAMS[name][1].items()}
    for wrt in arrays:
        cd.testing.check_grad(first, wrt, **arrays)
    gradients, products = ({wrt: d(first, wrt=wrt) for wrt in arrays} for d in (cd.grad, cd.hvp))
    for letters in LETTERS[1:]:
        other = written(name, letters)
        assert other == first
        for wrt in arrays:
            assert cd.grad(other, wrt=wrt) == gradients[wrt], (letters, wrt)
            assert cd.hvp(other, wrt=wrt) == products[wrt], (letters, wrt)


def test_the_letters_that_are_left_are_those_of_the_user() -> None:
    for letters in LETTERS:
        k = letters[1]
        shown = str(cd.grad(written("correlation", letters), wrt="x"))
        assert shown == f"(x, w, v) ↦ d ↦ 2 x[d] Σ_{{{k}=max(0, d - 6)}}^{{min(2, d)}} v[d - {k}] w[{k}]"
