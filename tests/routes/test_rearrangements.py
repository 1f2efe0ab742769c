"""Arrays laid out anew in many steps, as NumPy's users do: each element is one element of what was given."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import combdiff as cd

Array = np.ndarray[Any, Any]
Move = Callable[[Any], Any]
MOST = 60  # elements


def _divisors(n: int) -> list[int]:
    return [d for d in range(2, n + 1) if n % d == 0] or [1]


@st.composite
def moves(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[str, Move]:
    """A move of an array of that shape, and how it is written."""
    axis, size = draw(st.integers(0, len(shape) - 1)), math.prod(shape)
    kinds = ["reshape", "transpose", "flip", "roll", "slice", "repeat", "tile"]
    kind = draw(st.sampled_from(kinds[: None if size <= MOST else -2]))
    if kind == "reshape":
        one = draw(st.sampled_from(_divisors(size)))
        two = draw(st.sampled_from(_divisors(size // one)))
        return f".reshape({one}, {two}, -1)", lambda x: x.reshape(one, two, -1)
    if kind == "transpose":
        order = draw(st.permutations(range(len(shape))))
        return f".transpose({order})", lambda x: x.transpose(order)
    if kind == "flip":
        return f".flip({axis})", lambda x: np.flip(x, axis)
    if kind == "roll":
        shift = draw(st.integers(-2, 3))
        return f".roll({shift}, {axis})", lambda x: np.roll(x, shift, axis)
    if kind == "slice":
        start, step = draw(st.integers(0, 1 if shape[axis] > 2 else 0)), draw(st.integers(1, 2))
        key = (*(slice(None),) * axis, slice(start, None, step))
        return f"[{key}]", lambda x: x[key]
    count = draw(st.integers(2, 3))
    if kind == "repeat":
        return f".repeat({count}, {axis})", lambda x: np.repeat(x, count, axis)
    return f".ravel().tile({count})", lambda x: np.tile(x.reshape(-1), count)


@st.composite
def rearranged(draw: st.DrawFn) -> tuple[int, str, Move]:
    """So many elements in a row, and up to four moves of them."""
    size = draw(st.sampled_from([4, 6, 8, 12, 24, 30]))
    shown, chain, shape = "x", list[Move](), (size,)
    for _ in range(draw(st.integers(1, 4))):
        written, move = draw(moves(shape))
        shown, shape = shown + written, move(np.zeros(shape)).shape
        chain.append(move)

    def all_moves(x: Any) -> Any:
        for move in chain:
            x = move(x)
        return x

    return size, shown, all_moves


@given(rearranged())
def test_every_element_is_found(case: tuple[int, str, Move]) -> None:
    """In values, in slopes, and in what is read back from either print."""
    size, shown, move = case
    places = move(np.arange(size))
    rng = np.random.default_rng(size)
    x, w = rng.normal(size=size), rng.normal(size=places.shape)

    def moved(x):  # type: ignore[no-untyped-def]
        return move(x)

    def energy(x, w):  # type: ignore[no-untyped-def]
        return (move(x) ** 3 * w).sum() + np.sin(move(x)).sum()

    moved.__annotations__ = {"x": cd.Space(size)}
    spaces = energy.__annotations__ = {"x": cd.Space(size), "w": cd.Space(*places.shape)}
    f, slope = cd.program(moved), cd.grad(cd.program(energy), "x")
    np.testing.assert_allclose(f(x), x[places], err_msg=shown)
    np.testing.assert_allclose(cd.read(str(f), {"x": cd.Space(size)})(x), x[places], err_msg=f"{shown}: {f}")
    expected = np.zeros(size)
    np.add.at(expected, places, 3 * x[places] ** 2 * w + np.cos(x[places]))
    np.testing.assert_allclose(slope(x, w), expected, rtol=1e-10, atol=1e-12, err_msg=shown)
    np.testing.assert_allclose(
        cd.read(str(slope), spaces)(x, w), expected, rtol=1e-10, atol=1e-12, err_msg=f"{shown}: {slope}"
    )


PLAIN = {
    "reshape, transpose and back": (12, lambda x: x.reshape(3, 4).T.reshape(-1), "3 x[d]²"),
    "three axes": (12, lambda x: x.reshape(3, 2, 2).transpose(2, 0, 1).reshape(-1), "3 x[d]²"),
    "joined axes": (24, lambda x: x.reshape(2, 3, 2, 2).transpose(2, 0, 3, 1).reshape(4, -1), "3 x[d]²"),
    "repeat of repeat": (3, lambda x: x.repeat(3).repeat(2), "18 x[d]²"),
    "repeat of roll": ("n", lambda x: np.roll(x, 1).repeat(2), "6 x[d]²"),
    "roll of repeat": ("n", lambda x: np.roll(x.repeat(2), 1), "6 x[d]²"),
    "tile of repeat": (3, lambda x: np.tile(x.repeat(2), 3), "18 x[d]²"),
    "repeat of tile": (3, lambda x: np.tile(x, 3).repeat(2), "18 x[d]²"),
    "tile of every other": (6, lambda x: np.tile(x[::2], 2), "6 [d mod 2 = 0] x[d]²"),
    "repeat of every other": (6, lambda x: x[::2].repeat(3), "9 [d mod 2 = 0] x[d]²"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PLAIN)
def test_slopes_of_what_is_laid_out_anew_are_those_of_each_element(name: str) -> None:
    size, move, slope = PLAIN[name]

    def energy(x):  # type: ignore[no-untyped-def]
        return (move(x) ** 3).sum()

    energy.__annotations__ = {"x": cd.Space(size)}
    gradient = cd.grad(cd.program(energy))
    assert str(gradient) == f"x ↦ d ↦ {slope}"


@pytest.mark.parametrize("size", [6, "n"])
def test_what_is_rolled_and_repeated_is_read_at_whole_numbers(size: Any) -> None:
    """(i - r)/2 - 1 modulo n was a float, which is no index; the plan is a view and a reshape."""

    @cd.program
    def f(x: cd.Space(size)):
        return np.repeat(np.roll(x, 1), 2)

    x = np.arange(6.0)
    np.testing.assert_array_equal(f(x), np.repeat(np.roll(x, 1), 2))
    assert str(f).endswith(f"x[(⌊i/2⌋ - 1) mod {size}]")
    rolled = "np.roll(x, 1, 0)" if size == "n" else "np.concatenate((x[-1:], x[:-1]), 0)"
    assert rolled in f.source()
    assert cd.testing.check_routes(f, x=x) == 0
