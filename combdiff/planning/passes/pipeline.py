"""The rewritings of plans, each by its name, in the order in which they are done, and the one way they are done.

    for each in PLANNING: print(each.name, each.reason)

A pass is a function from plans to plans. `PLANNING` is done for every plan, before it is priced, and `ITERATED` once
what iterations do is planned; `NATIVE` where arrays lie in this process's memory, as kernels and blocks that fit its
caches are chosen there; `CHOICE` wherever values may decide what is done.

Invariant: no pass changes a value beyond rounding; one that is left out costs time or memory alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from combdiff.dialects import dialect
from combdiff.planning.operations.calls import SolveEquation
from combdiff.planning.passes.axis_orders import in_good_order
from combdiff.planning.passes.chosen_products import with_chosen_weights
from combdiff.planning.passes.correlations import correlated
from combdiff.planning.passes.decompositions import decomposed_once
from combdiff.planning.passes.early_ends import with_early_ends
from combdiff.planning.passes.factoring import factored
from combdiff.planning.passes.fused_sums import with_fused_sums
from combdiff.planning.passes.fusion import fused
from combdiff.planning.passes.invariants import done_before
from combdiff.planning.passes.layouts import in_best_layout
from combdiff.planning.passes.masked_products import within
from combdiff.planning.passes.parts import with_parts_read
from combdiff.planning.passes.powers import with_powers_by_products
from combdiff.planning.passes.quotients import with_quotients
from combdiff.planning.passes.rows import in_rows
from combdiff.planning.passes.running_logarithms import with_running_logarithms
from combdiff.planning.passes.scaling import scaled_early
from combdiff.planning.passes.solves import with_solves
from combdiff.planning.passes.stacks import stacked
from combdiff.planning.passes.structured import structured
from combdiff.planning.passes.transforms import with_joint_transforms
from combdiff.planning.plan import Plan
from combdiff.records import dataclass
from combdiff.status import stage


@dataclass(frozen=True)
class Pass:
    """A rewriting of plans, and what it is good for."""

    name: str
    reason: str
    rewrite: Callable[[Plan], Plan]


PLANNING = (
    Pass("solves", "a system is solved in a third of the work of an inverse", with_solves),
    Pass("decompositions", "eigenvalues and vectors, or the parts of an SVD, come from one call", decomposed_once),
    Pass("parts", "a product of a part is read from the product of the whole", with_parts_read),
    Pass("factoring", "what terms of a sum share is multiplied once", factored),
    Pass("scaling", "a number is multiplied into the smallest operand", scaled_early),
    Pass("layouts", "a symmetric argument is read where no copy is needed", in_best_layout),
    Pass("masked products", "nothing is multiplied where a condition fails", within),
    Pass("stacks", "arrays at positions of an axis are put side by side, and nothing is added to zeros", stacked),
    Pass("quotients", "a quotient is one operation, rounded once", with_quotients),
    Pass("transforms", "Fourier transforms along several axes are one call", with_joint_transforms),
    Pass("running logarithms", "log-sum-exps are accumulated in a fifth of the time of sums", with_running_logarithms),
)
ITERATED = (Pass("invariants", "what is the same in every step of an iteration is done once", done_before),)
CHOICE = Pass("chosen products", "weights are chosen where elements of a larger array were", with_chosen_weights)
SUMS = Pass("fused sums", "what is soon made is made where it is summed, and not kept", with_fused_sums)
FUSION = Pass("fusion", "a chain over large arrays goes by blocks that stay in the caches", fused)
NATIVE = (
    Pass("axis orders", "arrays are made in the order of axes in which products read them", in_good_order),
    Pass("powers", "powers of a range of exponents are products", with_powers_by_products),
    CHOICE,
    Pass("correlations", "windows that slide along an axis are multiplied by blocks", correlated),
    Pass("structured", "arrays are written along diagonals last, and XᵀSX is done by one triangle", structured),
    Pass("rows", "a short array is copied where long ones would be made along its columns", in_rows),
    FUSION,
)


def rewritten_by(plan: Plan, passes: Sequence[Pass]) -> Plan:
    """The plan after some passes."""
    for each in passes:
        stage(f"rewriting the plan: {each.name}")
        plan = each.rewrite(plan)
    return plan


def specialise(plan: Plan, backend: str, fuses: bool = True, precisions: Mapping[str, int] | None = None) -> Plan:
    """The plan with what a backend alone does well; `fuses` tells whether chains go by blocks.

    `precisions` are those of the arguments, where they are known. Equations are solved by NumPy where the backend has
    no solvers of its own, or where these fail: `plan.hosted`.
    """
    known = precisions or {}
    return replace(_specialised(plan, backend, fuses, len(set(known.values())) == 1), precisions=known)


def _specialised(plan: Plan, backend: str, fuses: bool, even: bool) -> Plan:
    """The same, but for the precisions; `even` tells whether they are all one."""
    used = dialect(backend)
    ending = with_early_ends(plan, used)
    if ending is not plan:
        plan = rewritten_by(ending, ITERATED)
    solver = backend if used.solves or used.attempts else "numpy"
    equations = {step.operation.system for step in plan.steps if isinstance(step.operation, SolveEquation)}
    inner = {
        system: _specialised(one, solver if system in equations else backend, True, even)
        for system, one in plan.inner.items()
    }
    hosted = {} if used.solves else {each: _specialised(plan.inner[each], "numpy", True, even) for each in equations}
    plan = replace(plan, inner=inner, hosted=hosted, even=even)
    if not plan.loops and used.native:
        plan = rewritten_by(plan, [each for each in NATIVE if fuses or each is not FUSION])
    elif not plan.loops and used.fuses_sums:
        plan = rewritten_by(plan, [SUMS, replace(CHOICE, rewrite=partial(with_chosen_weights, most=used.chooses))])
    return replace(plan, writes_over=used.writes_over)
