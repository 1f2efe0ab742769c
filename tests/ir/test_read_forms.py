"""Values that read at sums of indices alone are values at those sums: in derivatives, and in what they print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir import Apply, Range, Space, Term, Var, affine, function, mul
from combdiff.ir.read_forms import at_read_forms

N, J, K = Var("i", Range("n - 2")), Var("j", Range(3)), Var("k", Range(9))
X, Y, B = Var("x", Space("n")), Var("y", Space(3)), Var("b", Space(3, 3))


def at(tensor: Var, *indices: Any) -> Term:
    return Apply(tensor, tuple(index if isinstance(index, Var) else affine(index) for index in indices))


def test_there_is_one_index_for_each_form() -> None:
    value, indices, places = at_read_forms(function("exp", at(X, [(N, 1), (J, 1)])))
    (index,) = indices
    assert index.type == Range("n")
    assert places == {index: affine([(N, 1), (J, 1)])}
    assert value is function("exp", at(X, index))


def test_an_index_stays_that_is_read_by_itself() -> None:
    """There are 9 values then, not 27."""
    value, indices, places = at_read_forms(function("exp", mul(at(B, J, [(K, 1), (J, -3)]), at(Y, J))))
    assert {index.type for index in indices} == {Range(3)}
    (other,) = {*indices} - {J}
    assert places == {J: J, other: affine([(K, 1), (J, -3)])}
    assert value is function("exp", mul(at(B, J, other), at(Y, J)))


@pytest.mark.parametrize(
    "value",
    [
        mul(at(X, [(N, 1), (J, 1)]), at(Y, J)),  # as many indices, of larger ranges
        at(X, [(N, 1), (J, 2)]),  # of a named size nobody knows which are fewer
        at(Var("z", Space(40)), [(J, 1), (K, 1)]),  # ends that are not read
        at(Var("z", Space(27)), [(J, 9), (K, 1)]),  # as many values
    ],
)
def test_else_it_has_its_own_indices(value: Term) -> None:
    assert at_read_forms(value)[0] is value


def windows(x: Any, w: Any) -> Any:
    return cd.sum(lambda i: np.sin(cd.sum(lambda k: cd.exp(x[i + k]) * w[k], k=4)), i=9)


def guarded(x: Any, w: Any) -> Any:
    """Where the condition does not hold, the exponential is none of an element."""
    inner = cd.sum(lambda i: cd.sum(lambda k: np.exp(cd.where(i + k < 12, x[i + k] ** 2, 0.5)) * w[k], k=4) ** 2, i=10)
    return inner + cd.sum(
        lambda i: cd.sum(lambda k: cd.where(i + k < 12, np.exp(x[i + k]), 0.5) * w[k], k=4) ** 3, i=11
    )


def rows(x: Any, w: Any) -> Any:
    t = np.exp(x.reshape(3, 4) - x.max()).reshape(-1)
    return np.tanh(np.log(1 + t**2)).sum() * w.sum()


def test_an_exponential_of_windows_is_one_of_elements() -> None:
    @cd.program
    def f(x: cd.Space(12), w: cd.Space(4)):
        return windows(x, w)

    text = str(cd.grad(f))
    assert "exp(x[d])" in text
    assert text.count("exp(") == 2, text
    assert "np.exp(x)" in cd.grad(f).source()


@pytest.mark.sample(1)
@pytest.mark.parametrize("definition", [windows, guarded, rows])
def test_every_route_agrees(definition: Any) -> None:
    @cd.program
    def f(x: cd.Space(12), w: cd.Space(4)):
        return definition(x, w)

    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=12), "w": rng.normal(size=4)}
    cd.testing.check_routes(f, **arrays)
    cd.testing.check_routes(cd.grad(f), **arrays)
    for wrt in arrays:
        assert cd.testing.check_grad(f, wrt, **arrays) < 1e-6
    for gradient in (cd.grad(f), cd.grad(f, simplify=False)):
        read = cd.read(str(gradient), {"x": cd.Space(12), "w": cd.Space(4)})
        np.testing.assert_allclose(read(**arrays), gradient(**arrays), rtol=1e-12)
