"""What is read at parts of an index, in print: quotients, remainders, and digits of more than two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import combdiff as cd

Shape = tuple[int, ...]
Body = Callable[[Any, Any], Any]
RNG = np.random.default_rng(3)

SLOPES: dict[str, tuple[Shape, Shape, Body, str]] = {
    "first": ((8,), (2,), lambda x, w: x.reshape(2, 2, 2) ** 2 * w[:, None, None], "2 x[d] w[⌊d/4⌋]"),
    "middle": ((12,), (3,), lambda x, w: x.reshape(2, 3, 2) ** 2 * w[:, None], "2 x[d] w[⌊d/2⌋ mod 3]"),
    "last": ((8,), (2,), lambda x, w: x.reshape(2, 2, 2) ** 2 * w, "2 x[d] w[d mod 2]"),
    "none": ((8,), (), lambda x, w: x.reshape(2, 2, 2) ** 2 * w, "2 w x[d]"),
    "two": ((8,), (2, 2), lambda x, w: x.reshape(2, 2, 2) ** 2 * w[:, None, :], "2 x[d] w[⌊d/4⌋,d mod 2]"),
    "turned": (
        (8,),
        (),
        lambda x, w: x.reshape(2, 2, 2) * np.flip(x.reshape(2, 2, 2), 1),
        "2 x[d - 4 (⌊d/2⌋ mod 2) + 2]",
    ),
    "blocks": ((12,), (), lambda x, w: (x - x.reshape(6, 2).mean(1).repeat(2)) ** 2, "2 x[d] - Σ_{j<2} x[j + 2 ⌊d/2⌋]"),
    "pooled": (
        (12,),
        (),
        lambda x, w: x.reshape(6, 2).max(1),
        "[x[d] = max_{j<2} x[j + 2 ⌊d/2⌋]] / maxima_{j<2} x[j + 2 ⌊d/2⌋]",
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_are_read_at_digits(name: str) -> None:
    shape, other, body, shown = SLOPES[name]

    def energy(x, w):  # type: ignore[no-untyped-def]
        return body(x, w).sum()

    energy.__annotations__ = {"x": cd.Space(*shape), "w": cd.Space(*other)}
    f = cd.program(energy)
    slope = cd.grad(f, "x")
    assert str(slope).partition("↦ ")[2].partition("↦ ")[2] == shown
    x, w = RNG.normal(size=shape), RNG.normal(size=other)
    assert cd.testing.check_grad(f, "x", x=x, w=w) < 1e-6
    np.testing.assert_allclose(cd.read(str(slope), energy.__annotations__)(x, w), slope(x, w), rtol=1e-12)


VALUES: dict[str, tuple[Shape, Callable[[Any], Any], str]] = {
    "ravel": ((2, 3, 4), lambda x: x.ravel(), "i<24 ↦ x[⌊i/12⌋,⌊i/4⌋ mod 3,i mod 4]"),
    "split": ((6, 4), lambda x: x.reshape(2, 3, 4), "(i<2, j<3, k) ↦ x[3i + j,k]"),
    "repeat of repeat": ((3,), lambda x: x.repeat(3).repeat(2), "i<18 ↦ x[⌊i/6⌋]"),
    "repeat of roll of repeat": (
        (4,),
        lambda x: np.roll(x.repeat(2), 2).repeat(3),
        "i<24 ↦ x[⌊((⌊i/3⌋ - 2) mod 8)/2⌋]",
    ),
    "tile of repeat": ((3,), lambda x: np.tile(x.repeat(2), 3), "i<18 ↦ x[⌊(i mod 6)/2⌋]"),
    "rounded numbers": ((3,), lambda x: np.floor_divide(2 * x, 3), "i ↦ ⌊2 x[i]/3⌋"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_read_at_digits(name: str) -> None:
    shape, move, shown = VALUES[name]

    def moved(x):  # type: ignore[no-untyped-def]
        return move(x)

    moved.__annotations__ = {"x": cd.Space(*shape)}
    f = cd.program(moved)
    x = RNG.normal(size=shape)
    assert str(f) == f"x ↦ {shown}"
    np.testing.assert_array_equal(f(x), move(x))
    np.testing.assert_array_equal(cd.read(str(f), moved.__annotations__)(x), move(x))


def test_the_square_of_a_sum_over_digits_stays_a_square() -> None:
    """The sum in it is one factor that occurs twice."""

    @cd.program
    def energy(x: cd.Space(4)):
        return (np.flip(x.reshape(2, 2).T, 0).reshape(-1) ** 3).sum()

    x = RNG.normal(size=4)
    slope = cd.grad(energy)
    np.testing.assert_allclose(cd.read(str(slope), {"x": cd.Space(4)})(x), 3 * x**2, rtol=1e-12)
    np.testing.assert_allclose(slope(x), 3 * x**2, rtol=1e-12)


@pytest.mark.parametrize("written", ["x[i/2]", "x[(i/2) mod 3]", "[i mod 2 = 0] x[(i/2) mod 3]"])
def test_what_is_read_between_elements_is_0(written: str) -> None:
    """Of what is divided around an axis NumPy was asked for elements at floats."""
    f = cd.read(f"x ↦ i<6 ↦ {written}", {"x": cd.Space(6)})
    np.testing.assert_array_equal(f(np.arange(6.0) + 1), [1, 0, 2, 0, 3, 0])


def test_what_is_divided_twice_is_divided_once() -> None:
    """It was 0 for an odd i."""
    f = cd.read("x ↦ i<12 ↦ x[⌊(i/2)/3⌋]", {"x": cd.Space(2)})
    assert str(f) == "x ↦ i<12 ↦ x[⌊i/6⌋]"
    np.testing.assert_array_equal(f(np.array([1.0, 2.0])), np.repeat([1, 2], 6))


def test_conditions_of_other_indices_say_which_integers_are_read() -> None:
    """With d < 12 and 2i < 3d an i of 17 is not met, where x has no element; without, it is refused."""
    spaces = {"x": cd.Space(12)}
    shown = "x ↦ d<12 ↦ Σ_{i=max(0, ⌈(3d - 3)/2⌉)}^{⌊(3d - 1)/2⌋} (x[⌊2i/3⌋ + 1] + 1)²"
    x = RNG.normal(size=12)
    expected = [sum((x[2 * i // 3 + 1] + 1) ** 2 for i in range(17) if 3 * d - 3 <= 2 * i < 3 * d) for d in range(12)]
    np.testing.assert_allclose(cd.read(shown, spaces)(x), expected)
    with pytest.raises(cd.IndexingError, match="axis 0 of x is read at"):
        cd.read("x ↦ i<18 ↦ x[⌊2i/3⌋ + 1]", spaces)(x)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (lambda A, x, at: (A / np.sum(A + 2, axis=1, keepdims=True)).reshape(-1), "Σ_k (2 + A[⌊i/4⌋,k])"),
        (lambda A, x, at: (A / np.linalg.norm(A, axis=0)).reshape(-1), "Σ_k A[k,i mod 4]²"),
        (lambda A, x, at: (x * np.exp(A.sum(1)))[at], "Σ_j A[at[i],j]"),
    ],
)
def test_sums_inside_keep_their_own_indices(written: Callable[..., Any], shown: str) -> None:
    """In matrix notation, where short definitions are written out, digits of the index around them stood there."""
    spaces = {"A": cd.Space(4, 4), "x": cd.Space(4), "at": cd.Space(3, dtype=int)}
    written.__annotations__ = spaces
    program = cd.program(written)
    text = program.matrix()
    assert shown in text
    given = (RNG.normal(size=(4, 4)), RNG.normal(size=4), np.array([2, 0, 3]))
    np.testing.assert_allclose(cd.read(text, spaces)(*given), written(*given))
