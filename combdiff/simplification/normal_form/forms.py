"""Forms: terms without the names that laws do not see, so that what differs in names alone is one object.

    Σ_j W[7, i, j] h.6[j]     form   Σ_~0 W0000[0, i0002, ~0] h0001[~0]     the same for all layers

Free variables are called by their rank among the names, behind the first letter: ties between equal forms are broken by
the order of names, among themselves and beside those of functions. Of a tensor that is read at constant places along an
axis alone the places are taken out: what the laws make of layer 7 they make of layer 8.

Invariant: a form named back is the term, up to the names of bound indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from combdiff.ir import (
    Affine,
    Apply,
    Function,
    Range,
    Space,
    Term,
    Type,
    Var,
    Whole,
    canonical_names,
    matrices_in,
    substitute,
    subterms,
    type_of,
)
from combdiff.records import dataclass

ORIGIN, POINT = Affine((), 0), Range(1)

Places = dict[int, Term]  # constant arguments, by axis


@dataclass(frozen=True)
class CanonicalForm:
    """A term and what is known beside it, their free variables called by rank.

    `names` has the variable that each stands for, `places` the constant arguments that were taken out of its accesses.
    """

    term: Term
    known: Mapping[Var, Term]
    names: Mapping[Var, Var]
    places: Mapping[Var, Places]

    def named(self, term: Term) -> Term:
        """A term of the same free variables with their own names and places again."""
        read: dict[Term, tuple[Var, Places]] = {new: (self.names[new], found) for new, found in self.places.items()}
        return substitute(_with_accesses(term, lambda access: read.get(access.function)), self.names)


def form_of(term: Term, known: Mapping[Var, Term], *, renamed: bool = True) -> CanonicalForm:
    """The form of a term and of what is known of its matrices; free variables keep their names unless `renamed`."""
    known = _relevant(term, known)
    if not renamed:
        return CanonicalForm(canonical_names(term), known, {}, {})
    terms = [term, *known.values()]
    free = frozenset(known).union(*(part.free for part in terms))
    found = _constant_places(terms, free)
    visible = [var for var in free if not isinstance(var.type, Whole | Function)]  # named in domains, or declared
    slots = sorted(((var, places) for var in visible for places in found.get(var, ({},))), key=_rank)
    ranked = [Var(f"{var.name[:1]}{n:04}", _along_the_rest(var, places)) for n, (var, places) in enumerate(slots)]
    slices: dict[tuple[Term, tuple[Term, ...]], Var] = {
        (var, tuple(places.values())): new for new, (var, places) in zip(ranked, slots, strict=True) if places
    }
    whole = {var: new for new, (var, places) in zip(ranked, slots, strict=True) if not places}

    def moved(access: Apply) -> tuple[Var, Places] | None:
        if access.function not in found:
            return None
        axes = found[access.function][0]
        new = slices[access.function, tuple(access.arguments[axis] for axis in axes)]
        return new, dict.fromkeys(axes, ORIGIN)

    def form(part: Term) -> Term:
        return canonical_names(substitute(_with_accesses(part, moved), whole))

    names = {new: var for new, (var, _) in zip(ranked, slots, strict=True)}
    places = {new: places for new, (_, places) in zip(ranked, slots, strict=True) if places}
    return CanonicalForm(form(term), {whole.get(var, var): form(value) for var, value in known.items()}, names, places)


def _along_the_rest(var: Var, places: Places) -> Type:
    """The type of a variable; of the axes along which its places are taken out nothing is left but one."""
    if not isinstance(var.type, Space) or not places:
        return var.type
    return Space(*(POINT if n in places else axis for n, axis in enumerate(var.type.axes)), dtype=var.type.dtype)


def _rank(slot: tuple[Var, Places]) -> tuple[str, str, tuple[str, ...]]:
    var, places = slot
    return var.name, repr(var.type), tuple(str(place.offset) for place in places.values() if isinstance(place, Affine))


def _relevant(term: Term, known: Mapping[Var, Term]) -> dict[Var, Term]:
    """What is known of the matrices of a term, and of what they are made of."""
    found: dict[Var, Term] = {}
    todo = sorted(matrices_in(term).intersection(known), key=lambda var: var.name)
    while todo:
        var = todo.pop()
        if var not in found:
            found[var] = known[var]
            todo += sorted(known[var].free.intersection(known), key=lambda var: var.name)
    return found


def _constant_places(terms: Iterable[Term], free: frozenset[Var]) -> dict[Term, list[Places]]:
    """For each free tensor read at constants alone along some axes: these constants, each choice once."""
    found: dict[Term, dict[tuple[Term, ...], None]] = {}
    elsewhere: set[Term] = set()
    for node in (node for term in terms for node in subterms(term)):
        if isinstance(node, Apply) and isinstance(node.function, Var) and node.function in free:
            found.setdefault(node.function, {})[node.arguments] = None
            elsewhere.update(node.arguments)
        else:
            elsewhere.update(node.children)
    places: dict[Term, list[Places]] = {}
    for tensor, accesses in found.items():
        space = type_of(tensor)
        if tensor in elsewhere or not isinstance(space, Space) or len(space.group) > 1:
            continue
        axes = [n for n, column in enumerate(zip(*accesses, strict=True)) if all(map(_is_constant, column))]
        if axes:
            choices = dict.fromkeys(tuple(arguments[axis] for axis in axes) for arguments in accesses)
            places[tensor] = [dict(zip(axes, choice, strict=True)) for choice in choices]
    return places


def _is_constant(argument: Term) -> bool:
    return isinstance(argument, Affine) and not argument.coefficients


def _with_accesses(term: Term, moved: Callable[[Apply], tuple[Var, Places] | None]) -> Term:
    """The term with accesses read from another tensor, at other constants along some axes."""
    done: dict[Term, Term] = {}
    for node in subterms(term):  # children first
        children = tuple(done[child] for child in node.children)
        new = node if children == node.children else node.with_children(children)
        other = moved(node) if isinstance(node, Apply) else None
        if other is not None and isinstance(new, Apply):
            tensor, places = other
            new = Apply(tensor, tuple(places.get(axis, argument) for axis, argument in enumerate(new.arguments)))
        done[node] = new
    return done[term]
