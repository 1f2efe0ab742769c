"""Rows of the table of matrix functions for reductions: largest and smallest elements, products, and orders.

    amax        ∂/∂X[k, m] = [X[k, m] = amax(X)] / (how many are), where amax_marks(X)[k, m] is 1
    prod        ∂/∂X[k, m] = prod_others(X)[k, m], the product of all the other elements
    cumprod     ∂(Π_{c ≤ j} X[i, c])/∂X[i, m] = [m ≤ j] prod_others(c ↦ X[i, c] if c ≤ j else 1)[m]
    argsort, argmax, argmin     whole numbers, whose derivative is 0, of each row: of a vector, too

Which elements are the largest is a matrix of whole numbers, 1 for these and 0: so no element is computed once more, in
another order, and differs in the last digit from what it is compared with.

The product of the others is no quotient by X[k, m], so that derivatives of every order are right where elements are 0.

Invariant: as for each row of the table, ∂f[out]/∂X[k, m] is a term in elements of matrix functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from combdiff.ir.domains import Range
from combdiff.ir.indices import Affine, affine, delta, indicator, unequal
from combdiff.ir.matrix_functions import MATRIX_TABLE, MatrixRow, Point, element
from combdiff.ir.primitives import named_operator
from combdiff.ir.relations import relation
from combdiff.ir.terms import MINUS_ONE, ONE, ZERO, Lambda, Primitive, Term, add, mul

Out = tuple[Term, ...]
_FIRST = Affine((), 0)
MARKS = ("amax_marks", "amin_marks")


def _of_extreme(name: str) -> tuple[MatrixRow, MatrixRow, MatrixRow]:
    """The largest or smallest element, how many are equal to it, and which: these share the derivative equally."""
    ties, marks = f"{name}_ties", f"{name}_marks"

    def share(at: Point, _: Out, k: Term, m: Term) -> Term:
        return mul(relation("equal", at(marks, k, m), ONE), Primitive("power", (at(ties), MINUS_ONE)))

    found = f"{{np}}.{name}({{0}}, (-2, -1))"
    equal = f"({{0}} == {found}[..., None, None])"
    count = f"{equal}.sum((-2, -1), dtype={{0}}.dtype)"
    latex, cost, counted = rf"\{name[1:]}", Fraction(0), r"\operatorname{ties}"
    return (
        MatrixRow(name, found, latex, share, "no ties", cost, "", False, real_only=True, real_valued=True),
        MatrixRow(ties, count, counted, _zero, "no ties", cost, "", False, real_only=True, real_valued=True),
        replace(_order(marks, f"{equal} * 1", "rc"), natural=True),
    )


def is_mark(term: Term) -> bool:
    """Whether a term says which elements of a matrix are the largest, or the smallest."""
    return isinstance(term, Primitive) and term.name in MARKS


def _zero(*_: object) -> Term:
    return ZERO


def _differ(one: Term, other: Term) -> Term:
    return unequal(affine([(one, 1), (other, -1)]))


def _two_out(at: Point, out: Out, k: Term, m: Term) -> Term:
    """The product of all elements but that at `out` and that at (k, m), which is 0 where the two are one."""
    i, j = out
    rows, columns = map(at.fresh, at.axes)
    here, same_row = mul(delta(rows, i), delta(columns, j)), mul(delta(rows, i), _differ(columns, j))
    own = at.entry(rows, columns)
    left = Lambda((rows, columns), add(mul(_differ(rows, i), own), mul(same_row, own), here))
    others = element(Primitive("prod_others", (left,)), (k, m))
    return add(mul(_differ(k, i), others), mul(delta(k, i), _differ(m, j), others))


def _running(at: Point, out: Out, k: Term, m: Term) -> Term:
    """Of the product of a row up to an element: the product of its others up to there."""
    i, j = out
    rows, columns = at.fresh(Range(1)), at.fresh(at.axes[1])
    later = indicator(affine([(columns, 1), (j, -1)], -1))
    up_to = Lambda((rows, columns), add(mul(_up_to(columns, j), at.entry(i, columns)), later))
    return mul(delta(i, k), _up_to(m, j), element(Primitive("prod_others", (up_to,)), (_FIRST, m)))


def _up_to(index: Term, last: Term) -> Term:
    return indicator(affine([(last, 1), (index, -1)]))


def _row(name: str, text: str, latex: str, partial: Callable[..., Term], result: str) -> MatrixRow:
    return MatrixRow(name, text, latex, partial, "everywhere", Fraction(0), result, square=False)


def _order(name: str, text: str, result: str) -> MatrixRow:
    """Whole numbers that say where elements are."""
    row = _row(name, text, named_operator(name), _zero, result)
    return replace(row, domain="no ties", natural=False, real_only=True, real_valued=True, whole=True)


REDUCTIONS = (
    *_of_extreme("amax"),
    *_of_extreme("amin"),
    _row("prod", "{np}.prod({np}.prod({0}, -1), -1)", r"\prod", lambda at, _, k, m: at("prod_others", k, m), ""),
    _row("prod_others", "_products_of_others({np}, {0})", r"\operatorname{prod\_others}", _two_out, "rc"),
    replace(_row("cumprod", "{np}.cumprod({0}, -1)", r"\operatorname{cumprod}", _running, "rc"), natural=False),
    replace(_order("argsort", "{np}.argsort({0}, stable=True)", "c"), by_rows=True),
    replace(_order("argmax", "{np}.argmax({0}, -1)", ""), by_rows=True),
    replace(_order("argmin", "{np}.argmin({0}, -1)", ""), by_rows=True),
)

MATRIX_TABLE.update({row.name: row for row in REDUCTIONS})
