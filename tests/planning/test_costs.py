"""Costs as formulas of the sizes: they agree with the numbers, and printing says what they hold for."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_programs import coulomb_slope
from planner import coulomb

import combdiff as cd
from combdiff.planning.costs import CostTable
from combdiff.planning.quantities import Quantity, constant, form_of, symbol

M, V = cd.Space("n", "n"), cd.Space("n")


@cd.program
def chain(A: cd.Space("a", "b"), B: cd.Space("b", "c"), x: cd.Space("c", "d")):
    return A @ B @ x


@cd.program
def powers(A: M, x: V, w: cd.Space(cd.Symmetric("B"))):
    return cd.logdet(A @ A.T, positive=True) + cd.exp(x) @ cd.solve(A, x) + cd.sum(lambda b: w[b] ** 3)


@cd.program
def convolution(x: V, w: cd.Space("k")):
    return cd.tensor(lambda i: cd.sum(lambda k: x[i + k] * w[k]), i=10)


@cd.program
def slope(A: M, x: V):
    """Of `powers`, by the matrix."""
    inverse = cd.inv(A)
    return cd.tensor(lambda d, e: 2 * inverse[e, d] - (cd.exp(x) @ inverse)[d] * (inverse @ x)[e])


@cd.program
def weights(w: cd.Space(cd.Symmetric("B"))):
    return cd.tensor(lambda b: 3 * w[b] ** 2)


PROGRAMS = {
    "coulomb": coulomb,
    "its gradient": coulomb_slope,
    "chain": chain,
    "powers": powers,
    "their gradient": slope,
    "convolution": convolution,
}
NUMBERS = st.integers(0, 60)


@given(NUMBERS, NUMBERS, st.integers(1, 9), st.integers(0, 3))
def test_numbers_know_their_formulas(m: int, n: int, divisor: int, power: int) -> None:
    a, b = Quantity(m, symbol("a")), Quantity(n, symbol("b"))
    found = [
        a + b,
        a - b,
        3 - a,
        2 * a * b,
        a**power + 1,
        max(a, b),
        min(a, 7),
        sum([a, b, a]),
        a + True,
        b * divisor // divisor,
    ]
    expected = [m + n, m - n, 3 - m, 2 * m * n, m**power + 1, max(m, n), min(m, 7), 2 * m + n, m + 1, n]
    assert found == expected
    assert [form_of(value).at({"a": m, "b": n}) for value in found] == expected
    assert int(form_of(a * b // divisor).at({"a": m, "b": n})) == m * n // divisor


def test_formulas_are_printed_with_the_highest_degree_first() -> None:
    n, k = Quantity(5, symbol("n")), Quantity(2, symbol("k"))
    texts = [8 * n**4 * k + n, n * (n + 1) // 2, n - 3 * n**2, 1 - n, n - n, 1000 * n, -1 * n // 3]
    expected = ["8·k·n⁴ + n", "1/2·n² + 1/2·n", "n - 3·n²", "1 - n", "0", "1,000·n", "-1/3·n"]
    assert [str(form_of(value)) for value in texts] == expected
    assert str(constant(Fraction(-5, 2))) == "-5/2"
    assert pickle.loads(pickle.dumps(n)).form == n.form
    assert not isinstance(n * 0.5, Quantity)


@pytest.mark.parametrize("name", PROGRAMS)
def test_formulas_at_the_sizes_are_the_numbers(name: str) -> None:
    f = PROGRAMS[name]
    for size in (3, 11):
        sizes = {name: size + 2 * n for n, name in enumerate(f.cost().open_sizes)}
        table = f.cost(**sizes)
        assert not table.open_sizes
        for value in numbers(table):
            assert 0 <= form_of(value).at(sizes) - value < 1 + len(table.rows), (value, str(form_of(value)))


def numbers(table: CostTable) -> list[int]:
    return [
        table.flops,
        table.peak_bytes,
        *(value for row in table.rows for value in (row.flops, row.bytes, *row.shape)),
    ]


def test_formulas_hold_at_other_sizes_in_the_same_order() -> None:
    table = coulomb_slope.cost()
    for sizes in ({"N": 40, "Ne": 6}, {"N": 9, "Ne": 2}):
        assert table.flops.form.at(sizes) == coulomb_slope.cost(**sizes).flops
        assert table.peak_bytes.form.at(sizes) == coulomb_slope.cost(**sizes).peak_bytes
    assert str(table.flops.form).startswith("N⁴ + 2·N²·Ne")


def test_sizes_choose_the_order_whose_formula_is_shown() -> None:
    narrow, wide = chain.cost(a=2, b=50, c=50, d=50), chain.cost(a=50, b=50, c=50, d=2)
    assert str(narrow.flops.form) == "a·b·c + a·c·d"
    assert str(wide.flops.form) == "a·b·d + b·c·d"
    assert "in sizes: a·b·c + a·c·d flops, peak 8·a·c + 8·a·d bytes" in str(narrow)
    rest = chain.cost(a=2, b=50, d=50)
    assert rest.open_sizes == ("c",)
    assert "200·c flops" in str(rest)


def test_what_is_printed_without_sizes() -> None:
    text = str(chain.cost()).splitlines()
    assert text[0].split() == ["step", "operation", "equation", "shape", "flops", "bytes", "share"]
    assert text[1].split() == ["t3", "matrix-matrix", "ij,jk->ik", "b×d", "b·c·d", "8·b·d", "50.0%"]
    assert text[-2] == "total a·b·d + b·c·d flops, peak 8·a·d + 8·b·d bytes"
    assert text[-1] == "planned for a = 24, b = 24, c = 24, d = 24; to plan for others: cost(a=…, b=…, c=…, d=…)"
    assert "(2·B + 1)" in str(weights.cost())


def test_fixed_sizes_need_no_formulas() -> None:
    @cd.program
    def fixed(A: cd.Space(3, 4), x: cd.Space(4)):
        return A @ x

    text = str(fixed.cost())
    assert "in sizes" not in text
    assert text.splitlines()[-1] == "total 12 flops, peak 24 bytes"


def test_an_array_is_divided_once_by_a_power_of_2() -> None:
    @cd.program
    def directions(x: cd.Space("n", "m")):
        return x / np.sqrt((x**2).sum(axis=1))[:, None]

    rows = {row.name: row for row in directions.cost(n=100, m=50).rows}
    assert [row.flops for row in rows.values() if row.operation == "rescale"] == [5000]
