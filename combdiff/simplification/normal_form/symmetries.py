"""Symmetries that a tensor has by its value, and whether it is real.

    t[i,j] = Σ_k x[i,k]·x[j,k]      t[i,j] = t[j,i], as both sides have one canonical form
    t = Σ_i z[i]* z[i]              t = t*, so it is Re Σ_i z[i]* z[i], a number of real type

Invariant: a symmetry that is found holds for all values of the free variables.
"""

from __future__ import annotations

from collections.abc import Iterator

from combdiff.ir import (
    Cyclic,
    Lambda,
    Names,
    Space,
    Symmetric,
    Term,
    Var,
    affine,
    apply,
    conj,
    function,
    negate,
    parse_symmetry,
    type_of,
)
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise


def with_symmetries(var: Var, value: Term) -> Var:
    """The binding's variable, its Space told the symmetries that the value has by its canonical form.

    Tried are exchanges of two axes of one domain and negations of a Symmetric or Cyclic axis, plain, with a minus,
    and (for complex values) conjugated.
    """
    space = var.type
    assert isinstance(space, Space)
    if not isinstance(value, Lambda):
        return var
    found = [equation for equation in _candidates(space) if _holds(equation, space, value)]
    return Var(var.name, Space(*space.axes, dtype=space.dtype, symmetry=found)) if found else var


def where_real(var: Var, value: Term) -> tuple[Var, Term]:
    """A binding of complex type as one of real type, of Re of the value, if that has its conjugate's canonical form."""
    space = var.type
    body = value.body if isinstance(value, Lambda) else value
    assert isinstance(space, Space)
    if space.dtype is not complex or type_of(body) != Space(dtype=complex) or not _have_one_form(body, conj(body)):
        return var, value
    real = function("real", body)
    new = Var(var.name, Space(*space.axes))
    return new, Lambda(value.parameters, real) if isinstance(value, Lambda) else real


def _have_one_form(one: Term, other: Term) -> bool:
    """Whether two scalar terms have the same canonical form."""
    forms: dict[object, int] = {}
    names = Names(one, other)
    return canonical(normalise(one, names), forms) is canonical(normalise(other, names), forms)


def _candidates(space: Space) -> Iterator[str]:
    """Symmetry equations a tensor might have."""
    names = [f"i{n}" for n in range(space.order)]
    changed: list[list[str]] = []
    for n, axis in enumerate(space.axes):
        if isinstance(axis, Symmetric | Cyclic):
            changed.append([f"-{name}" if m == n else name for m, name in enumerate(names)])
        for m in range(n):
            if space.axes[m] == axis:
                swapped = list(names)
                swapped[n], swapped[m] = names[m], names[n]
                changed.append(swapped)
    for indices in changed:
        access = f"t[{','.join(indices)}]"
        for right in (
            access,
            f"-{access}",
            *([f"conj({access})", f"-conj({access})"] if space.dtype is complex else []),
        ):
            yield f"t[{','.join(names)}] = {right}"


def _holds(equation: str, space: Space, value: Lambda) -> bool:
    """Whether a tensor's value is canonically the same as its image under a symmetry."""
    action = parse_symmetry(equation, space.axes, space.dtype)
    arguments = [
        affine([(value.parameters[a], -1)]) if negated else value.parameters[a]
        for a, negated in zip(action.axes, action.negated, strict=True)
    ]
    image = apply(value, arguments)
    image = conj(image) if action.conjugate else image
    return _have_one_form(value.body, image if action.sign > 0 else negate(image))
