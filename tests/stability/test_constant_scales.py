"""What is divided by a hypotenuse that is a number when a program is planned, as beside a derivative that is 0."""

import numpy as np
import pytest

import combdiff as cd
from combdiff.api import Program
from combdiff.ir import Apply, Lambda, Magnitude, Number, Primitive, Range, Rescaled, Space, Var, add, mul, total

x = Var("x", Space())


@pytest.mark.parametrize("scale", [2.0, 1])
@pytest.mark.parametrize("number", [3.0, 0])
def test_a_number_is_divided_by_a_number(scale: float, number: float) -> None:
    """Numbers in Python's own types reach no kernel of arrays."""
    program = Program(Lambda((x,), add(Rescaled(x, Number(scale)), Rescaled(Number(number), Number(scale)))), "case")
    assert program(6.0) == (6 + number) / scale


@pytest.mark.parametrize("number", [0, 3, 1e200, 1e-200, 1e300 + 1e300j, np.inf])
def test_the_magnitude_of_a_number_is_one(number: complex) -> None:
    """A power of 2 near it, where its square is not safe: it was asked for its axes."""
    given = Number(number.real, number.imag)
    found = Program(Lambda((x,), mul(x, Magnitude((), given, 2))), "case")(1.0)
    rest = Program(Lambda((x,), mul(x, Rescaled(given, Magnitude((), given, 2)))), "case")(1.0)
    assert found == 1 if number in (0, 3, np.inf) else 1 <= abs(rest) < 4
    assert rest * found == number


def test_the_magnitude_of_a_number_that_is_computed() -> None:
    """Python's own numbers are no arrays."""
    computed = Primitive("sin", (add(Primitive("sqrt", (Number(3, 4),)), Number(1)),))
    found = Program(Lambda((x,), mul(x, Rescaled(computed, Magnitude((), computed, 2)))), "case")
    assert found(2.0) == pytest.approx(2 * np.sin(3 + 1j))


@pytest.mark.parametrize("number", ["1e200", "1e160", "3", "1e-200"])
def test_roots_of_squares_of_large_numbers(number: str) -> None:
    """Where the square is too large to be folded its base was taken for it: √(2 + (1e200)²) was 1e100."""
    root = cd.read(f"x ↦ (2 + {number}²)^(1/2) + 0 x")
    assert root(1.0) == pytest.approx(np.hypot(np.sqrt(2), float(number)))
    assert cd.read(f"x ↦ (2 + {number}²)^(-3/2) + 0 x")(1.0) == pytest.approx(root(1.0) ** -1.0 * root(1.0) ** -2.0)


def test_what_is_rescaled_by_more_indices_than_it_has() -> None:
    """Where the scales are 1 throughout a quotient is no more what is divided: it has an axis for each of them."""
    c, sides, w, i = Var("c", Space()), Var("x", Space("n")), Var("w", Space("n")), Var("i", Range("n"))
    share = Rescaled(c, Primitive("hypot", (c, Apply(sides, (i,)))))
    shares = Program(Lambda((c, sides, w), total((i,), mul(Apply(w, (i,)), share))), name="shares")
    weights = np.array([1.0, 2.0, 4.0])
    for side, expected in ((0.0, 7.0), (np.sqrt(3), 3.5)):
        np.testing.assert_allclose(shares(np.ones(()), np.full(3, side), weights), expected, rtol=1e-14)
