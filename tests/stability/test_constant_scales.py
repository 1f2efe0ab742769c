"""What is divided by a hypotenuse that is a number when a program is planned, as beside a derivative that is 0."""

import pytest

from combdiff.api import Program
from combdiff.ir import Lambda, Number, Rescaled, Space, Var, add

x = Var("x", Space())


@pytest.mark.parametrize("scale", [2.0, 1])
@pytest.mark.parametrize("number", [3.0, 0])
def test_a_number_is_divided_by_a_number(scale: float, number: float) -> None:
    """Numbers in Python's own types reach no kernel of arrays."""
    program = Program(Lambda((x,), add(Rescaled(x, Number(scale)), Rescaled(Number(number), Number(scale)))), "case")
    assert program(6.0) == (6 + number) / scale
