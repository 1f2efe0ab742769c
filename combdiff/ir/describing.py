"""How messages name the tensors, accesses and indices that a user wrote.

    describe(A)  =  "A"        describe(i ↦ A[i, j])  =  "A[:, j]"        show_index(2i − j + 1)  =  "2*i - j + 1"

Invariant: what is named is named as the user wrote it, without the suffixes that keep variables apart.
"""

from __future__ import annotations

from combdiff.ir.domains import Domain, Space
from combdiff.ir.indices import affine_parts
from combdiff.ir.terms import Apply, Lambda, Number, Term, Var
from combdiff.ir.types import is_domain, type_of

Axes = tuple[Domain, ...]


def axes_of(term: Term) -> Axes:
    """The domains of a tensor's axes; none for a number."""
    space = type_of(term)
    assert isinstance(space, Space)
    return space.axes


def is_access(tensor: Lambda) -> bool:
    """Whether a tensor only renames, exchanges or fixes the indices of another, or is one number."""
    body = tensor.body
    return isinstance(body, Number) or (
        isinstance(body, Apply)
        and all(is_domain(type_of(argument)) for argument in body.arguments)
        and body.function.free.isdisjoint(tensor.parameters)
    )


def base_name(var: Var) -> str:
    """The name the user gave a variable."""
    return var.name.removeprefix("?").split(".")[0]


def describe(term: Term) -> str:
    """How a message calls a tensor or number: A, R(…), A[i, :], `a tensor of order 2`."""
    if isinstance(term, Var):
        return base_name(term) if is_domain(term.type) else term.name
    if isinstance(term, Apply):
        if isinstance(type_of(term.function), Space):
            return f"{describe(term.function)}[{', '.join(show_index(a) for a in term.arguments)}]"
        return f"{describe(term.function)}(…)"
    if isinstance(term, Lambda) and is_access(term) and isinstance(term.body, Apply):
        left = [argument for argument in term.body.arguments if argument in term.parameters]
        if left == list(term.parameters):
            parts = [":" if a in term.parameters else show_index(a) for a in term.body.arguments]
            return f"{describe(term.body.function)}[{', '.join(parts)}]"
    order = len(axes_of(term))
    return f"a tensor of order {order}" if order else "a number"


def access_name(tensor: str, axis: int, index: Term) -> str:
    """What tells an access at one axis from others, as far as a reader can."""
    return f"axis {axis} of {tensor} at {show_index(index)}"


def show_index(term: Term) -> str:
    """An index expression as the user wrote it: `2*i - j + 1`."""
    parts, offset = affine_parts(term)
    text = ""
    for var, coefficient in parts:
        factor = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
        text += (" - " if coefficient < 0 else " + ") + factor + base_name(var)
    if offset or not parts:
        text += (" - " if offset < 0 else " + ") + str(abs(offset))
    return text.removeprefix(" + ").replace(" - ", "-", 1) if text.startswith(" - ") else text.removeprefix(" + ")
