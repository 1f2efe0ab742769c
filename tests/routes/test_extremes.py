"""Where elements are the largest, and where they are not, is what stands beside them: by every route and library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import TORCH, back, converted, double_precision, on

import combdiff as cd
from combdiff.ir.interpreter import evaluate

A = np.array([0.4, 0.8, 1.1, 0.5])
B = np.array([[0.4, 0.2, 0.6, 1.6], [0.3, 2.4, 0.5, 0.3]])
PARTS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: np.arctan2(a, 2 + b),
    lambda a, b: np.log(a) / b,
    lambda a, b: np.sqrt(a * b),
    lambda a, b: np.exp(a) * b**-2,
]
JOINED: list[Callable[[Any], Any]] = [
    lambda t: np.ptp(t, axis=-1),
    lambda t: t.max(axis=-1) * t.min(axis=-1),
    lambda t: np.concatenate([t.max(axis=0) - t[0], t.min(axis=1) / t.max(axis=1)]),
]


def program_of(part: Callable[[Any, Any], Any], join: Callable[[Any], Any]) -> cd.Program:
    @cd.program
    def f(a: cd.Space("n"), b: cd.Space("m", "n")):
        joined = join(part(a, b))
        return (joined * np.cos(joined)).sum()

    return f


@pytest.mark.thorough
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("join", JOINED)
def test_largest_and_smallest_elements_guard_the_factors_beside_them(part: Any, join: Any) -> None:
    """The conditions are told apart by opposites, which plans took for the conditions themselves."""
    f = program_of(part, join)
    cd.testing.check_routes(f, a=A, b=B)
    for simplify in (False, True):
        slopes = cd.grad(f, wrt=("a", "b"), simplify=simplify)
        for slope, name in zip(slopes(A, B), "ab", strict=True):
            np.testing.assert_allclose(slope, cd.grad(f, name)(A, B), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("library", ["jax", TORCH])
def test_on_other_libraries_too(library: str) -> None:
    slopes = cd.grad(program_of(PARTS[0], JOINED[0]), wrt=("a", "b"))
    with double_precision():
        found = back(on(library, slopes)(*converted(library, (A, B))))
    for one, other in zip(found, slopes(A, B), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x ↦ d ↦ [x[d] ≠ max_j x[j]] x[d]", [1, 0, 2]),
        ("x ↦ d ↦ [x[d] = min_j x[j]] x[d]", [1, 0, 0]),
        ("x ↦ d ↦ [x[d]² ≠ min_j x[j]²] / x[d]", [0, 1 / 3, 1 / 2]),
    ],
)
def test_what_is_not_the_largest_is_read_and_printed(text: str, expected: list[float]) -> None:
    space, x = cd.Space("n"), np.array([1.0, 3.0, 2.0])
    f = cd.read(text, {"x": space})
    assert "≠" not in text or ("≠" in str(f) and r"\neq" in f.latex())
    for program in (f, cd.simplify(f), cd.read(str(f), {"x": space})):
        np.testing.assert_allclose(program(x), expected)


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "least of padded": lambda x: np.min(np.lib.stride_tricks.sliding_window_view(np.pad(np.max(x) - x, 1), 3)),
    "largest beside": lambda x: (lambda z: np.max(np.stack([z[1:], z[:-1], z[::-1][1:]])))(
        np.pad(x - np.min(x), (2, 0))
    ),
    "above the mean": lambda x: (lambda z: np.where(z > z.mean(), z * z, 0).sum())(
        np.lib.stride_tricks.sliding_window_view(np.pad(x, (1, 2)), 2)
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("x", [[0.28, -0.07, -0.21, 0.1], [-0.3, 0.5, 1.1, -0.2], [1.0, 0.0, 1.0, -1.0]])
def test_what_windows_say_of_their_elements_is_asked_where_these_are(name: str, x: list[float]) -> None:
    """Beyond an axis neither [t = min t] nor [t ≠ min t] holds: what is read through other windows there was lost."""
    body = WINDOWS[name]

    @cd.program
    def f(x: cd.Space(4)):  # type: ignore[no-untyped-def, valid-type]
        return body(x)

    plain = cd.grad(f, simplify=False)
    meaning = evaluate(plain.term.body, {plain.parameters[0]: np.array(x)}, {})
    np.testing.assert_allclose(plain(np.array(x)), meaning, atol=1e-15)
    np.testing.assert_allclose(cd.grad(f)(np.array(x)), meaning, atol=1e-15)
