"""What is divided by a hypotenuse that is a number when a program is planned, as beside a derivative that is 0."""

import numpy as np
import pytest

from combdiff.api import Program
from combdiff.ir import Apply, Lambda, Number, Primitive, Range, Rescaled, Space, Var, add, mul, total

x = Var("x", Space())


@pytest.mark.parametrize("scale", [2.0, 1])
@pytest.mark.parametrize("number", [3.0, 0])
def test_a_number_is_divided_by_a_number(scale: float, number: float) -> None:
    """Numbers in Python's own types reach no kernel of arrays."""
    program = Program(Lambda((x,), add(Rescaled(x, Number(scale)), Rescaled(Number(number), Number(scale)))), "case")
    assert program(6.0) == (6 + number) / scale


def test_what_is_rescaled_by_more_indices_than_it_has() -> None:
    """Where the scales are 1 throughout a quotient is no more what is divided: it has an axis for each of them."""
    c, sides, w, i = Var("c", Space()), Var("x", Space("n")), Var("w", Space("n")), Var("i", Range("n"))
    share = Rescaled(c, Primitive("hypot", (c, Apply(sides, (i,)))))
    shares = Program(Lambda((c, sides, w), total((i,), mul(Apply(w, (i,)), share))), name="shares")
    weights = np.array([1.0, 2.0, 4.0])
    for side, expected in ((0.0, 7.0), (np.sqrt(3), 3.5)):
        np.testing.assert_allclose(shares(np.ones(()), np.full(3, side), weights), expected, rtol=1e-14)
