"""Functions of one matrix that a single decomposition gives: eigenvalues with eigenvectors, the three parts of an SVD.

    w = eigvalsh(A);  V = eigvecsh(A)      becomes      w, V = eigh(A)
    l = eiglevels(A)                       beside these          l = levels(w)

Invariant: the steps have the same results, up to rounding; a function that stands alone is computed alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from combdiff.ir import MATRIX_TABLE
from combdiff.planning.operations.matrices import Decomposition, DecompositionResult, Levels, MatrixFunctionStep
from combdiff.planning.operations.operation import Step
from combdiff.planning.plan import NewPlan, Plan, step_by_step

Key = tuple[str, int]  # what gives several functions at once, and the matrix


def decomposed_once(plan: Plan) -> Plan:
    """The plan with one decomposition in place of several functions of a matrix."""
    functions: dict[Key, dict[str, Step]] = defaultdict(dict)
    for step in plan.steps:
        if key := _key(step):
            functions[key][_name(step)] = step
    made: dict[Key, dict[str, int]] = {}

    def rewrite(new: NewPlan, step: Step) -> int:
        key = _key(step)
        if key is None or len(functions[key]) == 1:
            return new.add(new.moved(step))
        if key not in made:
            made[key] = _results(new, new.number[key[1]], functions[key])
        return made[key][_name(step)]

    return step_by_step(plan, rewrite)


def _key(step: Step) -> Key | None:
    if not isinstance(step.operation, MatrixFunctionStep):
        return None
    row = MATRIX_TABLE[step.operation.name]
    joint = MATRIX_TABLE[row.levels_of or row.name].joint
    return (joint[0], step.operands[0]) if joint else None


def _name(step: Step) -> str:
    assert isinstance(step.operation, MatrixFunctionStep)
    return step.operation.name


def _results(new: NewPlan, matrix: int, functions: Mapping[str, Step]) -> dict[str, int]:
    """The number of the result for each function, of one new decomposition."""
    found = {MATRIX_TABLE[name].levels_of or name: step for name, step in functions.items()}
    names = sorted(found, key=lambda name: MATRIX_TABLE[name].joint or ())
    if len(names) > 1:
        whole = new.add(Step(Decomposition(tuple(names)), (matrix,), (), float))
        steps = {name: Step(DecompositionResult(name), (whole,), found[name].axes, found[name].kind) for name in names}
    else:
        steps = {name: Step(MatrixFunctionStep(name), (matrix,), found[name].axes, found[name].kind) for name in names}
    results = {name: new.add(step) for name, step in steps.items()}
    for name, step in functions.items():
        if values := MATRIX_TABLE[name].levels_of:
            results[name] = new.add(Step(Levels(), (results[values],), step.axes, step.kind))
    return results
