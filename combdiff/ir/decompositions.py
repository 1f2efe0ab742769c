"""Rows of the table of matrix functions for decompositions: Cholesky, eigenvalues, singular values, QR, pseudoinverse.

    cholesky   A = L L†         dL = L Φ(L⁻¹ dA L⁻†)             Φ: the lower triangle with half of the diagonal
    eigh       A = U Λ U†       dλ = diag M,  dU = U (F ∘ M)     M = U† dA U,  F[j, k] = 1/(λ_k − λ_j) off the diagonal
    svd        A = U S V†       ds = Re diag P,  P = U† dA V     F[j, k] = 1/(s_k² − s_j²) off the diagonal
    qr         A = Q R          dR = Φ†(M + M†) R                M = Q† dA R⁻¹
    pinv       dA⁺ = −A⁺ dA A⁺ + A⁺ A⁺† dA† (1 − A A⁺) + (1 − A⁺ A) dA† A⁺† A⁺

    expm, sqrtm             f([[A, dA], [0, A]]) = [[f(A), df], [0, f(A)]]

Cholesky factors and eigenvalues are those of the Hermitian part ½(A + A†), as in JAX. Singular vectors and values are
as many as the matrix has columns, with zeros where a matrix has fewer rows. The phases of vectors are such that U† dU
has no diagonal. Sums of functions of eigenvalues or singular values have gradients without a division, so that they are
finite where values are equal; vectors have none there, and get infinities or NaN: what is divided by are differences of
levels, which are the eigenvalues or singular values with one number for those that rounding cannot tell apart.

Sources: Murray, Differentiation of the Cholesky decomposition (2016); Giles, Collected matrix derivative results for
forward and reverse mode algorithmic differentiation (2008), 2.2.3 and 3; Townsend, Differentiating the singular value
decomposition (2016); Golub and Pereyra, The differentiation of pseudo-inverses (1973), 4.12;
Higham, Functions of matrices (2008), 3.16 (blocks), 6.29 (square root), 10.20 (exponential).

Invariant: as for each row of the table, ∂f[out]/∂X[k, m] is a term in elements of matrix functions of X; of functions
of the Hermitian part it is that by the elements of a Hermitian matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from combdiff.ir.indices import Coordinate, affine, delta, unequal
from combdiff.ir.matrix_functions import HALF, MATRIX_TABLE, MatrixRow, Partial, Point
from combdiff.ir.primitives import divide, function, named_operator
from combdiff.ir.terms import MINUS_ONE, ONE, Number, Term, add, conj, mul, negate

Out = tuple[Term, ...]


def _triangle(larger: Term, smaller: Term) -> Term:
    """1 where one index is larger than the other, ½ where they are equal."""
    return function("heaviside", Coordinate(affine([(larger, 1), (smaller, -1)]), int))


def _off_diagonal(j: Term, k: Term) -> Term:
    return unequal(affine([(j, 1), (k, -1)]))


# --- Cholesky factor and eigenvalues -------------------------------------------------------------------------------


def _cholesky(at: Point, out: Out, k: Term, m: Term) -> Term:
    i, j = out
    inverse = ("inv", "cholesky")
    return at.summed(
        0,
        lambda p: mul(at("cholesky", i, p), _triangle(p, j), at.of(inverse, p, k), conj(at.of(inverse, j, m))),
    )


def _eigenvalue(at: Point, out: Out, a: Term, b: Term) -> Term:
    (k,) = out
    return mul(conj(at("eigvecsh", a, k)), at("eigvecsh", b, k))


def _eigenvector(at: Point, out: Out, a: Term, b: Term) -> Term:
    i, k = out
    return at.summed(
        0,
        lambda j: mul(
            _off_diagonal(j, k),
            divide(at("eigvecsh", i, j), add(at("eiglevels", k), negate(at("eiglevels", j)))),
            conj(at("eigvecsh", a, j)),
            at("eigvecsh", b, k),
        ),
    )


# --- singular values and vectors -----------------------------------------------------------------------------------


def _u(at: Point, i: Term, k: Term) -> Term:
    return at("svd_left", i, k)


def _v(at: Point, i: Term, k: Term) -> Term:
    return at("svd_right", i, k)


def _s(at: Point, k: Term) -> Term:
    return at("svdvals", k)


def _level(at: Point, k: Term) -> Term:
    return at("svdlevels", k)


def _gap(at: Point, j: Term, k: Term) -> Term:
    """1 / (s_k² − s_j²) off the diagonal."""
    difference = mul(add(_level(at, k), negate(_level(at, j))), add(_level(at, k), _level(at, j)))
    return mul(_off_diagonal(j, k), divide(Number(1), difference))


def _singular_value(at: Point, out: Out, a: Term, b: Term) -> Term:
    (k,) = out
    return mul(conj(_u(at, a, k)), _v(at, b, k))


def _within(vectors: Callable[[Point, Term, Term], Term], *, s_first: bool) -> tuple[Partial, Partial]:
    """What stays in the span of the vectors: dV = V (F ∘ (S P + P† S)), dU = U (F ∘ (P S + S P†)), of dA and of dA†."""

    def of_change(at: Point, out: Out, a: Term, b: Term) -> Term:
        i, k = out
        return at.summed(
            1,
            lambda j: mul(
                vectors(at, i, j), _gap(at, j, k), _s(at, j if s_first else k), conj(_u(at, a, j)), _v(at, b, k)
            ),
        )

    def of_adjoint(at: Point, out: Out, a: Term, b: Term) -> Term:
        i, k = out
        return at.summed(
            1,
            lambda j: mul(
                vectors(at, i, j), _gap(at, j, k), _s(at, k if s_first else j), _u(at, a, k), conj(_v(at, b, j))
            ),
        )

    return of_change, of_adjoint


_right, _right_conjugate = _within(_v, s_first=True)
_left_within, _left_conjugate_within = _within(_u, s_first=False)


def _left_beyond(at: Point, out: Out, a: Term, b: Term) -> Term:
    """(1 − U U†) dA V / s: what leaves the span."""
    i, k = out
    inside = at.summed(1, lambda j: mul(_u(at, i, j), conj(_u(at, a, j))))
    return mul(add(delta(i, a), negate(inside)), divide(_v(at, b, k), _level(at, k)))


def _phase(at: Point, out: Out, a: Term, b: Term) -> Term:
    """½ U[i, k] (U† dA V)[k, k] / s_k: half of i Im of it, the other half is its conjugate's."""
    i, k = out
    return mul(HALF, _u(at, i, k), conj(_u(at, a, k)), divide(_v(at, b, k), _level(at, k)))


def _phase_conjugate(at: Point, out: Out, a: Term, b: Term) -> Term:
    i, k = out
    return mul(Number(Fraction(-1, 2)), _u(at, i, k), _u(at, a, k), divide(conj(_v(at, b, k)), _level(at, k)))


def _sum(*parts: Partial) -> Partial:
    return lambda at, out, k, m: add(*(part(at, out, k, m) for part in parts))


def _half(part: Partial) -> Partial:
    return lambda at, out, k, m: mul(HALF, part(at, out, k, m))


def _conjugated(part: Partial) -> Partial:
    return lambda at, out, k, m: conj(part(at, out, k, m))


# --- QR factors and the pseudoinverse ------------------------------------------------------------------------------


def _upper(at: Point, out: Out, first: Callable[[Term], Term], second: Callable[[Term], Term]) -> Term:
    """Σ_p Φ†(i, p) first(i) second(p) R[p, j]."""
    i, j = out
    return at.summed(1, lambda p: mul(_triangle(p, i), first(i), second(p), at("qr_r", p, j)))


def _column(at: Point, k: Term, p: Term) -> Term:
    """Q[k, p], as A R⁻¹."""
    return at.summed(1, lambda q: mul(at.entry(k, q), at.of(("inv", "qr_r"), q, p)))


def _qr(at: Point, out: Out, k: Term, m: Term) -> Term:
    inverse = ("inv", "qr_r")
    return _upper(at, out, lambda i: conj(_column(at, k, i)), lambda p: at.of(inverse, m, p))


def _qr_conjugate(at: Point, out: Out, k: Term, m: Term) -> Term:
    inverse = ("inv", "qr_r")
    return _upper(at, out, lambda i: conj(at.of(inverse, m, i)), lambda p: _column(at, k, p))


def _pinv(at: Point, out: Out, k: Term, m: Term) -> Term:
    i, j = out
    return mul(MINUS_ONE, at("pinv", i, k), at("pinv", m, j))


def _pinv_conjugate(at: Point, out: Out, k: Term, m: Term) -> Term:
    """Of dA†[m, k]: A⁺ A⁺† dA† (1 − A A⁺) + (1 − A⁺ A) dA† A⁺† A⁺."""
    i, j = out
    left = at.summed(0, lambda p: mul(at("pinv", i, p), conj(at("pinv", m, p))))
    right = at.summed(1, lambda p: mul(conj(at("pinv", p, k)), at("pinv", p, j)))
    rows = add(delta(k, j), negate(at.summed(1, lambda p: mul(at.entry(k, p), at("pinv", p, j)))))
    columns = add(delta(i, m), negate(at.summed(0, lambda p: mul(at("pinv", i, p), at.entry(p, m)))))
    return add(mul(left, rows), mul(columns, right))


_EIGH = tuple(("_eigh({np}, {0})", place) for place in range(2))
_SVD = tuple(("_svd({np}, {0})", place) for place in range(3))


def _rectangular(
    name: str, numpy: str, partials: tuple[Partial, Partial], domain: str, cost: Fraction, **more: Any
) -> MatrixRow:
    """A function of a matrix of any shape by its partials by X and X̄; the one by a real X is their sum."""
    told: dict[str, Any] = {"latex": rf"\operatorname{{{name}}}".replace("_", r"\_"), "real_partial": _sum(*partials)}
    partial, conjugate = partials
    return MatrixRow(
        name,
        numpy,
        partial=partial,
        conjugate_partial=conjugate,
        domain=domain,
        cost=cost,
        square=False,
        natural=False,
        **(told | more),
    )


def _levels(row: MatrixRow, name: str) -> MatrixRow:
    """The values of a decomposition, with one number for those that rounding cannot tell apart."""
    text, latex = f"_{name}({{np}}, {{0}})", named_operator(name)
    return replace(row, name=name, numpy=text, latex=latex, joint=None, levels_of=row.name)


_EIGVALSH = MatrixRow(
    "eigvalsh",
    "_eigvalsh({np}, {0})",
    r"\operatorname{eigvalsh}",
    domain="distinct eigenvalues",
    cost=Fraction(4, 3),
    result="r",
    joint=_EIGH[0],
    natural=False,
    real_valued=True,
    partial=_eigenvalue,
    hermitian=True,
)

_SVDVALS = _rectangular(
    "svdvals",
    "_svdvals({np}, {0})",
    (_half(_singular_value), _half(_conjugated(_singular_value))),
    "distinct singular values",
    Fraction(8, 3),
    real_partial=_singular_value,
    result="c",
    joint=_SVD[1],
    real_valued=True,
)

DECOMPOSITIONS = (
    MatrixRow(
        "cholesky",
        '_cholesky({np}, {0}, "{0}")',
        r"\operatorname{chol}",
        domain="X positive definite",
        cost=Fraction(1, 3),
        natural=False,
        partial=_cholesky,
        hermitian=True,
    ),
    _EIGVALSH,
    _levels(_EIGVALSH, "eiglevels"),
    MatrixRow(
        "eigvecsh",
        "_eigvecsh({np}, {0})",
        r"\operatorname{eigvecsh}",
        domain="distinct eigenvalues",
        cost=Fraction(9),
        joint=_EIGH[1],
        natural=False,
        partial=_eigenvector,
        hermitian=True,
    ),
    _SVDVALS,
    _levels(_SVDVALS, "svdlevels"),
    _rectangular(
        "svd_left",
        "_svd_left({np}, {0})",
        (_sum(_left_within, _left_beyond, _phase), _sum(_left_conjugate_within, _phase_conjugate)),
        "distinct singular values",
        Fraction(14),
        real_partial=_sum(_left_within, _left_conjugate_within, _left_beyond),
        joint=_SVD[0],
    ),
    _rectangular(
        "svd_right",
        "_svd_right({np}, {0})",
        (_right, _right_conjugate),
        "distinct singular values",
        Fraction(14),
        result="cc",
        joint=_SVD[2],
    ),
    _rectangular(
        "qr_r", '_qr_r({np}, {0}, "{0}")', (_qr, _qr_conjugate), "independent columns", Fraction(2), result="cc"
    ),
    _rectangular(
        "pinv",
        "{np}.linalg.pinv({0})",
        (_pinv, _pinv_conjugate),
        "constant rank",
        Fraction(16),
        latex=r"{}^{+}",
        result="cr",
    ),
)


def _by_block(*_: object) -> Term:
    raise NotImplementedError("the derivative of a primary function is a block of its value")


PRIMARY = tuple(
    MatrixRow(
        name,
        f"_{name}({{np}}, {{0}})",
        named_operator(name),
        _by_block,
        domain,
        cost,
        natural=False,
        slope=slope,
    )
    for name, domain, cost, slope in (
        ("expm", "everywhere", Fraction(20), (ONE, ("expm",))),
        ("sqrtm", "no eigenvalue on the negative real axis", Fraction(30), (HALF, ("sqrtm", "inv"))),
    )
)

MATRIX_TABLE.update({row.name: row for row in (*DECOMPOSITIONS, *PRIMARY)})
