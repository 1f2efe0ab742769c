"""What is named like a word of the notation reads back: `exp(exp)` is the function of the tensor."""

import numpy as np
import pytest

import combdiff as cd

SPACES = {"x": cd.Space("n"), "tr": cd.Space("n", "n")}
X, MATRIX = np.cos(np.arange(3.0)), np.sin(np.arange(9.0)).reshape(3, 3) + 3 * np.eye(3)


@cd.program
def named(x: cd.Space("n"), tr: cd.Space("n", "n")):
    exp = np.tanh(tr @ x)
    diag = exp[:, None] * tr
    delta = np.exp(exp) * x
    mod = np.log(1 + delta**2)
    sum_i = np.linalg.inv(diag) @ mod
    det = np.linalg.det(diag) * np.trace(diag) * np.sum(np.exp(mod) * np.diag(diag))
    return sum_i @ sum_i + det


@pytest.mark.sample(1)
@pytest.mark.parametrize("wrt", [None, "x", "tr"])
def test_a_name_is_no_function(wrt: str | None) -> None:
    program = named if wrt is None else cd.grad(named, wrt, simplify=wrt == "tr")
    for notation in (str, cd.Program.matrix):
        np.testing.assert_allclose(cd.read(notation(program), SPACES)(X, MATRIX), program(X, MATRIX), rtol=1e-9)


def test_local_names_that_only_notation_has_are_not_taken() -> None:
    assert "exp" in str(named)
    assert "mod" not in str(named)
    assert "sum_i" not in str(named)
