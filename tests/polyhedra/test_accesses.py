"""Accesses that leave their tensor: refused when a program is traced or called, with the index that does it."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.errors import IndexingError
from combdiff.ir.domains import Range, Space, Whole
from combdiff.ir.indices import affine, indicator
from combdiff.ir.terms import Apply, Lambda, Var, add, let, mul, total
from combdiff.polyhedra.bounds_checks import check, doubtful_accesses

V5, Vn, Wk = cd.Space(5), cd.Space("n"), cd.Space("k")


def past_the_end(x: V5, y: V5):
    return cd.sum(lambda i: x[i + 1] * y[i])


def before_the_start(x: cd.Space(8), w: cd.Space(cd.Symmetric(2))):
    return cd.sum(lambda i, b: x[i + b] * w[b], i=8)


def past_a_stride(x: V5, y: cd.Space(3, 2)):
    return cd.sum(lambda i, j: x[2 * i + j] * y[i, j])


def in_a_tensor_of_its_own(x: V5):
    t = cd.tensor(lambda i: cd.exp(x[i]) * x[i])
    return cd.sum(lambda j: t[2 * j], j=4)


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (past_the_end, "axis 0 of x is read at i + 1 = 5 (for i = 4), but it has the indices 0 … 4"),
        (before_the_start, "axis 0 of x is read at b + i = -2 (for b = -2, i = 0), but it has the indices 0 … 7"),
        (past_a_stride, "axis 0 of x is read at 2*i + j = 5 (for i = 2, j = 1), but it has the indices 0 … 4"),
        (
            in_a_tensor_of_its_own,
            "axis 0 of a tensor of order 1 is read at 2*j = 6 (for j = 3), but it has the indices 0 … 4",
        ),
    ],
)
def test_fixed_sizes_are_refused_when_traced(definition: Callable[..., Any], message: str) -> None:
    with pytest.raises(IndexingError) as caught:
        cd.program(definition)
    assert caught.value.message == message
    lines, first = inspect.getsourcelines(definition)
    assert caught.value.location.line == first + len(lines) - 1  # the line that reads, the last in each of these
    assert "cd.where" in caught.value.hint


@cd.program
def windows(x: Vn, w: Wk):
    return cd.sum(lambda i, k: x[i + k] * w[k], i=4)


def test_named_sizes_are_refused_when_called_before_anything_is_computed() -> None:
    assert windows(np.ones(6), np.ones(3)) == 12
    message = "axis 0 of x is read at i + k = 5 (for i = 3, k = 2), but it has the indices 0 … 4 for k = 3, n = 5"
    for f in (
        windows,
        cd.grad(windows),
        cd.grad(windows, wrt="w", simplify=False),
        cd.hvp(windows),
        cd.simplify(windows),
    ):
        arrays = [np.ones(5), np.ones(3), np.ones(5)][: len(f.parameters)]
        with pytest.raises(IndexingError) as caught:
            f(*arrays)
        assert caught.value.message == message


def test_sizes_under_which_a_range_is_empty_give_zeros() -> None:
    assert windows(np.ones(2), np.ones(0)) == 0
    np.testing.assert_array_equal(cd.grad(windows)(np.ones(2), np.ones(0)), np.zeros(2))


def test_a_constant_index_needs_an_axis_that_has_it() -> None:
    @cd.program
    def third(x: Vn):
        return x[3]

    assert third(np.arange(4.0)) == 3
    with pytest.raises(IndexingError, match=r"axis 0 of x is read at 3, but it has the indices 0 … 2 for n = 3"):
        third(np.ones(3))


def test_guards_are_understood() -> None:
    @cd.program
    def f(x: Vn):
        shifted = cd.tensor(lambda i: cd.exp(x[i + 1]), i="n")
        inside = cd.sum(lambda i, j: cd.where((j == i + 1) & (i > 0), x[j] * x[i - 1], 0), i="n")
        return inside + cd.sum(lambda i: cd.where((i + 1) % 2 == 0, shifted[i], 0))

    assert np.isfinite(f(np.ones(5)))
    with pytest.raises(IndexingError, match=r"i \+ 1 = 4 \(for i = 3\)"):
        f(np.ones(4))


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_refused_exactly_where_a_loop_finds_an_index_that_leaves(data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(0, 4)) for _ in range(2)]
    i, j = (Var(name, Range(size)) for name, size in zip("ij", sizes, strict=True))
    form = [data.draw(st.integers(-3, 3)) for _ in range(3)]
    guard = [data.draw(st.integers(-2, 2)) for _ in range(3)]
    modulus = data.draw(st.sampled_from([0, 0, 2, 3]))
    size = data.draw(st.integers(0, 6))
    x = Var("x", Space(size))

    def at(numbers: list[int], p: int, q: int) -> int:
        return numbers[0] * p + numbers[1] * q + numbers[2]

    def holds(p: int, q: int) -> bool:
        value = at(guard, p, q)
        return value % modulus == 0 if modulus else value >= 0

    def written(numbers: list[int]) -> Any:
        return affine([(i, numbers[0]), (j, numbers[1])], numbers[2])

    term = Lambda((x,), total((i, j), mul(indicator(written(guard), modulus), Apply(x, (written(form),)))))
    points = itertools.product(*(range(n) for n in sizes))
    leaves = any(holds(p, q) and not 0 <= at(form, p, q) < size for p, q in points)
    try:
        check(doubtful_accesses(term), {})
    except IndexingError:
        assert leaves
    else:
        assert not leaves


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_read_of_what_is_read_is_refused_at_the_sizes_at_which_a_loop_leaves(data: st.DataObject) -> None:
    """Tensors that read the one before them where conditions hold, at shifts that may count the size n."""
    n, space = Var("n", Whole()), Space("n")
    numbers = st.tuples(*[st.integers(-1, 1), st.integers(-1, 1), st.integers(-2, 2)])
    reads = st.lists(st.tuples(st.tuples(st.just(1), st.integers(-1, 1), st.integers(-2, 2)), numbers), max_size=2)
    layers = [data.draw(reads) for _ in range(data.draw(st.integers(1, 4)))]
    below, bindings = (x := Var("x", space)), []
    for level, layer in enumerate(layers):
        i = Var(f"i{level}", Range("n"))

        def written(form: tuple[int, ...], i: Var = i) -> Any:
            return affine([(i, form[0]), (n, form[1])], form[2])

        value = add(*(mul(indicator(written(guard)), Apply(below, (written(form),))) for form, guard in layer))
        bindings.append((t := Var(f"t{level}", space), Lambda((i,), value)))
        below = t
    found = doubtful_accesses(Lambda((x,), let(bindings, below)))
    for size in range(6):
        wanted, leaves = set(range(size)), False
        for layer in reversed(layers):
            at = {
                form[0] * i + form[1] * size + form[2]
                for (form, guard), i in itertools.product(layer, wanted)
                if guard[0] * i + guard[1] * size + guard[2] >= 0
            }
            leaves, wanted = leaves or not at <= set(range(size)), at & set(range(size))
        try:
            check(found, {"n": size})
        except IndexingError:
            assert leaves
        else:
            assert not leaves


def test_as_many_accesses_are_kept_of_many_shifts_as_of_one() -> None:
    counts = []
    for steps in (1, 6):

        @cd.program
        def shifted(x: Vn):
            for _ in range(steps):  # noqa: B023
                ahead, behind = (np.concatenate([x[k:], x[:k]]) for k in (1, -2))
                x = np.tanh(ahead - behind) * ahead
            return x.sum()

        counts.append(len(shifted.accesses))
        with pytest.raises(IndexingError, match="n = 1"):
            shifted(np.ones(1))
    assert counts[0] == counts[1]


@cd.program
def beside_a_masked_tensor(x: cd.Space("n", dtype=complex), w: cd.Space("n", dtype=complex)):
    mask = cd.tensor(lambda i: cd.where(i + 1 < w.shape[0], np.tanh(w[i]), 0))
    twice = cd.tensor(lambda i: np.conj(mask[i]) * w[i])
    return np.real(cd.sum(lambda i: twice[i] * x[i + 1]) + mask.sum() * cd.sum(lambda i: mask[i] * x[i + 1]))


@pytest.mark.thorough
def test_conditions_hold_through_the_tensors_that_have_them_as_factors() -> None:
    """What stands beside a tensor that is 0 there is not looked at, as beside its condition; prints name such ones."""
    rng = np.random.default_rng(4)
    for size in (1, 2, 5):
        x, w = (rng.normal(size=(2, size)) + 1j * rng.normal(size=(2, size))) / 2
        mask = np.tanh(w[:-1])
        expected = np.real((mask.conj() * w[:-1]) @ x[1:] + mask.sum() * (mask @ x[1:]))
        np.testing.assert_allclose(beside_a_masked_tensor(x, w), expected)
        cd.testing.check_routes(beside_a_masked_tensor, x=x, w=w)
        for shown in (beside_a_masked_tensor, cd.grad(beside_a_masked_tensor, "w")):
            read = cd.read(str(shown), {name: cd.Space("n", dtype=complex) for name in "xw"})
            np.testing.assert_allclose(read(x, w), shown(x, w))


BESIDE_A_SUM = {  # of which all terms have a condition of the place
    "([d ≥ 2] x[d] - [d ≥ 2] x[d]²) / y[d - 2]": lambda x, y: np.append([0, 0], (x[2:] - x[2:] ** 2) / y),
    "y[d - 2] Σ_i [d ≥ 2] x[i]": lambda x, y: np.append([0, 0], y * x.sum()),
    "y[d - 2] ([2 ≤ d ≤ 2] + [d ≥ 4])": lambda x, y: np.array([0, 0, y[0], 0, y[2]]),  # each of its own, d ≥ 2 of all
    "y[d - 2] (δ(d, 2) x[0] + δ(d, 4))": lambda x, y: np.array([0, 0, x[0] * y[0], 0, y[2]]),
}


@pytest.mark.parametrize("body", BESIDE_A_SUM)
def test_conditions_of_all_terms_of_a_sum_are_conditions_of_what_stands_beside_it(body: str) -> None:
    x, y = np.array([1.0, 2.0, 3.0, -4.0, 5.0]), np.array([2.0, 0.5, -3.0])
    read = cd.read(f"(x, y) ↦ d<5 ↦ {body}", {"x": V5, "y": cd.Space(3)})
    np.testing.assert_allclose(read(x, y), BESIDE_A_SUM[body](x, y))
    cd.testing.check_routes(read, x=x, y=y)


@pytest.mark.parametrize(
    "body", ["([d ≥ 2] x[d] - x[d]²) / y[d - 2]", "y[d - 2] Σ_i [i ≥ 2] x[i]", "y[d - 2] (δ(d, 2) + [d ≤ 0])"]
)
def test_those_of_some_terms_or_of_what_is_summed_over_are_not(body: str) -> None:
    with pytest.raises(IndexingError, match=r"axis 0 of y is read at d - 2 = -2 \(for d = 0\)"):
        cd.read(f"(x, y) ↦ d<5 ↦ {body}", {"x": V5, "y": cd.Space(3)})


def test_a_condition_of_another_index_is_none_of_what_is_read() -> None:
    def other_element(x: Vn, w: Vn):
        mask = cd.tensor(lambda i: cd.where(i + 1 < w.shape[0], w[i], 0))
        return cd.sum(lambda i: mask[i] * x[i + 2])

    def both_outside(x: Vn, w: Vn):
        one = cd.tensor(lambda i: cd.where(i + 1 < w.shape[0], x[i], 0))
        other = cd.tensor(lambda i: cd.where(i + 1 < w.shape[0], w[i], 0))
        return cd.sum(lambda i: one[i + 1] * other[i + 1], i="n")

    with pytest.raises(IndexingError, match=r"i \+ 2 = 4 \(for i = 2\)"):
        cd.program(other_element)(np.ones(4), np.ones(4))
    with pytest.raises(IndexingError, match=r"i \+ 1 = 4 \(for i = 3\)"):
        cd.program(both_outside)(np.ones(4), np.ones(4))
