"""From the term of a program to the term of its derivative: build, normalise, simplify, name.

    (x ↦ f(x))   ──pulled_back──►   (x, k) ↦ P f (x, k)   ──derived──►   the same, shared or simplified, with letters

    pulled_back((A, x) ↦ i ↦ Σ_j A[i,j] x[j], (x,))     # before: the term of a program
    ((A, x, k), j ↦ Σ_i …)                              # after: parameters and body of its pullback

Invariant: the parameters of the original come first and keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from combdiff.differentiation.pullback import cotangent_space, onto_spaces, pull
from combdiff.errors import UnsupportedError
from combdiff.ir import (
    Coordinate,
    Lambda,
    Names,
    Real,
    Space,
    Term,
    Tuple,
    Var,
    apply,
    inline_all,
    lambda_,
    let,
    letters_of,
    readable,
    share,
    split,
    substitute,
    type_of,
)
from combdiff.simplification import Traced, bind_again, checked, simplify_body, with_own_names


def derived(
    origin: Lambda,
    raw: Lambda,
    rules: tuple[str, ...] | None,
    *,
    traced: Traced | None = None,
    paired: bool = False,
    written_out: bool = True,
) -> Lambda:
    """The closed term of a raw derivative of `origin`: simplified, or without `rules` only brought to let normal form.

    `traced` is what the user's function computed, with the names there. `paired` says that the body is the pair of a
    value and its derivative; what they have in common is bound. `written_out` says that it is for a reader, not to be
    differentiated again (see `simplify_body`).
    """
    if rules is None:
        normal = share(raw.body)
    else:
        simple = simplify_body(raw.body, rules, written_out=written_out, paired=paired)
        normal = simple if paired else checked(simple, bind_again(simple, origin.body))
        normal = with_own_names(normal, traced)
    return readable(Lambda(raw.parameters, normal), letters_of(origin))


def pulled_back(origin: Lambda, points: tuple[Var, ...], tupled: bool) -> tuple[tuple[Var, ...], Term]:
    """The pullback of a term by some of its parameters: the parameters and the body of (x…, k) ↦ P f (x, k).

    A term with several results takes one cotangent for each, k1, k2, … With `tupled` the body is a tuple of one result
    per point, else the result at the only point.
    """
    bindings, value = split(origin.body)
    names = Names(origin)
    cotangents = [
        names.parameter(Var("k" if not isinstance(value, Tuple) else f"k{n}", cotangent_space(space_of(item))))
        for n, item in enumerate(items(value), start=1)
    ]
    cotangent = Tuple(tuple(cotangents)) if isinstance(value, Tuple) else cotangents[0]
    backward, pulled = pull(origin.body, points, cotangent, names)
    results = onto_spaces(points, pulled, names, backward)
    result = Tuple(tuple(results)) if tupled else results[0]
    return (*origin.parameters, *cotangents), let((*bindings, *backward), result)


def as_field(origin: Lambda, inner: Sequence[str]) -> Lambda:
    """A function of real numbers as a field over the real line: (x, y) ↦ f becomes x ↦ (y ↦ f), a map that returns a
    map. So the C rule makes a Σ over y, an integral, of what the cotangent, a function too, weighs at each y.

    Raises UnsupportedError where a parameter named in `inner` is no real number.
    """
    names = Names(origin)
    replacement: dict[Var, Term] = {}
    indices: list[Var] = []
    for var in (p for p in origin.parameters if p.name in inner):
        if var.type != Space():
            raise UnsupportedError(
                f"the cotangent of a function of {var.name}, {var.type!r}, is weighed by an integral over all of them",
                hint="take the pullback of its values at points that you choose",
            )
        indices.append(Var(var.name, Real()))
        replacement[var] = Coordinate(indices[-1])

    def field(item: Term) -> Term:
        own = names.indices(space_of(item).axes)
        return lambda_((*indices, *own), apply(item, own))

    result = substitute(inline_all(origin.body), replacement)
    body = Tuple(tuple(map(field, result.items))) if isinstance(result, Tuple) else field(result)
    return Lambda(tuple(p for p in origin.parameters if p.name not in inner), share(body))


def space_of(term: Term) -> Space:
    """The Space of a tensor term; raises UnsupportedError for anything else."""
    found = type_of(term)
    if not isinstance(found, Space):
        raise UnsupportedError(f"a tensor was expected, not {found!r}")
    return found


def items(term: Term) -> tuple[Term, ...]:
    """The results of a program's value: the members of a tuple, or the one tensor."""
    return term.items if isinstance(term, Tuple) else (term,)
