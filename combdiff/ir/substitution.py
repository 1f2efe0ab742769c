"""Traversal, fresh names and substitution that avoids capture.

    (i ↦ A[i, j])[j := i]  =  i.1 ↦ A[i.1, i]

Invariant: substituting never lets a binder catch a variable that was free in what is put in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from combdiff.ir.cycles import counts_modulo, is_reduced
from combdiff.ir.domains import Cyclic, Domain
from combdiff.ir.indices import Delta, delta
from combdiff.ir.terms import (
    Apply,
    Lambda,
    Let,
    OverIndices,
    Term,
    Tuple,
    Var,
    composed,
    fresh,
    let,
    mul,
    remembered,
    total,
)

MOST_LEVELS = 50  # of a term that are gone down by calls

New = TypeVar("New", bound=Term)


def subterms(term: Term) -> Iterator[Term]:
    """Every distinct subterm once, children before parents."""
    seen: set[Term] = {term}
    path = [(term, iter(term.children))]  # a stack of its own: a deep term would overflow that of calls
    while path:
        node, children = path[-1]
        for child in children:
            if child not in seen:
                seen.add(child)
                if inner := child.children:
                    path.append((child, iter(inner)))
                    break
                yield child
        else:
            path.pop()
            yield node


def holds_delta(term: Term) -> bool:
    """Whether a δ occurs anywhere in a term."""
    return any(isinstance(part, Delta) for part in subterms(term))


def exchanged(term: Term, parts: Mapping[Term, Term]) -> Term:
    """The term with others in place of some of its parts, the outermost first; however deep it is."""
    done: dict[Term, Term] = {}
    for node in subterms(term):
        done[node] = parts[node] if node in parts else node.with_children(tuple(done[child] for child in node.children))
    return done[term]


@composed
def _bound_names(term: Term) -> frozenset[str]:
    """The names of all variables that are bound in a term."""
    found = {_bound_names(child) for child in term.children}
    if term.bound:
        found.add(frozenset(var.name for var in term.bound))
    return next(iter(found)) if len(found) == 1 else frozenset().union(*found)


@remembered
def _free_names(term: Term) -> frozenset[str]:
    """The names of the variables that are free in a term."""
    return frozenset([var.name for var in term.free])


class Names:
    """Gives out variables whose names are used nowhere else: i, i.1, i.2, … in order of asking."""

    def __init__(self, *terms: Term) -> None:
        self._taken: set[str] = set()
        for term in terms:
            self.take(term)
        self._last: dict[str, int] = {}  # of each base the last number given out: those before it are taken

    def fresh(self, var: Var) -> Var:
        """A variable of var's type with a new name of the same base."""
        name = var.name
        if name in self._taken:
            base = name.split(".")[0]
            count = self._last.get(base, 0) + 1
            while (name := f"{base}.{count}") in self._taken:
                count += 1
            self._last[base] = count
        self._taken.add(name)
        return Var(name, var.type)

    def take(self, term: Term) -> None:
        """Give out no name of a term, which others have named."""
        self._taken.update(_bound_names(term))
        self._taken.update(var.name for var in term.free)

    def parameter(self, var: Var) -> Var:
        """A variable of var's type for a parameter, whose name people write: k, k2, k3, …"""
        name, count = var.name, 2
        while name in self._taken:
            name, count = f"{var.name}{count}", count + 1
        self._taken.add(name)
        return Var(name, var.type)

    def indices(self, domains: Iterable[Domain], letters: str = "defgh") -> tuple[Var, ...]:
        """New index variables over the domains, named from the letters in turn."""
        return tuple(self.fresh(Var(letters[n % len(letters)], domain)) for n, domain in enumerate(domains))


def without_shadows(term: Term) -> Term:
    """The term in which no index is called like one that is bound around it: Σ_k x[k] / Σ_k y[k] has another name below
    the line. So parts may be read apart from what binds their indices."""
    return _Unshadowing(Names(term)).run(term, frozenset()) if _shadows(term) else term


@composed
def _shadows(term: Term) -> bool:
    """Whether a variable that is bound in a term is called like one that is bound around it there."""
    inside = frozenset[str]().union(*map(_bound_names, term.children))
    return not inside.isdisjoint(var.name for var in term.bound) or any(map(_shadows, term.children))


class _Unshadowing:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.done: dict[tuple[Term, frozenset[str]], Term] = {}

    def run(self, term: Term, scope: frozenset[str]) -> Term:
        """The term where these names are those of indices around it; what is shared stays so."""
        inside = scope & _bound_names(term)
        if not inside and not _shadows(term):
            return term
        if (term, inside) not in self.done:
            self.done[term, inside] = self._node(term, inside)
        return self.done[term, inside]

    def _node(self, term: Term, scope: frozenset[str]) -> Term:
        if not isinstance(term, Lambda | OverIndices):
            return term.with_children(tuple(self.run(child, scope) for child in term.children))
        renamed = {var: self.names.fresh(var) for var in term.bound if var.name in scope}
        body = self.run(substitute(term.body, renamed), scope.union(var.name for var in term.bound))
        return term.over(tuple(renamed.get(var, var) for var in term.bound), body)


def substitute(term: Term, replacement: Mapping[Var, Term]) -> Term:
    """term with free variables replaced, bound names renamed where they would capture."""
    return _Substitution().run(term, dict(replacement))


def substituting(replacement: Mapping[Var, Term]) -> Callable[[Term], Term]:
    """`substitute` by one replacement for several terms: what they share is visited once."""
    within, replaced = _Substitution(), dict(replacement)
    return lambda term: within.run(term, replaced)


class _Substitution:
    """Memoised per replacement, so that shared subterms are visited once; so deep a term begins with its leaves."""

    def __init__(self) -> None:
        self.done: dict[tuple[Term, frozenset[tuple[Var, Term]]], Term] = {}
        self.depth = 0

    def run(self, term: Term, replacement: dict[Var, Term]) -> Term:
        active = active_in(term, replacement)
        if not active:
            return term
        if isinstance(term, Var):
            return active[term]
        key = (term, frozenset(active.items()))
        if key not in self.done:
            self.depth += 1
            if self.depth % MOST_LEVELS == 0:
                for part in subterms(term):
                    self.run(part, active)
            self.done[key] = self._node(term, active)
            self.depth -= 1
        return self.done[key]

    def _node(self, term: Term, active: dict[Var, Term]) -> Term:
        if isinstance(term, Let):
            return self._let(term, active)
        if term.bound:
            term, active = self._avoid_capture(term, active)
        return term.with_children(tuple(self.run(child, active) for child in term.children))

    def _avoid_capture(self, term: Term, active: dict[Var, Term]) -> tuple[Term, dict[Var, Term]]:
        incoming = frozenset[str]().union(*map(_free_names, active.values()))
        clashes = [v for v in term.bound if v.name in incoming]  # of another type, too: a binder binds a name
        if not clashes:
            return term, active
        taken = {v.name for v in (*term.free, *term.bound)}.union(incoming, *map(_free_names, term.children))
        renaming: dict[Var, Term] = {}
        for var in clashes:
            renaming[var] = new = fresh(var, taken)
            taken.add(new.name)
        bound = tuple(renaming.get(v, v) for v in term.bound)
        return term.over(bound, self.run(term.body, renaming)), active  # type: ignore[arg-type, attr-defined]

    def _let(self, term: Let, active: dict[Var, Term]) -> Term:
        """Bindings are sequential: rename a bound variable that clashes as its scope begins."""
        incoming = frozenset[str]().union(*map(_free_names, active.values()))
        taken = {v.name for v in term.bound}.union(incoming, *map(_free_names, term.children))
        scope, bindings = dict(active), []
        for var, value in term.bindings:
            value = self.run(value, scope)
            scope.pop(var, None)
            new = fresh(var, taken) if var.name in incoming else var
            if new is not var:
                scope[var] = new
                taken.add(new.name)
            bindings.append((new, value))
        return let(bindings, self.run(term.body, scope))


def active_in(term: Term, replacement: Mapping[Var, New]) -> dict[Var, New]:
    """What of a replacement changes a term: looked up from the side that has fewer, its free variables or these."""
    free = term.free
    if len(free) < len(replacement):
        return {v: replacement[v] for v in free if v in replacement and replacement[v] is not v}
    return {v: t for v, t in replacement.items() if v in free and t is not v}


def apply(function: Term, arguments: Iterable[Term]) -> Term:
    """`function(arguments)`; applying an abstraction substitutes, also below a let.

    A cyclic parameter whose value as a number matters in the body stays bound where the argument is not known to be
    reduced: `(k ↦ [k ≥ 2]·x[k])(j + 1) = Σ_k δ(k, j + 1)·[k ≥ 2]·x[k]`, see `cycles`.
    """
    arguments = tuple(arguments)
    if isinstance(function, Let) and arguments:
        return let(function.bindings, apply(function.body, arguments))
    if not isinstance(function, Lambda):
        return Apply(function, arguments) if arguments else function
    pairs = list(zip(function.parameters, arguments, strict=True))
    kept = [(p, a) for p, a in pairs if stays_bound(p, a, function.body)]
    if not kept:
        return substitute(function.body, dict(pairs))
    taken = {v.name for node in subterms(function.body) for v in (*node.free, *node.bound)}
    taken |= {v.name for argument in arguments for v in argument.free}
    renaming: dict[Var, Var] = {}
    for parameter, _ in kept:
        renaming[parameter] = new = fresh(parameter, taken)
        taken.add(new.name)
    body = substitute(function.body, {**dict(pairs), **renaming})
    return _reduced(body, [(renaming[parameter], argument) for parameter, argument in kept])


def stays_bound(parameter: Var, argument: Term, body: Term) -> bool:
    """Whether an argument may not be put for a parameter: one not known to be reduced, where its value matters."""
    cycle = parameter.type
    return isinstance(cycle, Cyclic) and not is_reduced(argument, cycle) and not counts_modulo(parameter, body)


def _reduced(body: Term, pairs: list[tuple[Var, Term]]) -> Term:
    """Σ of the body over the indices, each on its cycle equal to its form: exactly one value of each."""
    if isinstance(body, Lambda | Tuple):
        return body.with_children(tuple(_reduced(child, pairs) for child in body.children))
    masses = [delta(index, form, index.type) for index, form in pairs]  # type: ignore[arg-type]
    return total([index for index, _ in pairs], mul(*masses, body))
