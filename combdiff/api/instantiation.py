"""Programs in place of named maps: what was only named becomes what it is, in derivatives too.

    (R, x, p, a) ↦ ∇R(x + a p) · p      with R = u ↦ Σ_i u[i]²
    = (x, p, a) ↦ 2 (x + a p) · p

A call R(u) becomes the body of the program over u; a pullback ∂R(u)ᵀ(k) becomes the pullback of the program, by the
same rules as any. Arrays that the program has fixed become parameters.

Invariant: the result mentions none of the maps that were replaced.
"""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.differentiation import check_linear, pulled_back, zero
from combdiff.errors import TypeMismatchError
from combdiff.ir import Function, Lambda, Names, Pullback, Space, Term, Var, subterms
from combdiff.simplification import missing_symmetry
from combdiff.tracing import called, renamed_sizes


def instantiated(term: Lambda, maps: Mapping[Var, Lambda]) -> Lambda:
    """The term with programs for some of its named maps; what they take beyond the map's arguments is added last.

    A program takes the arguments of its map first. Raises TypeMismatchError where its Spaces are not those of the map.
    """
    names = Names(term, *maps.values())
    replaced: dict[Var, Lambda] = {}
    added: list[Var] = []
    for var, given in maps.items():
        replaced[var], more = _as_map(var, given, names, term)
        added += more
    body = called(term, [replaced.get(p, p) for p in term.parameters], names)
    kept = tuple(p for p in term.parameters if p not in maps)
    return Lambda((*kept, *added), resolved(body, names))


def _as_map(var: Var, given: Lambda, names: Names, term: Lambda) -> tuple[Lambda, list[Var]]:
    """A program as an abstraction over the arguments of the map alone, and its other parameters, renamed."""
    declared = var.type
    assert isinstance(declared, Function)
    count = len(declared.arguments)
    if len(given.parameters) < count:
        raise TypeMismatchError(
            f"{var.name} takes {count} arguments, but the program given for it {len(given.parameters)}"
        )
    given = renamed_sizes(given, declared, term, var.name)
    if declared.linear:
        check_linear(given, var.name)
    _check_symmetry(given.body, declared.result, var.name)
    more = [names.parameter(p) for p in given.parameters[count:]]
    body = called(given, [*given.parameters[:count], *more], names)
    return Lambda(given.parameters[:count], body), more


def _check_symmetry(result: Term, declared: Space, name: str) -> None:
    """What follows from the symmetries of a map's result may have been used before the map was known."""
    missing = missing_symmetry(result, declared)
    if missing is not None:
        raise TypeMismatchError(
            f"the result of {name} is declared with {missing.equation(name)}, which that of the program given for it "
            "has not",
            hint=f"declare {name} without that symmetry, or give a program whose result has it",
        )


def resolved(term: Term, names: Names) -> Term:
    """The term with pullbacks of programs (abstractions, not names) carried out."""
    done: dict[Term, Term] = {}
    for node in subterms(term):  # children first, so that deep terms need no recursion
        new = node.with_children(tuple(done[child] for child in node.children)) if node.children else node
        done[node] = _pulled(new, names) if _is_open(new) else new
    return done[term]


def _is_open(term: Term) -> bool:
    return isinstance(term, Pullback) and isinstance(term.function, Lambda)


def _pulled(term: Term, names: Names) -> Term:
    assert isinstance(term, Pullback)
    assert isinstance(term.function, Lambda)
    origin = term.function
    parameters, body = pulled_back(origin, (origin.parameters[term.position],), tupled=False)
    # the adjoint of a linear map is the same at every point, so it comes without one
    points = term.arguments or tuple(zero(names, p.type) for p in origin.parameters if isinstance(p.type, Space))
    return called(Lambda(parameters, body), (*points, term.cotangent), names)
