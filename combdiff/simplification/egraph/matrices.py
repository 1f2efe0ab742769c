"""Matrices for egglog: what a tensor is as an expression in other matrices, and what is known of it.

    t = (i, j) ↦ 2 Σ_k A[i, k]·B[j, k]*        t = (Multiple 2 0 (MatMul A (Transposed (Conjugated B))))
    t = (i, j) ↦ s K[i, j]                     t = (Weighted s K)

A matrix function is a function of a variable (see `sharing`); what that variable is bound to, as far as it is such an
expression, is told the e-graph as an equation, and the symmetries that its Space declares too. So the laws of
rules/linalg.egg see through names: det(t) is det(A)·det(B).

Invariant: an equation holds for all values of the tensors in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from combdiff.ir import (
    MATRIX_TABLE,
    Apply,
    Conj,
    Lambda,
    Number,
    Space,
    Sum,
    Term,
    Var,
    factors_of,
    free_indices,
    is_matrix_function,
    whole_tensor,
)
from combdiff.simplification.egraph.context import Known
from combdiff.simplification.egraph.vocabulary import domain_key, rational

MATRIX_FACTS = "\n".join(f'(of-{row.kind} "{row.name}")' for row in MATRIX_TABLE.values() if row.kind)

Write = Callable[[Term], str]


def facts(var: Var, name: str, known: Known, write: Write, write_number: Write) -> Iterator[str]:
    """What is known of a variable, called `name`, that a matrix function is a function of, or a part of it is."""
    space = var.type
    assert isinstance(space, Space)
    if space.order > 1 and space.axes[-1] == space.axes[-2]:
        yield f"(square {name})"
        yield f'(square-over {name} "{domain_key(space.axes[-1])}")'
        yield from (f"(union {name} {image})" for image in _symmetries(space, name))
        if _is_self_adjoint(space):
            yield f"(self-adjoint {name})"
    if var in known and (expression := matrix_expression(known[var], write, write_number)) is not None:
        yield f"(union {name} {expression})"


def _symmetries(space: Space, name: str) -> Iterator[str]:
    """The forms of a tensor that its symmetries between the last two indices say are equal to it."""
    order = space.order
    exchanged = (*range(order - 2), order - 1, order - 2)
    for action in space.generators:
        if action.axes == exchanged and not any(action.negated):
            image = f"(Transposed {name})"
            image = f"(Conjugated {image})" if action.conjugate else image
            yield image if action.sign > 0 else f"(Multiple {rational(-1)} {rational(0)} {image})"


def _is_self_adjoint(space: Space) -> bool:
    """Whether the last two axes of a tensor are those of a matrix that is its own conjugate transpose."""
    exchanged = (*range(space.order - 2), space.order - 1, space.order - 2)
    return any(
        action.axes == exchanged
        and not any(action.negated)
        and action.sign > 0
        and action.conjugate == (space.dtype is complex)
        for action in space.generators
    )


def matrix_expression(value: Term, write: Write, write_number: Write) -> str | None:
    """The text of numbers times a product of matrices, transposed or conjugated; None for other tensors."""
    if not isinstance(value, Lambda) or len(value.parameters) != 2:
        return None
    row, column = value.parameters
    summed = value.body.indices if isinstance(value.body, Sum) else ()
    body = value.body.body if isinstance(value.body, Sum) else value.body
    factors = factors_of(body)
    numbers = [f for f in factors if isinstance(f, Number)]
    weights = [f for f in factors if not isinstance(f, Number) and not free_indices(f)]
    others = [f for f in factors if not isinstance(f, Number) and f not in weights]
    if any(not number.exact for number in numbers) or len(others) != len(summed) + 1:
        return None
    links = _chain(others, row, column, write)
    if links is None:
        return None
    text = links[-1]
    for link in reversed(links[:-1]):
        text = f"(MatMul {link} {text})"
    for weight in weights:
        text = f"(Weighted {write_number(weight)} {text})"
    for number in numbers:
        text = f"(Multiple {rational(number.real)} {rational(number.imag)} {text})"  # type: ignore[arg-type]
    return text


def _chain(factors: Sequence[Term], start: Var, end: Var, write: Write) -> list[str] | None:
    """The factors as matrices in the order in which their indices lead from start to end."""
    for n, factor in enumerate(factors):
        for other, text in _links(factor, start, write):
            rest = [*factors[:n], *factors[n + 1 :]]
            if not rest and other is end:
                return [text]
            following = _chain(rest, other, end, write) if rest and other is not end else None
            if following is not None:
                return [text, *following]
    return None


def _links(factor: Term, start: Var, write: Write) -> Iterator[tuple[Var, str]]:
    """A matrix element that has `start` as one index: its other index, and the matrix that leads there."""
    access = factor.body if isinstance(factor, Conj) else factor
    if not isinstance(access, Apply) or not (isinstance(access.function, Var) or is_matrix_function(access.function)):
        return
    indices = access.arguments
    if len(indices) != 2 or whole_tensor(access, indices) is None:  # a part of a matrix is another matrix
        return
    for position in (0, 1):
        other = indices[1 - position]
        if indices[position] is start and isinstance(other, Var):
            text = write(access.function)
            text = f"(Conjugated {text})" if isinstance(factor, Conj) else text
            yield other, f"(Transposed {text})" if position else text
