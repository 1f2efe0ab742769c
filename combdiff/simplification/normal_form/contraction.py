"""Contraction normal form: every Σ is a connected network of factors, and δ's over index forms are solved.

    Σ_i x[i]·(Σ_i A[i, j]·y[k])        becomes  y[k]·(Σ_i x[i])·(Σ_i A[i, j])
    Σ_k δ(i + k, d)·w[k]               becomes  w[d − i]·[0 ≤ d − i < n]
    Σ_i A[a, i]·(δ(i, d) − v[i])       becomes  A[a, d] − Σ_i A[a, i]·v[i]
    δ(a, d)·x[a]·y[d]                  becomes  δ(a, d)·x[d]·y[d]
    Σ_i A[i, j]/(x[i]·y[j])            becomes  (Σ_i A[i, j]/x[i])/y[j]

Names of bound indices make these steps awkward for rewriting, so they are done on terms before, between and after the
saturations of the e-graph: sums in a product are joined (their indices renamed apart), δ's are solved for summed
indices and conditions made plain (see `delta_solver`), a product is distributed over a sum that holds a δ which the Σ
can take, factors without summed indices are moved out, and what is not connected through summed indices is split.

Invariant: the value of the term is unchanged; in the result no Σ holds a number, a Σ, two unconnected parts, or a δ
that it can take, whatever budgets there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from combdiff.ir import (
    MINUS_ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Delta,
    Domain,
    Mul,
    Names,
    Number,
    Primitive,
    Real,
    Sum,
    SummedProduct,
    Term,
    Var,
    add,
    conj,
    connected,
    dtype_of,
    factors_of,
    function,
    is_mirror,
    mul,
    negate,
    read_within_a_turn,
    size_of_axis,
    substitute,
    total,
    with_part_outside,
    with_real_moduli,
)
from combdiff.simplification.egraph.extraction import index_variables
from combdiff.simplification.normal_form.around_axes import turned
from combdiff.simplification.normal_form.conditions import plain_conditions, where_they_hold
from combdiff.simplification.normal_form.delta_solver import can_take, on_diagonals, solve, solve_at_ends
from combdiff.simplification.normal_form.fourier_inversion import collapsed
from combdiff.simplification.normal_form.masks import exponential
from combdiff.simplification.normal_form.places import with_places_joined, without_counted_places


def normalise(term: Term, names: Names) -> Term:
    """The contraction normal form of a scalar term; new names for bound indices come from `names`."""
    return _Contracting(names, _split, solve_at_ends).normal(term)


def without_deltas(term: Term, names: Names) -> Term:
    """The term in which no Σ holds a δ that it can take; networks without such a δ stay as they are."""
    return _Contracting(names, one_sum, solve).solved(term)


def without_deltas_and_ends(term: Term, names: Names) -> Term:
    """As `without_deltas`, where [i ≤ 0] of a summed index that counts from 0 is such a δ, too."""
    return _Contracting(names, one_sum, solve_at_ends).solved(term)


class _Contracting:
    """Contracts the networks of one term, what occurs in it several times once.

    `written` says how a network is written, `solve` how its δ's and conditions are solved.
    """

    def __init__(
        self,
        names: Names,
        written: Callable[[SummedProduct], Term],
        solve: Callable[[SummedProduct, Names], SummedProduct],
    ) -> None:
        self.names = names
        self.written = written
        self.solve = solve
        self._normal: dict[Term, Term] = {}
        self._solved: dict[Term, Term] = {}

    def normal(self, term: Term) -> Term:
        """The term with all networks in contraction normal form."""
        if term not in self._normal:
            self._normal[term] = self._with_normal_parts(term)
        return self._normal[term]

    def _with_normal_parts(self, term: Term) -> Term:
        match term:
            case Sum() | Mul():
                found = self._contracted(self._joined(term, self.normal))
                return mul(*map(self._with_part_outside, factors_of(found)))
            case Conj():
                return _conjugate(self.normal(term.body))
            case Add():
                return with_places_joined(add(*map(self.normal, term.terms)))
            case Apply():
                return read_within_a_turn(term)
            case Primitive(name="exp", arguments=(argument,)):
                return exponential(self.normal(argument))
            case Primitive(name="real" | "imag" as part, arguments=(argument,)):
                return function(part, self.normal(argument))
            case Primitive(name="log", arguments=(argument,)):
                return _logarithm(self.normal(argument))
            case Primitive(name="power", arguments=(Mul() as base, exponent)) if exponent is MINUS_ONE:
                return _reciprocal(self.normal(base))
        return term.with_children(tuple(map(self.normal, term.children)))

    def _with_part_outside(self, factor: Term) -> Term:
        """Re(Σ A b) for a Σ of Re(A b), a product of matrices, and without Re where it turns out to be real."""
        whole = with_part_outside(factor) if isinstance(factor, Sum) else None
        if whole is None:
            return factor
        found = self.normal(whole)
        real = isinstance(found, Primitive) and found.name == "real"
        moduli = with_real_moduli(found.children[0], inside_roots=False) if real else None
        return found if moduli is None else self.normal(moduli)

    def solved(self, term: Term) -> Term:
        """The term with those networks solved that hold a δ which a Σ of theirs can take."""
        if term not in self._solved:
            self._solved[term] = self._with_solved_parts(term)
        return self._solved[term]

    def _with_solved_parts(self, term: Term) -> Term:
        if isinstance(term, Sum | Mul) and _is_unsolved(term, ()):
            return self._contracted(self._joined(term, self.solved))
        if not term.children or isinstance(term, Apply):
            return term
        children = tuple(map(self.solved, term.children))
        return term if children == term.children else term.with_children(children)

    def _contracted(self, product: SummedProduct) -> Term:
        """Σ of a product, whose own networks are in normal form."""
        product = self.solve(collapsed(product), self.names)
        factors = product.factors
        if ZERO in factors:
            return ZERO
        told = where_they_hold(factors)
        if told is not factors or any(isinstance(f, Sum) for f in factors):  # where a sum had one part left
            return self._contracted(self._opened(product.indices, told))
        waiting = next((n for n, f in enumerate(factors) if isinstance(f, Add) and _waits(f, product.indices)), None)
        if waiting is None:
            plain = replace(product, factors=tuple(plain_conditions(on_diagonals(factors))))
            return self.written(without_counted_places(plain))
        rest, parts = [*factors[:waiting], *factors[waiting + 1 :]], factors[waiting].children
        return add(*(self._contracted(self._opened(product.indices, [part, *rest])) for part in parts))

    def _joined(self, term: Term, part: Callable[[Term], Term]) -> SummedProduct:
        """The summed indices and the factors of a nest of sums and products, `part` of each."""
        if isinstance(term, Sum):
            renamed = tuple(self.names.fresh(index) for index in term.indices)
            body = substitute(term.body, dict(zip(term.indices, renamed, strict=True)))
            return _multiplied(renamed, [self._joined(body, part)])
        if not isinstance(term, Mul):
            return self._opened((), [part(term)])
        return _multiplied((), [self._joined(factor, part) for factor in term.factors])

    def _opened(self, indices: Sequence[Var], factors: Iterable[Term]) -> SummedProduct:
        """The product with the indices and factors of sums and products among its factors in their place."""
        parts = (
            self._joined(factor, lambda part: part) if isinstance(factor, Sum | Mul) else SummedProduct((), (factor,))
            for factor in factors
        )
        return _multiplied(indices, list(parts))


def _multiplied(indices: Sequence[Var], parts: Sequence[SummedProduct]) -> SummedProduct:
    """Σ over indices of a product of such sums, each of which has names of its own."""
    return SummedProduct(
        (*indices, *(index for part in parts for index in part.indices)),
        tuple(factor for part in parts for factor in part.factors),
    )


def _conjugate(term: Term) -> Term:
    """The conjugate pushed to the leaves of sums and products; a real term is its own."""
    if dtype_of(term) is not complex:
        return term
    match term:
        case Mul() | Add():
            return term.with_children(tuple(_conjugate(child) for child in term.children))
        case Sum():
            return total(term.indices, _conjugate(term.body))
        case Primitive() if is_mirror(term):
            return term.with_children(tuple(_conjugate(child) for child in term.children))
    return conj(term)


def _reciprocal(term: Term) -> Term:
    """1/x; of a product of which no factor has all indices as a product of reciprocals, which are fewer numbers."""
    indices = [index_variables(factor) for factor in factors_of(term)]
    together = any(each == index_variables(term) for each in indices)
    parts = [term] if together else factors_of(term)
    return mul(*(function("power", part, MINUS_ONE) for part in parts))


def _is_unsolved(term: Term, indices: Sequence[Var]) -> bool:
    """Whether a Σ of a network, or the Σ over indices around it, can take a δ in it; reads at integers are taken."""
    match term:
        case Delta():
            return turned(term, indices) is not term or (not term.lookup and can_take(indices, term))
        case Sum():
            return _is_unsolved(term.body, (*indices, *term.indices))
        case Mul() | Conj():
            return any(_is_unsolved(child, indices) for child in term.children)
        case Add():
            return _waits(term, indices)
    return False


def _waits(term: Term, indices: Sequence[Var]) -> bool:
    """Whether a factor holds a δ that the Σ over indices around it can take."""
    if isinstance(term, Delta):
        return can_take(indices, term)
    return isinstance(term, Sum | Mul | Add | Conj) and any(_waits(child, indices) for child in term.children)


# --- connected parts -----------------------------------------------------------------------------------------------


def one_sum(product: SummedProduct) -> Term:
    """One Σ, times the factors that hold none of its indices."""
    outside = [f for f in product.factors if f.free.isdisjoint(product.indices)]
    inside = [f for f in product.factors if f not in outside]
    unused = [i for i in product.indices if not any(i in f.free for f in inside)]
    summed = total((i for i in product.indices if i not in unused), mul(*inside))
    return mul(*outside, *map(_number_of_values, unused), summed)


def _split(product: SummedProduct) -> Term:
    """A product of sums over connected parts, times the factors that hold no summed index."""
    outside = [f for f in product.factors if f.free.isdisjoint(product.indices)]
    inside = [f for f in product.factors if not f.free.isdisjoint(product.indices)]
    parts = [part.term for part in connected(product.indices, inside)]
    unused = [i for i in product.indices if not any(i in f.free for f in inside)]
    return mul(*outside, *parts, *map(_number_of_values, unused))


def _number_of_values(index: Var) -> Term:
    """Σ_i 1: the size of the domain; over the real line there is no such number."""
    assert isinstance(index.type, Domain)
    return total((index,), Number(1)) if isinstance(index.type, Real) else size_of_axis(index.type)


def _logarithm(argument: Term) -> Term:
    """log x; of the inverse of a number whose type is real minus its logarithm: of a complex one -1 lies on the cut."""
    match argument:
        case Primitive(name="power", arguments=(base, exponent)) if exponent is Number(-1):
            if dtype_of(base) is not complex:
                return negate(function("log", base))
    return function("log", argument)
