"""Functions of one matrix that a single decomposition gives: eigenvalues with eigenvectors, the three parts of an SVD.

    w = eigvalsh(A);  V = eigvecsh(A)      becomes      w, V = eigh(A)

Invariant: the steps have the same results, up to rounding; a function that stands alone is computed alone.
"""

from __future__ import annotations

from collections import defaultdict

from combdiff.ir import MATRIX_TABLE
from combdiff.planning.operations.matrices import Decomposition, DecompositionResult, MatrixFunctionStep
from combdiff.planning.operations.operation import Step
from combdiff.planning.plan import NewPlan, Plan, step_by_step

Key = tuple[str, int]  # what gives several functions at once, and the matrix


def decomposed_once(plan: Plan) -> Plan:
    """The plan with one decomposition in place of several functions of a matrix."""
    functions: dict[Key, list[Step]] = defaultdict(list)
    for step in plan.steps:
        if key := _key(step):
            functions[key].append(step)
    made: dict[Key, dict[str, int]] = {}

    def rewrite(new: NewPlan, step: Step) -> int:
        key = _key(step)
        if key is None or len(functions[key]) == 1:
            return new.add(new.moved(step))
        if key not in made:
            made[key] = _results(new, new.number[key[1]], functions[key])
        assert isinstance(step.operation, MatrixFunctionStep)
        return made[key][step.operation.name]

    return step_by_step(plan, rewrite)


def _key(step: Step) -> Key | None:
    if not isinstance(step.operation, MatrixFunctionStep):
        return None
    joint = MATRIX_TABLE[step.operation.name].joint
    return (joint[0], step.operands[0]) if joint else None


def _results(new: NewPlan, matrix: int, functions: list[Step]) -> dict[str, int]:
    """The number of the result for each function, of one new decomposition."""
    found = {step.operation.name: step for step in functions if isinstance(step.operation, MatrixFunctionStep)}
    names = sorted(found, key=lambda name: MATRIX_TABLE[name].joint or ())
    whole = new.add(Step(Decomposition(tuple(names)), (matrix,), (), float))
    results = ((name, found[name]) for name in names)
    return {name: new.add(Step(DecompositionResult(name), (whole,), step.axes, step.kind)) for name, step in results}
