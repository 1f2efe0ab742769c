"""The flat table of matrix functions: what each is, its derivative as a term, its names and where it is valid.

Like `primitives`, adding a function is adding a row. A row gives ∂f[out]/∂X[k, m] as a scalar term in elements of
matrix functions of X, and with it (theory: Laue, Mitterreiter & Giesen, general unary functions)

    pullback       (X, c) ↦ (k, m) ↦ Σ_out conj(∂f[out]/∂X[k, m])·c[out] + (∂f[out]/∂X̄[k, m])·conj(c[out])
    pushforward    (X, t) ↦ out ↦ Σ_{k,m} (∂f[out]/∂X[k, m])·t[k, m] + (∂f[out]/∂X̄[k, m])·conj(t[k, m])

    inv(X)[i, j]   has   −inv(X)[i, k]·inv(X)[m, j]          det(X)   has   adj(X)[m, k]

A matrix function is a `Primitive` of one tensor term. It takes the last two axes of the tensor as a matrix and works
on each matrix of a stack, as NumPy's functions do: inv(X) has the axes of X, det(X) those before the last two.

Invariant: each row has a derivative; a test compares every one with central differences, real and complex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from combdiff.ir.domains import Domain, Range
from combdiff.ir.indices import affine, indicator, size_form
from combdiff.ir.terms import (
    MINUS_ONE,
    Apply,
    Lambda,
    Number,
    Primitive,
    Term,
    Var,
    add,
    conj,
    mul,
    negate,
    remembered,
    total,
)
from combdiff.records import dataclass

T = TypeVar("T")
HALF, MINUS_HALF = Number(Fraction(1, 2)), Number(Fraction(-1, 2))


@dataclass(frozen=True)
class Point:
    """The matrix at which a derivative is taken: a tensor term, and which matrix of the stack it is.

    `axes` are the domains of its rows and columns, `fresh` makes an index that a derivative sums over.
    """

    matrix: Term
    stack: tuple[Term, ...]
    axes: tuple[Domain, Domain]
    fresh: Callable[[Domain], Var]

    def __call__(self, name: str, *indices: Term) -> Term:
        """The element of a matrix function at indices."""
        return element(Primitive(name, (self.matrix,)), (*self.stack, *indices))

    def of(self, names: Sequence[str], *indices: Term) -> Term:
        """The element of a matrix function of a matrix function, the outermost named first."""
        tensor = self.matrix
        for name in reversed(names):
            tensor = Primitive(name, (tensor,))
        return element(tensor, (*self.stack, *indices))

    def entry(self, row: Term, column: Term) -> Term:
        """The element of the matrix itself."""
        return element(self.matrix, (*self.stack, row, column))

    def summed(self, axis: int, body: Callable[[Term], Term]) -> Term:
        """Σ of a body over the rows (0) or columns (1)."""
        index = self.fresh(self.axes[axis])
        return total((index,), body(index))


def element(tensor: Term, indices: Sequence[Term]) -> Term:
    """`tensor[indices]`; of a number, itself."""
    return Apply(tensor, tuple(indices)) if indices else tensor


def upper_blocks(
    indices: Sequence[Var], rows: Range, own: Callable[[Term, Term], Term], change: Callable[[Term, Term], Term]
) -> Lambda:
    """[[A, E], [0, A]] at the indices of a stack, of rows and of columns, from the elements of A and E."""
    *_, a, b = indices
    lower = [affine([(index, 1), (size_form(rows.size), -1)]) for index in (a, b)]
    first, second = ([indicator(affine([(form, -1)], -1)), indicator(form)] for form in lower)
    blocks = add(
        mul(first[0], second[0], own(a, b)),
        mul(first[0], second[1], change(a, lower[1])),
        mul(first[1], second[1], own(*lower)),
    )
    return Lambda(tuple(indices), blocks)


# ∂f[out]/∂X[k, m] as a term, given the point, the indices `out` of the result's matrix, k and m.
Partial = Callable[[Point, tuple[Term, ...], Term, Term], Term]


@dataclass(frozen=True)
class MatrixRow:
    """One matrix function.

    `partial` is ∂f[out]/∂X[k, m]; `conjugate_partial` is ∂f[out]/∂X̄[k, m], None where f is holomorphic;
    `real_partial` replaces both for real matrices, when given. `result` tells which axes of the matrix each axis of
    the result has: its rows "r" and columns "c"; `square` that the matrix must be square. `hermitian` that f is one of
    ½(X + X†), and `partial` by its elements. `natural` says that f(Xᵀ) = f(X)ᵀ and f(X*) = f(X)*, as for primary ones.
    `real_valued` says that the result is real for complex matrices too, `real_only` that those are refused, `whole`
    that it is made of whole numbers. `slope` says that it is primary, one of a matrix by its eigenvalues, f(U Λ U⁻¹) =
    U f(Λ) U⁻¹, whose derivative is the upper right block of one matrix of twice the size, whatever `partial` says: it
    is f′ of a number, as a multiple of functions one after the other. `numpy` is the expression that computes it, with
    {0} for the matrix and {np} for the library; `joint` an expression that gives several functions of a matrix at
    once, and which of its results this one is; `levels_of` the function of which it gives one number for results that
    rounding cannot tell apart; `by_rows` that it is one of each row, so that a vector will do. `domain` says where the
    derivative is valid; `cost` is the work for an n × n matrix in units of n³ multiplications.
    """

    name: str
    numpy: str
    latex: str
    partial: Partial
    domain: str
    cost: Fraction
    result: str = "rc"
    square: bool = True
    natural: bool = True
    hermitian: bool = False
    conjugate_partial: Partial | None = None
    real_partial: Partial | None = None
    real_valued: bool = False
    real_only: bool = False
    whole: bool = False
    slope: tuple[Number, tuple[str, ...]] | None = None
    joint: tuple[str, int] | None = None
    levels_of: str = ""
    by_rows: bool = False

    @property
    def order(self) -> int:
        """The axes of what it is a function of, the last ones of a stack."""
        return 1 if self.by_rows else 2

    @property
    def scalar(self) -> bool:
        """Whether the result is a number for each matrix."""
        return not self.result

    @property
    def primary(self) -> bool:
        """Whether it is one of a matrix by its eigenvalues."""
        return self.slope is not None

    @property
    def kind(self) -> str:
        """What laws know it as: "number" or square "matrix" that goes with transposes and conjugates; or neither."""
        return "" if not (self.natural or self.primary) or not self.square else "number" if self.scalar else "matrix"

    def of_result(self, axes: Sequence[T]) -> tuple[T, ...]:
        """What belongs to the axes of the result, of what belongs to those of a stack of such matrices, or of rows."""
        own = dict(zip("cr", reversed(axes[-self.order :]), strict=False))
        return (*axes[: -self.order], *(own[letter] for letter in self.result))

    def partials(self, real: bool) -> tuple[Partial, Partial | None]:
        """∂f/∂X and ∂f/∂X̄ (None where that is 0)."""
        if real and self.real_partial is not None:
            return self.real_partial, None
        return self.partial, self.conjugate_partial


def _inverse_transposed(at: Point, _: tuple[Term, ...], k: Term, m: Term) -> Term:
    return at("inv", m, k)


def _inv(at: Point, out: tuple[Term, ...], k: Term, m: Term) -> Term:
    i, j = out
    return mul(MINUS_ONE, at("inv", i, k), at("inv", m, j))


def _adj(at: Point, out: tuple[Term, ...], k: Term, m: Term) -> Term:
    """adj = det·inv, differentiated, with det·inv written adj again."""
    i, j = out
    return add(mul(at("adj", m, k), at("inv", i, j)), negate(mul(at("adj", i, k), at("inv", m, j))))


_LOGDET = MatrixRow(
    "logdet",
    "{np}.linalg.slogdet({0})[1]",
    r"\log\left|\det {}\right|",
    lambda at, out, k, m: mul(HALF, _inverse_transposed(at, out, k, m)),
    "X invertible",
    Fraction(1, 3),
    result="",
    conjugate_partial=lambda at, out, k, m: mul(HALF, conj(_inverse_transposed(at, out, k, m))),
    real_partial=_inverse_transposed,
    real_valued=True,
)


_ROWS = (
    MatrixRow("inv", '_inverse({np}, {0}, "{0}")', "{}^{-1}", _inv, "X invertible", Fraction(1)),
    MatrixRow(
        "det",
        "{np}.linalg.det({0})",
        r"\det",
        lambda at, _, k, m: at("adj", m, k),
        "everywhere",
        Fraction(1, 3),
        result="",
    ),
    MatrixRow("adj", "_adjugate({np}, {0})", r"\operatorname{adj}", _adj, "X invertible", Fraction(4, 3)),
    _LOGDET,
    replace(
        _LOGDET,
        name="logdet_positive",
        numpy='_logdet_positive({np}, {0}, "{0}")',
        latex=r"\log\det",
        domain="X positive definite",
        cost=Fraction(1, 6),
    ),
    MatrixRow(
        "signdet",
        "{np}.linalg.slogdet({0})[0]",
        r"\operatorname{sign}\det",
        lambda at, out, k, m: mul(HALF, at("signdet"), _inverse_transposed(at, out, k, m)),
        "X invertible",
        Fraction(1, 3),
        result="",
        conjugate_partial=lambda at, out, k, m: mul(
            MINUS_HALF, at("signdet"), conj(_inverse_transposed(at, out, k, m))
        ),
        real_partial=lambda at, out, k, m: Number(0),
    ),
)

MATRIX_TABLE: dict[str, MatrixRow] = {row.name: row for row in _ROWS}


def is_matrix_function(term: Term) -> bool:
    """Whether a term is a matrix function of a tensor."""
    return isinstance(term, Primitive) and term.name in MATRIX_TABLE


def is_decomposition(term: Term) -> bool:
    """Whether a term is a matrix function that is neither of an algebra of matrices nor a number: factors, places."""
    row = MATRIX_TABLE.get(term.name) if isinstance(term, Primitive) else None
    return row is not None and not row.natural and not row.scalar


def is_primary(term: Term) -> bool:
    """Whether a term is an element of a primary function of a matrix, whose derivative takes a whole cotangent."""
    inner = term.function if isinstance(term, Apply) else term
    return is_matrix_function(inner) and MATRIX_TABLE[inner.name].primary  # type: ignore[attr-defined]


@remembered
def matrices_in(term: Term) -> frozenset[Var]:
    """The variables that matrix functions in the term are functions of."""
    own = (child for child in term.children if isinstance(child, Var)) if is_matrix_function(term) else ()
    return frozenset(own).union(*map(matrices_in, term.children))
