"""Programs in matrix notation, where they have one.

    x ↦ d ↦ 2 Σ_i A[d,i] x[i]                          2·A·x
    (X, u) ↦ (i, j) ↦ Σ_k X[k,i] u[k] X[k,j]           Xᵀ·diag(u)·X

Products are `·`, products and quotients element by element ⊙ and ⊘, powers of elements ^∘; ᵀ, * and † are transpose,
conjugate and adjoint; 𝟏 is the vector of ones and 𝐈 the unit matrix, of whatever size fits. Functions are applied
element by element. A definition or result that is no linear algebra of vectors and matrices (tensors of higher order,
index arithmetic, integrals) keeps its index notation.

Invariant: what is written has the value of the program, 𝟏 and 𝐈 of the right sizes put in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from combdiff.ir import (
    TABLE,
    Add,
    Apply,
    Conj,
    Coordinate,
    Delta,
    Lambda,
    Let,
    Number,
    Primitive,
    Pullback,
    Range,
    Real,
    Space,
    Sum,
    Term,
    Tuple,
    Var,
    Whole,
    add,
    axes_of,
    dtype_of,
    factors_beside,
    factors_of,
    free_indices,
    is_call,
    is_domain,
    is_made,
    let,
    mul,
    put_back,
    raised,
    split,
    subterms,
    type_of,
    uses,
    with_part_outside,
)
from combdiff.ir import Function as Map
from combdiff.printing.chains import (
    IDENTITY,
    Atom,
    Chain,
    as_atom,
    broadcast,
    document,
    exponent_document,
    image,
    of_atom,
    of_number,
    power,
    symmetries,
    total,
)
from combdiff.printing.contraction import Contraction, NoMatrixNotation
from combdiff.printing.documents import Doc, FunctionCall, Marked, ResultRow, Sheet, Subscripted
from combdiff.printing.folds import FoldSign
from combdiff.printing.monomials import Monomial, monomial, terms_of_sum
from combdiff.printing.naming import Scope
from combdiff.printing.notation import Layout, opened, unit_of
from combdiff.printing.recurrences import AtStep
from combdiff.simplification import symbols, with_known_symmetries

Indices = tuple[Var, ...]
MOST_PUT_BACK = 28  # symbols of a definition that is written where it is used
MOST_REPEATED = 3  # a whole power up to which the factors of a sum stand side by side


def matrix_sheet(term: Term) -> Sheet:
    """The document of a program: its definitions and results in matrix notation where there is one."""
    parts, layout, scope = opened(with_known_symmetries(_with_short_definitions(term)))
    writer = _Notation(layout, scope)
    definitions = tuple(writer.definitions(parts.definitions))
    return Sheet((), definitions, writer.result(parts.result), unit_of(scope))


def _with_short_definitions(term: Term) -> Term:
    """The program with what is short, used once and named by nobody where it is used: Aᵀ·W·r needs no name for W·r."""
    if not isinstance(term, Lambda) or not isinstance(term.body, Let):
        return term
    bindings, result = split(term.body)
    whole = Tuple((*(value for _, value in bindings), result))
    count, arguments = uses(whole), _read_whole(whole)
    put: dict[Var, Term] = {}
    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = put_back(value, put, {})
        nobodys = is_made(var.name) or var.name.endswith("_bar")
        short = nobodys and count[var] == 1 and symbols(value) <= MOST_PUT_BACK
        if short and var not in arguments and not is_call(value):
            put[var] = value
        else:
            kept.append((var, value))
    return Lambda(term.parameters, let(kept, put_back(result, put, {}))) if put else term


def _read_whole(term: Term) -> set[Term]:
    """What is read otherwise than at indices: the matrices of matrix functions, which print by their names."""
    return {
        child
        for node in subterms(term)
        for child in node.children
        if isinstance(space := type_of(child), Space)
        and space.order
        and not (isinstance(node, Apply) and child is node.function)
    }


def _has_untold_axis(value: Term) -> bool:
    """Whether a definition repeats its elements along an axis of a size that only indices tell: t[i,j<1] = x[i]."""
    return isinstance(value, Lambda) and any(
        isinstance(index.type, Range) and isinstance(index.type.size, int) and index not in value.body.free
        for index in value.parameters
    )


class _Notation:
    """Terms to chains; knows how the variables of the program are shown."""

    def __init__(self, layout: Layout, scope: Scope) -> None:
        self.layout = layout
        self.scope = scope

    def definitions(self, pairs: Iterable[tuple[Var, Term]]) -> Iterator[tuple[Doc, Doc]]:
        """All definitions; those between the boundary value and the step of a state are of one step, with its index."""
        begun: set[Var] = set()
        for var, value in pairs:
            begun ^= {var} if isinstance(value, AtStep) and not value.beside else set()
            yield self.layout.definition(var, value, self.scope) if begun else self.definition(var, value)

    def definition(self, var: Var, value: Term) -> tuple[Doc, Doc]:
        """`name = value`, with indices on both sides where the value has no matrix notation."""
        if isinstance(value, AtStep) or _has_untold_axis(value):
            return self.layout.definition(var, value, self.scope)
        try:
            return self.layout.doc(var, self.scope), document(self.tensor(value))
        except NoMatrixNotation:
            return self.layout.definition(var, value, self.scope)

    def result(self, term: Term) -> Doc:
        """A result, or each of several."""
        if isinstance(term, Tuple):
            return ResultRow(tuple(self.result(item) for item in term.items))
        try:
            return document(self.tensor(term))
        except NoMatrixNotation:
            return self.layout.doc(term, self.scope)

    # --- whole tensors ---------------------------------------------------------------------------------------------

    def tensor(self, term: Term) -> Chain:
        """A scalar, vector or matrix."""
        if any(isinstance(node, FoldSign) for node in subterms(term)):
            raise NoMatrixNotation("a largest number or a product over indices")
        if isinstance(term, Lambda):
            if len(term.parameters) > 2 or not all(is_domain(p.type) for p in term.parameters):
                raise NoMatrixNotation("a tensor of higher order")
            return self.value(term.body, term.parameters)
        if isinstance(term, Var):
            return of_atom(self._named(term))
        if isinstance(space := type_of(term), Space) and space.order:
            return of_atom(self._whole(term))
        return self.value(term, ())

    def value(self, term: Term, indices: Indices) -> Chain:
        """A scalar term as a chain over all of the indices, in their order."""
        own = tuple(i for i in indices if i in term.free)
        term = _over_units(term)
        if isinstance(term, Add):
            common, rest = _common_matrices(term, own)
            if common:
                return broadcast(self._product(mul(*common, rest), own), own, indices)
            return broadcast(total([self.value(part, own) for part in terms_of_sum(term)]), own, indices)
        return broadcast(self._product(term, own), own, indices)

    def _product(self, term: Term, indices: Indices) -> Chain:
        """Σ of a product."""
        parts = monomial(term)
        summed: Indices = ()
        if len(parts.above) == 1 and not parts.below:
            ((base, exponent),) = parts.above.items()
            if isinstance(base, Sum) and exponent == 1:
                if whole := with_part_outside(base):
                    contraction = self._contraction((), indices)
                    return self._filled(contraction, parts.coefficient, {whole: 1}, {}, indices)
                summed, inside = base.indices, monomial(base.body)
                contraction = self._contraction(summed, indices)
                contraction.scale(parts.coefficient)
                return self._filled(contraction, inside.coefficient, inside.above, inside.below, (*summed, *indices))
        contraction = self._contraction(summed, indices)
        return self._filled(contraction, parts.coefficient, parts.above, parts.below, indices)

    def _contraction(self, summed: Indices, indices: Indices) -> Contraction:
        if any(isinstance(i.type, Real) for i in (*summed, *indices)):
            raise NoMatrixNotation("an integral or a function of a real number")
        return Contraction(summed, indices)

    def _filled(
        self, contraction: Contraction, number: Number, above: dict[Term, int], below: dict[Term, int], scope: Indices
    ) -> Chain:
        contraction.scale(number)
        for sum_ in [base for base, exponent in above.items() if isinstance(base, Add) and exponent == 1]:
            common, rest = _common_matrices(sum_, scope)
            if common:
                del above[sum_]
                for factor in (*common, rest):
                    above[factor] = above.get(factor, 0) + 1
        for factors, sign in ((above, 1), (below, -1)):
            for base, exponent in factors.items():
                self._place(contraction, base, sign * exponent, scope)
        return contraction.reduced()

    def _place(self, contraction: Contraction, base: Term, exponent: int, scope: Indices) -> None:
        """One factor with its exponent; low powers of vectors and matrices as repeated factors."""
        own = _in_order(base, scope)
        if len(own) > 2:
            raise NoMatrixNotation("a factor with more than two indices")
        value = self._factor(base, own)
        if not own:
            contraction.place(value, own, exponent)
        elif exponent == 1 and isinstance(base, Apply) and base.arguments == own * 2 and not _is_map(base.function):
            contraction.place(self.tensor(base.function), own * 2)  # so that Σ_i A[i,i] is a trace
        elif 0 < exponent <= MOST_REPEATED:
            for _ in range(exponent):
                contraction.place(value, own)
        else:
            contraction.place(power(value, exponent_document(Number(exponent)), value.complex), own)

    # --- factors ---------------------------------------------------------------------------------------------------

    def _factor(self, term: Term, indices: Indices) -> Chain:
        """A factor of a product over exactly its own indices."""
        match term:
            case Var():
                return of_atom(self._named(term))
            case Number():
                return of_number(term)
            case Coordinate() if all(isinstance(var.type, Whole) for var in term.free):
                return of_atom(Atom(self.layout.doc(term, self.scope), 0))
            case Sum() | Add():
                return self.value(term, indices)
            case Conj():
                return self.value(term.body, indices).conjugated
            case Delta() if len(indices) == 2 and {term.left, term.right} == set(indices):
                if not _runs_over(indices[0], indices[1].type):
                    raise NoMatrixNotation("a unit matrix that is not square")
                return of_atom(IDENTITY)
            case Primitive():
                return self._primitive(term, indices)
            case Apply():
                return self._access(term, indices)
            case Pullback():
                return of_atom(self._call(term))
        raise NoMatrixNotation(f"a {type(term).__name__}")

    def _primitive(self, term: Primitive, indices: Indices) -> Chain:
        is_complex = dtype_of(term) is complex
        if term.name not in TABLE:
            return of_atom(self._whole(term))
        if term.name == "power":
            base, exponent = term.arguments
            if isinstance(exponent, Number):
                return power(self.value(base, indices), exponent_document(exponent), is_complex)
            own = _in_order(exponent, indices)
            shown = self.value(exponent, indices if own else ())
            return power(self.value(base, indices), document(shown), is_complex)
        return image(term.name, [self.value(a, indices) for a in term.arguments], is_complex)

    def _access(self, term: Apply, indices: Indices) -> Chain:
        """An element of a vector or matrix, or of a matrix function of one; `A[i,i]` is of its diagonal."""
        if _is_map(term.function):
            return of_atom(self._call(term))
        indices_read = [a for a in term.arguments if isinstance(a, Var) and a in indices]
        if len(indices_read) < len(term.arguments):
            raise NoMatrixNotation("index arithmetic")
        if not all(map(_runs_over, indices_read, axes_of(term.function))):
            raise NoMatrixNotation("a part of a tensor")
        value = self.tensor(term.function)
        if value.order != len(term.arguments) or value.order > 2:
            raise NoMatrixNotation("a tensor of higher order")
        if len(indices) < value.order:
            contraction = Contraction((), indices)
            contraction.place(value, (indices[0], indices[0]))
            return contraction.reduced()
        return value if term.arguments == indices else value.transposed

    def _named(self, term: Term) -> Atom:
        space = type_of(term)
        if not isinstance(space, Space) or space.order > 2 or any(isinstance(axis, Real) for axis in space.axes):
            raise NoMatrixNotation("a tensor of higher order")
        return Atom(self.layout.doc(term, self.scope), space.order, space.dtype is complex, symmetries(space))

    def _whole(self, term: Term) -> Atom:
        """A matrix function of a matrix, or the value or gradient of a named map."""
        if isinstance(term, Apply | Pullback):
            return self._call(term)
        if not isinstance(term, Primitive):
            raise NoMatrixNotation("a tensor of higher order")
        space = type_of(term)
        assert isinstance(space, Space)
        arguments = [as_atom(self.tensor(argument)) for argument in term.arguments]
        if space.order not in (0, 2) or any(argument.order != 2 for argument in arguments):
            raise NoMatrixNotation("a stack of matrices")
        docs = tuple(argument.doc for argument in arguments)
        doc = Marked(docs[0], "⁻¹") if term.name == "inv" else FunctionCall(term.name, docs)
        return Atom(doc, space.order, space.dtype is complex, symmetries(space))

    def _call(self, term: Apply | Pullback) -> Atom:
        """The value of a named map, or its gradient, with the arguments in matrix notation."""
        space = type_of(term)
        assert isinstance(space, Space)
        if space.order > 2:
            raise NoMatrixNotation("a tensor of higher order")
        arguments = tuple(document(self.tensor(argument)) for argument in term.arguments)
        if isinstance(term, Pullback):
            cotangent = (document(self.tensor(term.cotangent)),)
            doc = self.layout.pulled_back(term, arguments, cotangent, self.scope)
        else:
            doc = Subscripted(self.layout.doc(term.function, self.scope), arguments, True)
        return Atom(doc, space.order, space.dtype is complex)


def _over_units(term: Term) -> Term:
    """A product with a sum that has a δ among its addends, multiplied out: diag(u) − u·uᵀ, not u times a sum."""
    for factor in factors_of(term):
        if isinstance(factor, Add) and any(isinstance(f, Delta) for part in factor.terms for f in factors_of(part)):
            rest = factors_beside(factor, term)
            if factor not in rest:  # powers of a sum are written as such
                return add(*(_over_units(mul(*rest, part)) for part in factor.terms))
    return term


def _common_matrices(term: Add, scope: Indices) -> tuple[list[Term], Term]:
    """The accesses to matrices that are factors of every term of a sum, and the sum without them."""
    parts = [monomial(part) for part in term.terms]
    shared = [f for f in parts[0].above if isinstance(f, Apply) and all(f in part.above for part in parts)]
    common: list[Term] = [f for f in shared if len(_in_order(f, scope)) == 2]
    return common, add(*(_without(part, common) for part in parts)) if common else term


def _without(parts: Monomial, factors: list[Term]) -> Term:
    """A product with some of its factors, once each, left out."""
    above = (raised(base, n - (base in factors)) for base, n in parts.above.items())
    return mul(parts.coefficient, *above, *(raised(base, -n) for base, n in parts.below.items()))


def _is_map(term: Term) -> bool:
    return isinstance(type_of(term), Map)


def _runs_over(index: Var, axis: object) -> bool:
    """Whether an index takes all values of an axis, which may be a cycle: in x[:4] it does not."""
    size = getattr(axis, "size", None)
    return index.type == axis or (size is not None and getattr(index.type, "size", None) == size)


def _in_order(term: Term, scope: Indices) -> Indices:
    """Those of some indices that occur in a term, in the order in which they do."""
    return tuple(index for index in free_indices(term) if index in scope)
