"""The shared layout: terms to documents, in the order and grouping a physicist would write.

    Σ_{i.1} 4·x[i.1]·x[i.1]·power(y, -1)   is laid out as   4 · fraction(Σ_i x[i]², y)

Products: the number first, moved out of sums; then δ's and conditions; then the factors in the order of the term;
then sums in parentheses; then Σ's. Equal factors become a power, negative powers a denominator. Sums: a positive
number first, else the first positive term, then the others in the order of the term; so `-a + b` is `b - a`.

Invariant: the document has the value of the term; what is shown depends on the term alone, never on hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm, pi

from combdiff.ir import (
    ONE,
    SIGNS,
    Add,
    Affine,
    Apply,
    Conj,
    Coordinate,
    Delta,
    Implicit,
    Indicator,
    Lambda,
    Mul,
    Number,
    Primitive,
    Pullback,
    Real,
    Relation,
    Scan,
    Space,
    Sum,
    Term,
    Tuple,
    Unequal,
    Var,
    Whole,
    half_turns,
    index_form,
    index_left,
    names_in,
    remainder_parts,
    squared_modulus,
    whole_tensor,
)
from combdiff.ir import Function as Map
from combdiff.printing.bounds import sizes_of, split_bounds, split_inequalities, write_bounds
from combdiff.printing.components import by_components
from combdiff.printing.conditions import (
    around_cycle_unsaid,
    congruence,
    form_of,
    write_conditions,
    write_form,
    zero_around,
)
from combdiff.printing.documents import (
    Arrow,
    BigFold,
    BigSum,
    Bound,
    Derivative,
    Division,
    Doc,
    FunctionCall,
    Iverson,
    Juxtaposition,
    Kronecker,
    Literal,
    Marked,
    Modulo,
    Name,
    Projected,
    ResultRow,
    Rounded,
    Sheet,
    Signed,
    Subscripted,
    Superscript,
    compared,
)
from combdiff.printing.folds import FoldSign, with_folds
from combdiff.printing.indirect import read_directly
from combdiff.printing.inferred_domains import InferredDomains, ranging, size_of
from combdiff.printing.monomials import Monomial, monomial, terms_of_sum
from combdiff.printing.naming import Scope, base_name
from combdiff.printing.outline import Outline, outline, postorder
from combdiff.printing.pointfree import whole
from combdiff.printing.projectors import Projection, with_projectors
from combdiff.printing.recurrences import AtStep
from combdiff.printing.signs import added, with_sign


def sheet(term: Term) -> Sheet:
    """The document of any term: parameters, definitions and result."""
    parts, layout, scope = opened(with_projectors(term))
    return layout.sheet(parts, scope)


def opened(term: Term) -> tuple[Outline, Layout, Scope]:
    """The outline of any term, how it is laid out, and the names of its parameters and definitions."""
    parts = outline(read_directly(with_folds(term)))
    parts = replace(parts, definitions=tuple(by_components(parts.definitions)))
    expressions = [*(value for _, value in parts.definitions), parts.result]
    parameters = [var for group in parts.groups for var in group]
    defined = [var for var, _ in parts.definitions]
    nodes = list(postorder(*expressions))
    layout = Layout(nodes, parts.definitions)
    imaginary = any(isinstance(node, Number) and node.imag for node in nodes)
    free = frozenset().union(*(e.free for e in expressions)).difference(parameters, defined)
    outer = [node for node in nodes if isinstance(node, Var) and node in free]
    outer += [size for node in nodes if isinstance(node, Sum) for size in sizes_of(node)]
    outer += [Var(name, Whole()) for v in layout.unknown(nodes) for name in sorted(names_in(size_of(v.type)))]
    shown = dict.fromkeys((*parameters, *outer, *defined))  # what a size is called is told elsewhere, too
    scope = Scope(reserved=frozenset({"i"} if imaginary else ())).enter(shown)
    return parts, layout, scope


def unit_of(scope: Scope) -> str:
    """The imaginary unit beside the parameters and sizes of a program."""
    return "ⅈ" if "i" in scope.shown.values() else "i"


class Layout:
    """Terms to documents; knows which names are bound below every binder of the program."""

    def __init__(self, nodes: Sequence[Term], definitions: Sequence[tuple[Var, Term]]) -> None:
        self._inside: dict[Term, frozenset[str]] = {}
        self._domains = InferredDomains(nodes, [var for var, _ in definitions])
        self._untold = self._domains.untold(
            [(value.body, _own_axes(var, value)) for var, value in definitions if isinstance(value, AtStep)],
            [(value.body, _axes(var, value)) for var, value in definitions if isinstance(value, Lambda)],
        )
        steps = [value for _, value in definitions if isinstance(value, AtStep) and not value.beside]
        self._told_steps = {v for value in steps for v in self._domains.uses(value.body).given}
        for node in nodes:  # children first
            self._names_inside(node)

    def _names_inside(self, term: Term) -> frozenset[str]:
        """The base names bound by a term or anything in it."""
        if term not in self._inside:
            below = (self._names_inside(child) for child in term.children)
            self._inside[term] = frozenset(map(base_name, term.bound)).union(*below)
        return self._inside[term]

    def unknown(self, nodes: Iterable[Term]) -> Iterable[Var]:
        """The indices bound in the nodes that may have to be written with their domains."""
        for node in nodes:
            if isinstance(node, Lambda | Sum | FoldSign):
                yield from self._domains.unknown(node.bound, node.children[0])

    def _ranged(
        self, variables: Sequence[Var], body: Term, scope: Scope, inner: Scope, definition: Var | None = None
    ) -> tuple[Doc, ...]:
        """The names of indices, with their domains where a reader could not tell them."""
        unknown = self._domains.unknown(variables, body, scope.shown, definition)
        names = (Name(inner[var]) for var in variables)
        return tuple(
            ranging(name, v.type, inner.shown) if v in unknown else name  # type: ignore[arg-type]
            for v, name in zip(variables, names, strict=True)
        )

    def _enter(self, scope: Scope, variables: Sequence[Var], body: Term) -> Scope:
        return scope.enter(variables, self._names_inside(body))

    def sheet(self, parts: Outline, scope: Scope) -> Sheet:
        """A whole outline."""
        groups = tuple(_names(group, scope) for group in parts.groups)
        definitions = tuple(self.definition(var, value, scope) for var, value in parts.definitions)
        return Sheet(groups, definitions, self.doc(parts.result, scope), unit_of(scope))

    def definition(self, var: Var, value: Term, scope: Scope) -> tuple[Doc, Doc]:
        """`name = value`, the indices of a tensor on the left."""
        name = Name(scope[var])
        if isinstance(value, AtStep):
            inner = self._enter(scope, value.indices, value.body)
            left = Subscripted(name, self._places(var, value, inner), False) if value.place else name
            return left, self.doc(value.body, inner)
        if not isinstance(value, Lambda):
            return name, self.doc(value, scope)
        inner = self._enter(scope, value.parameters, value.body)
        names = self._ranged(value.parameters, value.body, scope, inner, var)
        left = Subscripted(name, names, _is_round(None, value.parameters))
        return left, self.doc(value.body, inner)

    def _places(self, var: Var, value: AtStep, scope: Scope) -> tuple[Doc, ...]:
        """The indices of a recurrence, those with their domains that nothing else tells: `t<5 + 1`."""
        uses = self._domains.uses(value.body)
        first = value.place[: len(value.place) - value.own]
        steps = [v for v in value.indices if any(v in place.free for place in first)]
        told = uses.given if value.beside else self._told_steps  # by any state of the iteration
        unknown = [v for v in steps if v in uses.other or (value.open and v not in told)]
        unknown += [v for v in steps if value.beside and v not in value.body.free and v not in unknown]
        unknown += [v for axis, v in _own_axes(var, value) if axis in self._untold or v in uses.other]
        ranges: dict[Doc, Doc] = {Name(scope[v]): ranging(Name(scope[v]), v.type, scope.shown) for v in unknown}  # type: ignore[arg-type]
        found = []
        for doc in self._indices(value.place, scope):
            if isinstance(doc, Signed):
                doc = Signed(tuple((negative, ranges.get(part, part)) for negative, part in doc.terms))
            found.append(ranges.get(doc, doc))
        return tuple(found)

    def doc(self, term: Term, scope: Scope) -> Doc:
        """Any term, with its sign if it has one."""
        return with_sign(*self._signed(term, scope))

    def _arguments(self, terms: Iterable[Term], scope: Scope) -> tuple[Doc, ...]:
        return tuple(self.doc(_unwrapped(term), scope) for term in terms)

    def _told_arguments(self, terms: Iterable[Term], scope: Scope) -> tuple[Doc, ...]:
        """The arguments of a named map, whose declaration tells the domains of their indices."""
        found = [_unwrapped(term) for term in terms]
        return tuple(self._lambda(t, scope, told=True) if isinstance(t, Lambda) else self.doc(t, scope) for t in found)

    def _indices(self, terms: Iterable[Term], scope: Scope) -> tuple[Doc, ...]:
        return tuple(
            self._add(term, scope, index=True) if isinstance(term, Add) else self.doc(term, scope) for term in terms
        )

    def _signed(self, term: Term, scope: Scope) -> tuple[bool, Doc]:
        """Whether a minus stands before a term, and the rest."""
        if isinstance(term, Number | Mul | Sum | Primitive | Pullback | Apply):
            return self._product(monomial(term).with_moduli(), scope)
        return False, self._single(term, scope)

    def _single(self, term: Term, scope: Scope) -> Doc:
        """A term that is not a product."""
        match term:
            case Var():
                return Name(scope[term])
            case Affine():
                return write_form(form_of(term), scope)
            case Coordinate():
                return self.doc(term.form, scope)
            case Apply():
                return self._apply(term, scope)
            case Lambda():
                return self._lambda(term, scope)
            case Sum():
                return self._sum(term, scope)
            case Add():
                return self._add(term, scope)
            case Conj():
                return Marked(self.doc(term.body, scope), "*")
            case Delta():
                return self._delta(term, scope)
            case Indicator() | Unequal():
                return Iverson(write_conditions([term], scope))
            case Relation():
                return self._relation(term, scope)
            case Primitive():
                return self._primitive(term, scope)
            case Tuple():
                return ResultRow(tuple(self.doc(item, scope) for item in term.items))
            case Pullback():
                return self._pullback(term, scope)
            case Implicit():
                return self._implicit(term, scope)
            case Scan():
                return self._scan(term, scope)
            case FoldSign():
                return self._fold(term, scope)
            case Projection():
                groups = tuple(self._indices(group, scope) for group in term.groups)
                return Projected(term.name, groups, self.doc(term.body, scope))
        raise TypeError(f"not a term without lets: {term!r}")

    # --- sums and products -----------------------------------------------------------------------------------------

    def _add(self, term: Add, scope: Scope, *, index: bool = False) -> Doc:
        """A sum; a number stands last in an integer that is an index, as in other index expressions."""
        numbers: list[tuple[bool, Doc]] = []
        others: list[tuple[bool, Doc]] = []
        for part in terms_of_sum(term):
            is_number = isinstance(part, Number)
            (numbers if is_number else others).append(self._signed(part, scope))
        before = [n for n in numbers if not n[0] and not index]
        return added((*before, *others, *(n for n in numbers if n not in before)))

    def _product(self, parts: Monomial, scope: Scope) -> tuple[bool, Doc]:
        above, below = self._side(parts.above, scope), self._side(parts.below, scope)
        whole = not below and parts.coefficient.exact  # 1/2 x
        number, denominator = (parts.coefficient, 1) if whole else _over_denominator(parts.coefficient)
        if denominator != 1:
            below = [Literal(denominator), *below]
        negative, coefficient = _unsigned(number)
        if not above or coefficient != Literal(1) or isinstance(coefficient.real, float):
            above = [coefficient, *above]
        top = _beside(above)
        return negative, Division(top, _beside(below)) if below else top

    def _side(self, factors: dict[Term, int], scope: Scope) -> list[Doc]:
        """The factors on one side of the fraction bar, in the order in which they are shown."""
        conditions = [base for base in factors if isinstance(base, Indicator | Unequal)]
        relations = [base for base in factors if isinstance(base, Relation)]
        values = (self._relation(base, scope) for base in relations)
        told = (*write_conditions(conditions, scope), *(one for relation in values for one in relation.conditions))
        shown: list[tuple[int, Doc]] = [(1, Iverson(told))] if told else []
        for base, exponent in factors.items():
            if base not in conditions and base not in relations:
                doc = self._factor(base, scope)
                shown.append((_rank(base, exponent), Superscript(doc, Literal(exponent)) if exponent > 1 else doc))
        shown.sort(key=lambda pair: pair[0])
        return [doc for _, doc in shown]

    def _delta(self, term: Delta, scope: Scope) -> Doc:
        if (unsaid := around_cycle_unsaid(term)) is not None:
            apart, size = unsaid
            return Iverson((zero_around(self.doc(apart, scope), size),))
        congruent = congruence(term, scope)
        return Iverson((congruent,)) if congruent else Kronecker(*self._indices(term.children, scope))

    def _relation(self, term: Relation, scope: Scope) -> Iverson:
        left, right = (self.doc(side, scope) for side in term.arguments)
        return compared(left, SIGNS[term.name], right)

    def _factor(self, base: Term, scope: Scope) -> Doc:
        """A factor, or the base of a power, that may be a product of its own."""
        parts = monomial(base)
        irreducible = parts.coefficient is ONE and parts.above == {base: 1} and not parts.below
        return self._single(base, scope) if irreducible else self.doc(base, scope)

    def _sum(self, term: Sum, scope: Scope) -> Doc:
        inner = self._enter(scope, term.indices, term.body)
        finite = [v for v in term.indices if not isinstance(v.type, Real)]
        real = [v for v in term.indices if isinstance(v.type, Real)]
        uses = self._domains.uses(term.body)  # bounds tell neither which of several domains it is, nor that of a cycle
        elsewhere = uses.other | self._domains.only_equal(term)
        conditions, body = split_bounds([v for v in finite if v not in elsewhere], term.body)
        bounded = write_bounds(finite, conditions, inner)
        plain = [v for v in finite if not any(Name(inner[v]) == bound.name for bound in bounded)]
        hidden = frozenset(finite).difference(plain)
        unbounded, body = split_inequalities(plain, hidden, body, inner)
        ranged = dict(zip((Name(inner[v]) for v in finite), self._ranged(finite, term.body, scope, inner), strict=True))
        indices = tuple(  # bounds say what the range is
            bound if bound.lower else replace(bound, name=ranged[bound.name])  # type: ignore[index, arg-type]
            for bound in (*unbounded, *bounded)
        )
        return BigSum(indices, _names(real, inner), self.doc(body, inner))

    def _fold(self, term: FoldSign, scope: Scope) -> Doc:
        """`max_j x[i,j]`, `Π_{j≠k} x[j]`, `Π_{j=0}^{k} x[j]`."""
        inner = self._enter(scope, term.indices, term.body)
        apart = () if term.apart is None else self._indices([term.apart], scope)
        if term.last is not None:
            (last,) = self._indices([term.last], scope)
            bounds = tuple(Bound(Name(inner[v]), Literal(0), last) for v in term.indices)
        else:
            names = self._ranged(term.indices, term.body, scope, inner)
            bounds = tuple(Bound(name, apart=apart) for name in names)  # type: ignore[arg-type]
        return BigFold(term.sign, bounds, self.doc(term.body, inner))

    # --- functions and maps ----------------------------------------------------------------------------------------

    def _primitive(self, term: Primitive, scope: Scope) -> Doc:
        if term.name == "real" and isinstance(sum_ := term.arguments[0], Sum):
            squares = Primitive("real", (sum_.body,))
            if squared_modulus(squares) is not None:  # Re Σ z* z = Σ |z|²
                return self._sum(Sum(sum_.indices, squares), scope)
        arguments = self._arguments(term.arguments, scope)
        match term.name:
            case "power":
                return Superscript(*arguments)
            case "remainder":
                parts = remainder_parts(term)
                if parts and (place := index_left(*parts)) is not None:  # 1 mod 3
                    return self.doc(place, scope)
                return Modulo(*(self._indices(term.arguments, scope) if parts else arguments))
            case "floor_divide":
                form, divisor = index_form(term.arguments[0], around=True), term.arguments[1]
                if isinstance(divisor, Number) and isinstance(divisor.real, int):
                    body = arguments[0] if form is None else write_form(form_of(form), scope)
                    return Rounded(body, divisor.real, up=False)
        return FunctionCall(term.name, arguments)

    def _apply(self, term: Apply, scope: Scope) -> Doc:
        round_ = _is_round(term.function, term.arguments)
        if isinstance(term.function, Var) and isinstance(term.function.type, Map):
            arguments = self._told_arguments(term.arguments, scope)
        else:
            arguments = (self._arguments if round_ else self._indices)(term.arguments, scope)
        return Subscripted(self.doc(term.function, scope), arguments, round_)

    def _lambda(self, term: Lambda, scope: Scope, *, told: bool = False) -> Doc:
        unindexed = whole(term)
        if unindexed is not None:
            return self.doc(unindexed, scope)
        inner = self._enter(scope, term.parameters, term.body)
        ranged = self._ranged(term.parameters, term.body, scope, inner)
        if told:  # but for those that read a part of an axis
            parts = self._domains.uses(term.body).other
            pairs = zip(term.parameters, ranged, strict=True)
            ranged = tuple(doc if index in parts else Name(inner[index]) for index, doc in pairs)
        return Arrow(ranged, self.doc(term.body, inner))

    def _pullback(self, term: Pullback, scope: Scope) -> Doc:
        cotangent = self._told_arguments([term.cotangent], scope)
        return self.pulled_back(term, self._told_arguments(term.arguments, scope), cotangent, scope)

    def pulled_back(self, term: Pullback, arguments: tuple[Doc, ...], cotangent: tuple[Doc, ...], scope: Scope) -> Doc:
        """`Dᵀ(k)` of a linear map, `∇R(u)` of a scalar map with cotangent 1, else `∂F(u)ᵀ(k)`."""
        map_ = self.doc(term.function, scope)
        type_ = term.function.type if isinstance(term.function, Var) else None
        if isinstance(type_, Map) and type_.linear:
            return Subscripted(Marked(map_, "ᵀ"), cotangent, True)
        sign = _derivative_sign(type_, len(term.arguments), term.cotangent)
        position = term.position + 1 if len(term.arguments) > 1 else 0
        derivative = Subscripted(Derivative(map_, sign, position), arguments, True)
        return derivative if term.cotangent is ONE else Subscripted(Marked(derivative, "ᵀ"), cotangent, True)

    def _implicit(self, term: Implicit, scope: Scope) -> Doc:
        """`root(x ↦ …, a)` and `argmin(x ↦ …, a)`, searched from a; `solve(k ↦ …, b)`."""
        return FunctionCall(term.kind, self._arguments([term.map, term.given], scope))

    def _scan(self, term: Scan, scope: Scope) -> Doc:
        """`last(scan((t, x) ↦ …, a))` of a scan inside an expression; those that are bound are recurrences."""
        name = "scan_back" if term.reverse else "scan"
        whole = FunctionCall(name, tuple(self.doc(child, scope) for child in term.children))
        return FunctionCall(term.kind, (whole, Literal(term.component)))


def _own_axes(var: Var, value: AtStep) -> list[tuple[tuple[Var, int], Var]]:
    """The axes of a state behind that of its steps, and the indices that stand there."""
    first = len(value.place) - value.own
    return [((var, n), v) for n, v in enumerate(value.place[first:], start=first) if isinstance(v, Var)]


def _axes(var: Var, value: Lambda) -> list[tuple[tuple[Var, int], Var]]:
    return [((var, n), v) for n, v in enumerate(value.parameters)]


def _derivative_sign(type_: object, arguments: int, cotangent: Term) -> str:
    """`s'(z)` of a map from numbers to numbers, `∇R(u)` from tensors, `∂₁L(q, v)` where there are several arguments."""
    if arguments > 1 or cotangent is not ONE:
        return "∂"
    numeric = isinstance(type_, Map) and all(not space.order for space in type_.arguments)
    return "'" if numeric else "∇"


def _unwrapped(term: Term) -> Term:
    """`u` for `i ↦ u[i]`."""
    whole = whole_tensor(term.body, term.parameters) if isinstance(term, Lambda) else None
    return term if whole is None else whole


def _names(variables: Iterable[Var], scope: Scope) -> tuple[Name, ...]:
    return tuple(Name(scope[var]) for var in variables)


def _rank(base: Term, exponent: int) -> int:
    """Where a factor stands: numbers, δ's, conditions and numbers with a name (1), others, sums in parentheses, Σ's."""
    if isinstance(base, Number | Delta | Var):
        return int(isinstance(base, Var))
    if isinstance(base, Sum | Projection | FoldSign):
        return 4 if exponent == 1 else 3
    return 3 if isinstance(base, Add) else 2


def _beside(factors: Sequence[Doc]) -> Doc:
    return factors[0] if len(factors) == 1 else Juxtaposition(tuple(factors))


def _over_denominator(number: Number) -> tuple[Number, int]:
    """An exact number as whole parts over one denominator, a multiple of π so; others over 1."""
    if not number.exact:
        turns = half_turns(number.real or number.imag) if not number.real or not number.imag else Fraction(0)
        if not turns:
            return number, 1
        above = turns.numerator * pi
        return Number(above) if number.real else Number(0, above), turns.denominator
    denominator = lcm(Fraction(number.real).denominator, Fraction(number.imag).denominator)
    return Number(int(number.real * denominator), int(number.imag * denominator)), denominator


def _unsigned(number: Number) -> tuple[bool, Literal]:
    """Whether the leading part of a number is negative, and the number without that sign."""
    leading = number.real or number.imag
    if leading < 0:
        return True, Literal(-number.real, -number.imag)
    return False, Literal(number.real, number.imag)


def _is_round(function: Term | None, arguments: Sequence[Term]) -> bool:
    """Whether arguments stand in parentheses: those of named maps and fields, not the indices of tensors."""
    type_ = function.type if isinstance(function, Var) else None
    if isinstance(type_, Space):
        return any(isinstance(axis, Real) for axis in type_.axes)
    return not arguments or not all(
        isinstance(argument, Affine | Var) and _is_discrete(argument) for argument in arguments
    )


def _is_discrete(index: Affine | Var) -> bool:
    """Whether an argument is an index of a finite domain."""
    variables = [index] if isinstance(index, Var) else [var for var, _ in index.coefficients]
    return all(not isinstance(v.type, Real | Space | Map) for v in variables)
