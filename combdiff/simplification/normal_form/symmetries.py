"""Symmetries that a tensor has by its value, and whether it is real.

    t[i,j] = Σ_k x[i,k]·x[j,k]      t[i,j] = t[j,i], as both sides have one canonical form
    t = Σ_i z[i]* z[i]              t = t*, so it is Re Σ_i z[i]* z[i], a number of real type

Invariant: a symmetry that is found holds for all values of the free variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, islice

from combdiff.ir import (
    CUT_BELOW_ZERO,
    ZERO,
    Action,
    Add,
    Apply,
    Cyclic,
    Delta,
    Domain,
    Lambda,
    Names,
    Primitive,
    Space,
    Symmetric,
    Term,
    Var,
    add,
    affine,
    apply,
    conj,
    factors_of,
    function,
    is_branched,
    is_nonnegative,
    let,
    matrices_in,
    mul,
    negate,
    put_back,
    remembered,
    split,
    substitute,
    subterms,
    type_of,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.extraction import symbols
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.conditions import compares_bare_indices
from combdiff.simplification.normal_form.contraction import normalise
from combdiff.simplification.normal_form.forms import form_of

MOST_SYMBOLS = 60  # of a value in which definitions are written out: t·Xᵀ with t = X·B is symmetric if B is
MOST_PAIRS = 12  # of changes of axes that are tried at once

_Change = tuple[tuple[int, bool], ...]  # for each axis which index stands on it, and whether negated


def with_symmetries(var: Var, value: Term) -> Var:
    """The binding's variable, its Space told the symmetries that the value has by its canonical form.

    Tried are exchanges of two axes of one domain, negations of a Symmetric or Cyclic axis and pairs of these, plain,
    with a minus, and (for complex values) conjugated.
    """
    space = var.type
    assert isinstance(space, Space)
    if not isinstance(value, Lambda) or next(_changes(space.axes), None) is None:
        return var
    found = _symmetries(_form(value), space.axes, space.dtype)
    return Var(var.name, Space(*space.axes, dtype=space.dtype, symmetry=found)) if found else var


def with_known_symmetries(body: Term) -> Term:
    """A program, or its body, whose definitions know their symmetries: of t = Xᵀ·X that t⁻ᵀ is t⁻¹."""
    if isinstance(body, Lambda):
        return Lambda(body.parameters, with_known_symmetries(body.body))
    known: dict[Var, Term] = {}
    spelled: dict[Var, Term] = {}
    bindings: list[tuple[Var, Term]] = []
    definitions, result = split(body)
    held = matrices_in(body)
    for var, value in definitions:
        value = substitute(value, known)
        whole = spelled_out(value, spelled)
        known[var] = new = with_symmetries(var, whole) if isinstance(var.type, Space) and var.type.order > 1 else var
        if var not in held:
            spelled[new] = whole
        bindings.append((new, value))
    return let(bindings, substitute(result, known))


def without_known_symmetries(body: Term) -> Term:
    """A program's body whose definitions are of plain Spaces, as sharing makes them."""
    plain: dict[Var, Term] = {}
    bindings: list[tuple[Var, Term]] = []
    definitions, result = split(body)
    for var, value in definitions:
        space = var.type
        new = Var(var.name, Space(*space.axes, dtype=space.dtype)) if isinstance(space, Space) else var
        value, plain[var] = substitute(value, plain), new
        bindings.append((new, value))
    return let(bindings, substitute(result, plain))


def spelled_out(value: Term, definitions: Mapping[Var, Term]) -> Term:
    """An element-wise value with definitions written out in it, where it is not long then."""
    return _written_out(value, definitions) if isinstance(value, Lambda) else value


def _written_out(value: Term, definitions: Mapping[Var, Term]) -> Term:
    whole = put_back(value, definitions)
    return whole if symbols(whole) <= MOST_SYMBOLS else value


@remembered
def _form(value: Term) -> Term:
    """A value up to names."""
    return form_of(value, {}).term


@dataclass(frozen=True)
class BranchArguments:
    """The names of numbers that a program takes roots or logarithms of, and those inside arguments of functions that
    have a branch cut.

    What has one of these names keeps its complex type: √t is a complex number for a negative t of complex type, and
    none for one of real type.
    """

    radicands: frozenset[Var]
    inside: frozenset[Var]

    @staticmethod
    @remembered
    def of(body: Term) -> BranchArguments:
        """The names in a let program."""
        bindings = split(body)[0]
        radicands, inside = set[Var](), set[Var]()
        for term in filter(is_branched, subterms(body)):
            argument, *exponents = term.children
            inside.update(*(exponent.free for exponent in exponents))
            read = argument.function if isinstance(argument, Apply) else argument
            if isinstance(read, Var) and isinstance(term, Primitive) and term.name in CUT_BELOW_ZERO:
                radicands.add(read)
            else:
                inside |= argument.free
        for var, value in reversed(bindings):
            if var in radicands or var in inside:
                inside |= value.free
        return BranchArguments(frozenset(radicands), frozenset(inside))

    def keep(self, var: Var, value: Term) -> bool:
        """Whether a binding keeps its type; one that is not negative does only where other numbers are made of it."""
        return var in self.inside or (var in self.radicands and not is_nonnegative(value))


def where_real(var: Var, value: Term, definitions: Mapping[Var, Term], program: Term) -> tuple[Var, Term]:
    """A binding of complex type as one of real type, of Re of the value, if that has its conjugate's canonical form.

    That may be seen only with `definitions` written out. Not one that `program` takes as an argument of a function with
    a branch cut.
    """
    space = var.type
    body = value.body if isinstance(value, Lambda) else value
    assert isinstance(space, Space)
    if space.dtype is not complex or type_of(body) != Space(dtype=complex):
        return var, value
    written = _written_out(body, definitions)
    if BranchArguments.of(program).keep(var, body) or not _have_one_form(written, conj(written)):
        return var, value
    real = function("real", body)
    new = Var(var.name, Space(*space.axes))
    return new, Lambda(value.parameters, real) if isinstance(value, Lambda) else real


def _have_one_form(one: Term, other: Term) -> bool:
    """Whether two scalar terms have the same canonical form."""
    forms: dict[object, int] = {}
    names = Names(one, other)
    return canonical(normalise(one, names), forms) is canonical(normalise(other, names), forms)


@lru_cache(maxsize=64)
def _symmetries(value: Lambda, axes: tuple[Domain, ...], dtype: type) -> tuple[str, ...]:
    """The symmetry equations that hold for a tensor given element by element, by the canonical forms of both sides."""
    forms: dict[object, int] = {}
    names = Names(value)

    def canonical_form(term: Term) -> Term:
        return canonical(normalise(_with_one_index(term), names), forms)

    plain = canonical_form(value.body)
    if plain is ZERO:  # has all symmetries, also those that contradict each other
        return ()
    found: list[str] = []
    for indices in _changes(axes):
        for conjugated in (False, True) if dtype is complex else (False,):
            image = apply(value, [affine([(value.parameters[n], -1 if minus else 1)]) for n, minus in indices])
            form = canonical_form(conj(image) if conjugated else image)
            for sign, signed in ((1, form), (-1, negate(form))):
                if signed is plain:
                    sources, negated = zip(*indices, strict=True)
                    found.append(Action(sources, negated, sign, conjugated).equation("t"))
    return tuple(found)


def _with_one_index(term: Term) -> Term:
    """A sum in whose products one of two indices that are equal stands for both: δ(i, j) t[j] is δ(i, j) t[i]."""
    products = []
    for each in term.terms if isinstance(term, Add) else (term,):
        factors = list(factors_of(each))
        for n, factor in enumerate(factors):
            if isinstance(factor, Delta) and compares_bare_indices(factor):
                one, other = sorted((v for v in (factor.left, factor.right) if isinstance(v, Var)), key=str)
                factors = [part if n == m else substitute(part, {other: one}) for m, part in enumerate(factors)]
        products.append(mul(*factors))
    return add(*products)


def _changes(axes: Sequence[Domain]) -> Iterator[_Change]:
    """Exchanges of two axes of one domain and negations of an axis, then two of these at once.

    Pairs are what exchanges of particles are made of: ⟨ij|ab⟩ = ⟨ji|ba⟩, where neither i, j nor a, b alone may change.
    """
    single: list[dict[int, tuple[int, bool]]] = []
    for n, axis in enumerate(axes):
        if isinstance(axis, Symmetric | Cyclic):
            single.append({n: (n, True)})
        single += [{m: (n, False), n: (m, False)} for m in range(n) if axes[m] == axis]
    pairs = ({**one, **other} for one, other in combinations(single, 2) if one.keys().isdisjoint(other))
    for moved in (*single, *islice(pairs, MOST_PAIRS)):
        yield tuple(moved.get(n, (n, False)) for n in range(len(axes)))
