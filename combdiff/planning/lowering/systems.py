"""What a solver evaluates: an equation together with its Jacobian, as one program.

    root(x ↦ x² − a)    to    (x, a) ↦ (x² − a, 2x)
    argmin(x ↦ R(x))    to    (x) ↦ (R, ∇R, ∇²R)

The Jacobian comes from pushforwards of unit tangents by the same rules as every derivative; for complex unknowns it is
the pair (∂g/∂x, ∂g/∂x̄).

Invariant: the program is closed, in let normal form; its first parameter is the unknown.
"""

from __future__ import annotations

from combdiff.differentiation import equation_of, jacobian_block
from combdiff.errors import UnsupportedError
from combdiff.ir import (
    Function,
    Implicit,
    Lambda,
    Names,
    Space,
    Term,
    Tuple,
    Var,
    free_indices,
    let,
    share,
    split,
    substitute,
)
from combdiff.planning.operations.calls import plain_name


def captures(term: Implicit) -> tuple[Var, ...]:
    """The tensors, numbers and named maps that an equation mentions besides its unknown, by name.

    Raises UnsupportedError where it mentions an index: each of its values would be an equation of its own.
    """
    indices = free_indices(term.map)
    if indices:
        unknown = plain_name(term.unknown)
        raise UnsupportedError(
            f"an equation for {unknown} is solved for each index {plain_name(indices[0])}: that would be a loop",
            hint=f"give {unknown} one axis more, and solve for all indices at once",
        )
    return tuple(sorted((v for v in term.map.free if isinstance(v.type, Space | Function)), key=lambda v: v.name))


def system(term: Implicit) -> Lambda:
    """`(unknown, captures…) ↦ (equation, Jacobian…)`, for a minimum `↦ (objective, gradient, Hessian…)`."""
    names = Names(term)
    unknown, equation = equation_of(term, names)
    bindings, value = split(equation)
    _, block = jacobian_block(equation, unknown, "forward", names)  # the forward mode binds nothing
    parts: list[Term] = [value, *(block.items if isinstance(block, Tuple) else (block,))]
    results = [let(bindings, part) for part in parts]
    if term.kind == "argmin":
        results.insert(0, substitute(term.equation, {term.unknown: unknown}))
    return Lambda((unknown, *captures(term)), share(Tuple(tuple(results))))
