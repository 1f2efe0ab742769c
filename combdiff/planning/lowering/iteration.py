"""What a scan does at each step: a program of the states, of slices of tensors, and of what stays the same.

    (t, x) ↦ A @ x + B[t] @ u[t]    =    (x, s, A) ↦ A @ x + s    at the slices s = S[t] of S = t ↦ B[t] @ u[t]

What mentions the number of the step and no state is one tensor over all steps, made before the first of them; a
product is cut into its factors where it would have more axes than they have.

Invariant: the program of a step is closed and does not mention the number of the step.
"""

from __future__ import annotations

from combdiff.errors import UnsupportedError
from combdiff.ir import (
    Function,
    Lambda,
    Let,
    Names,
    Scan,
    Slicing,
    Space,
    Term,
    Tuple,
    Var,
    free_indices,
    let,
    opened,
)
from combdiff.records import dataclass


@dataclass(frozen=True)
class StepProgram:
    """`(states…, slices…, captures…) ↦ outputs` and the tensors, over the steps first, that the slices are of."""

    system: Lambda
    stacks: tuple[Term, ...]
    captures: tuple[Var, ...]


def step_program(scan: Scan, names: Names) -> StepProgram:
    """The program of a step. Raises UnsupportedError where the scan is done for each index around it."""
    around = free_indices(scan)
    if around:
        raise UnsupportedError(
            f"a scan is done for each index {around[0].name}: that would be a loop over elements",
            hint="give its states one axis more",
        )
    step = opened(scan, names)
    slicing = Slicing(step, names)
    body = let(((v, slicing.run(value)) for v, value in step.bindings), Tuple(tuple(map(slicing.run, step.outputs))))
    slices = tuple(slicing.slices.values())
    known = {*step.states, *slices}
    captures = sorted((v for v in body.free if isinstance(v.type, Space | Function) and v not in known), key=_name)
    outputs = body if len(step.outputs) > 1 else _only(body)
    return StepProgram(Lambda((*step.states, *slices, *captures), outputs), tuple(slicing.slices), tuple(captures))


def _name(var: Var) -> str:
    return var.name


def _only(body: Term) -> Term:
    """The body with its one result bare."""
    if isinstance(body, Let):
        return let(body.bindings, _only(body.body))
    assert isinstance(body, Tuple)
    return body.items[0]
