"""Putting bindings back: what a let program uses once stands where it is used.

    let t = Σ_i x[i] in exp(t)
    = exp(Σ_i x[i])

A value goes back as long as the place stays readable, and as cheap: not into a Σ that would compute it again and again.

Invariant: the value of the program is unchanged, and no binding is left that nothing uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from combdiff.ir.domains import Function, Real, Space, Whole
from combdiff.ir.implicit import Implicit
from combdiff.ir.indices import Affine, Delta, Indicator, denominator
from combdiff.ir.iteration import Scan
from combdiff.ir.matrix_functions import is_matrix_function, is_primary, matrices_in
from combdiff.ir.products import factors_of
from combdiff.ir.rewriting import Rewriter
from combdiff.ir.substitution import active_in, apply, stays_bound, substitute, subterms
from combdiff.ir.terms import (
    Apply,
    Lambda,
    Let,
    OverIndices,
    Primitive,
    Pullback,
    Sum,
    Term,
    Tuple,
    Var,
    composed,
    lambda_,
    let,
    remembered,
)
from combdiff.ir.types import is_domain, type_of, whole_tensor

MOST_NESTED = 3  # Σ's and functions in one another up to which a value used once is put back: chains stay readable lets
MOST_SUMMED = 1  # the same for a tensor that a Σ reads again and again, as each layer of a network reads the one before

Bindings = tuple[tuple[Var, Term], ...]
_Places = tuple[Term | None, ...]


def split(body: Term) -> tuple[Bindings, Term]:
    """The bindings and the result of a program's body."""
    return (body.bindings, body.body) if isinstance(body, Let) else ((), body)


def is_call(term: Term) -> bool:
    """Whether a term is the value or the pullback of a named map, the solution of an equation, or of a scan."""
    return isinstance(term, Pullback | Implicit | Scan) or (
        isinstance(term, Apply) and isinstance(type_of(term.function), Function)
    )


def solves(term: Term) -> bool:
    """Whether a solver or a named map is called in a term, in the steps of a scan, too: one call at a time."""
    return any(is_call(node) and not isinstance(node, Scan) for node in subterms(term))


def free_indices(term: Term) -> tuple[Var, ...]:
    """The index variables free in a term, in order of first occurrence."""
    wanted = {v for v in term.free if is_domain(v.type) and not isinstance(v.type, Whole)}
    found: dict[Var, None] = {}
    seen: set[Term] = set()

    def visit(node: Term) -> None:
        seen.add(node)
        if node in wanted:
            found.setdefault(node)
        for child in node.children:
            if child not in seen and not wanted.isdisjoint(child.free) and len(found) < len(wanted):
                visit(child)

    if wanted:
        visit(term)
    return tuple(found)


# --- putting back what is used once --------------------------------------------------------------------------------


@remembered
def uses(term: Term) -> Counter[Var]:
    """How often each free variable occurs in a term, read as a tree."""
    return _count(term, {})


def _count(term: Term, done: dict[Term, Counter[Var]]) -> Counter[Var]:
    if isinstance(term, Var):
        return Counter({term: 1})
    if term not in done:
        total: Counter[Var] = Counter()
        for child in term.children:
            total.update(_count(child, done))
        if isinstance(term, Implicit | Scan):  # the equation, or the step, is evaluated again and again
            total.update(_count(term.children[0], done))
        done[term] = total
    return done[term]


@composed
def nesting(term: Term) -> int:
    """How deep Σ's and functions stand in one another."""
    return max(map(nesting, term.children), default=0) + isinstance(term, Sum | Primitive)


def inline_single_uses(body: Term) -> Term:
    """A let program in which no shallow binding is used just once, and none is not used at all.

    What matrix functions are functions of stays bound. A tensor is bound without the axes along which it is constant,
    or which are read at one place: Σ_k A[i,k] B[k,j] is bound as Σ_k A[i,k] B[k,0] where all that is read is t[d,0].
    """
    bindings, result = split(body)
    counts: Counter[Var] = Counter(uses(result))
    kept: list[tuple[Var, Term]] = []
    for var, value in reversed(bindings):
        if counts[var]:
            counts.update(uses(value))
            kept.append((var, value))
    whole = set(_whole(result))
    summed = set(_summed(result)).union(*(_summed(value) for _, value in kept))
    passed = {argument for _, value in kept for argument in _passed(value)}.union(_passed(result))
    divided = _divided(result).union(*(_divided(value) for _, value in kept))
    places = _places_read((result, *(value for _, value in kept)))
    held = matrices_in(body)
    replacement: dict[Var, Term] = {}
    remaining: list[tuple[Var, Term]] = []
    for var, value in reversed(kept):
        value = put_back(value, replacement)
        deepest = MOST_SUMMED if var in summed and not matrices_in(value) else MOST_NESTED  # A⁻¹x may meet an A
        apart = var in divided and any(map(_adds_up, subterms(value)))
        once = counts[var] == 1 and (var in whole or (not apart and _may_stand_inside(value, var in passed, deepest)))
        if var not in held and (once or _is_alias(value)):
            replacement[var] = value
            continue
        may_be_narrow = var not in held and var not in whole and var not in passed
        if may_be_narrow and (narrow := _narrowed(var, value, places.get(var, ()))):
            thin, thin_value, indices = narrow
            remaining.append((thin, thin_value))
            replacement[var] = value.with_children((apply(thin, indices),))
        else:
            remaining.append((var, value))
    return let(remaining, whole_calls(put_back(result, replacement)))


def whole_calls(result: Term) -> Term:
    """A result with `i ↦ D(x)[i]` written `D(x)`: the cotangent of a tensor that a call gives is a whole one."""
    if isinstance(result, Tuple):
        return Tuple(tuple(whole_calls(item) for item in result.items))
    whole = whole_tensor(result.body, result.parameters) if isinstance(result, Lambda) else None
    return whole if whole is not None and is_call(whole) else result


def _may_stand_inside(value: Term, passed: bool, deepest: int) -> bool:
    """Whether a value used once reads well where it is used.

    A solution of an equation has a line of its own, a result of a scan, and a primary function of a matrix. So has a
    tensor that a named map gives, unless it is `passed` on whole: read element by element its cotangent would be made
    for one element at a time.
    """
    if isinstance(value, Implicit | Scan) or (isinstance(value, Lambda) and is_primary(value.body)):
        return False
    if is_field(value) and not is_call(value):
        return True  # nothing over the real line is evaluated: what is used once is read where it is used
    space = type_of(value)
    is_tensor = isinstance(space, Space) and space.order > 0
    return passed if is_call(value) and is_tensor else nesting(value) <= deepest


def is_field(value: Term) -> bool:
    """Whether a value has an axis over the real line."""
    space = type_of(value)
    return isinstance(space, Space) and any(isinstance(axis, Real) for axis in space.axes)


@remembered
def _passed(term: Term) -> frozenset[Term]:
    """The arguments of calls in a term, as far as they are whole tensors with names."""
    calls = (part for part in subterms(term) if is_call(part))
    return frozenset(argument for call in calls for argument in call.children if isinstance(argument, Var))


@remembered
def _summed(term: Term) -> frozenset[Term]:
    """The tensors whose elements a Σ in the term reads again and again: at fewer indices than there are around."""
    found: set[Term] = set()
    for part in subterms(term):
        if isinstance(part, Sum):
            around = set(free_indices(part.body))
            for access in subterms(part.body):
                reads = isinstance(access, Apply) and not access.free.isdisjoint(part.indices)
                if reads and (around - access.free or len(access.children) - 1 < len(around)):
                    found.add(access.children[0])
    return frozenset(found)


def _adds_up(term: Term) -> bool:
    """Whether a term is computed from many elements, not read at what conditions say of its indices, as at ⌊i/3⌋."""
    if not isinstance(term, Sum):
        return isinstance(term, OverIndices)
    told = [f for f in factors_of(term.body) if isinstance(f, Delta) or (isinstance(f, Indicator) and f.modulus)]
    return not all(any(index in condition.free for condition in told) for index in term.indices)


@remembered
def _divided(term: Term) -> frozenset[Term]:
    """The tensors that a term reads at a fraction of an index, t[⌊i/3⌋]: a Σ put there would be done for each i."""
    reads = (part for part in subterms(term) if isinstance(part, Apply))
    return frozenset(
        read.function for read in reads if any(isinstance(a, Affine) and denominator(a) > 1 for a in read.arguments)
    )


def _is_alias(value: Term) -> bool:
    """Whether a value is another tensor, perhaps with its axes permuted."""
    body = value.body if isinstance(value, Lambda) else value
    if isinstance(body, Apply) and isinstance(value, Lambda):
        return isinstance(body.function, Var) and set(body.arguments) <= set(value.parameters)
    return isinstance(body, Var)


def _places_read(values: Iterable[Term]) -> dict[Var, _Places]:
    """At which place each axis of a named tensor is read, None where there are several; nothing for one that is used
    as a whole."""
    values = tuple(values)
    found: dict[Var, _Places] = {value: () for value in values if isinstance(value, Var)}
    for part in {part for value in values for part in subterms(value)}:
        if isinstance(part, Apply) and isinstance(name := part.function, Var):
            at = tuple(place if isinstance(place, Affine) and not place.free else None for place in part.arguments)
            before = found.get(name, at)
            found[name] = tuple(place if place is other else None for place, other in zip(at, before, strict=False))
            used = part.arguments
        else:
            used = part.children
        for child in used:
            if isinstance(child, Var):
                found[child] = ()
    return found


def _narrowed(var: Var, value: Term, places: _Places) -> tuple[Var, Term, tuple[Var, ...]] | None:
    """A tensor without the axes along which it is constant, or which are read at one place: its name, its value and the
    indices left; None where all are."""
    space = var.type
    if not isinstance(value, Lambda) or not isinstance(space, Space) or len(space.group) > 1 or is_field(value):
        return None
    pairs = ((own, place) for own, place in zip(value.parameters, places, strict=False) if place is not None)
    read = {own: place for own, place in pairs if not stays_bound(own, place, value.body)}
    body = substitute(value.body, read) if read else value.body
    kept = tuple(parameter for parameter in value.parameters if parameter in body.free)
    if kept == value.parameters:
        return None
    axes = (axis for axis, parameter in zip(space.axes, value.parameters, strict=True) if parameter in kept)
    return Var(var.name, Space(*axes, dtype=space.dtype)), lambda_(kept, body), kept


def _whole(result: Term) -> Iterator[Term]:
    """The variables that are all there is to a result, or to an item of it."""
    if isinstance(result, Tuple):
        for item in result.items:
            yield from _whole(item)
    elif isinstance(result, Lambda) and isinstance(result.body, Apply):
        yield result.body.function
    else:
        yield result


def put_back(term: Term, replacement: Mapping[Var, Term], matrices: Mapping[Var, Var] | None = None) -> Term:
    """term with bound tensors replaced by their values, and the accesses to them reduced.

    Where `matrices` is given, matrix functions stay functions of variables, those that it has in place of theirs.
    """
    inside = active_in(term, replacement)
    return _Reducer(inside, matrices).run(term) if inside else term


def inline_all(body: Term) -> Term:
    """The result of a let program with every binding put where it is used."""
    bindings, result = split(body)
    replacement: dict[Var, Term] = {}
    for var, value in bindings:
        replacement[var] = put_back(value, replacement)
    return put_back(result, replacement)


class _Reducer(Rewriter):
    """Substitutes tensors and reduces `(i ↦ e)[j]` on the way; bound names are renamed where they would clash."""

    def __init__(self, replacement: Mapping[Var, Term], matrices: Mapping[Var, Var] | None) -> None:
        super().__init__()
        self.replacement = replacement
        self.matrices = matrices

    def run(self, term: Term) -> Term:
        return term if term.free.isdisjoint(self.replacement) else super().run(term)

    def node(self, term: Term) -> Term:
        if isinstance(term, Var):
            return self.replacement[term]
        if self.matrices is not None and is_matrix_function(term) and isinstance(matrix := term.children[0], Var):
            return term.with_children((self.matrices.get(matrix, matrix),))
        children = tuple(map(self.run, term.children))
        if isinstance(term, Apply):
            return apply(children[0], children[1:])
        return term.with_children(children)
