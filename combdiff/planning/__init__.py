"""Plans: a program as the list of array operations that computes all of its results, each with its cost.

    Σ_j A[i,j]·x[j]   to   Contract(left=(0, 1), right=(1,), out=(0,))

In: a term and the sizes of its axes. Out: a `Plan`.

In the order in which data meets them: `indirections`, `views` (index expressions as positions), `operations` (the
nodes of a plan), `networks` and `search` (contraction orders), `lowering/` (terms to the graph of operations),
`sliding` (what windows cost), `plan` (the list, what each step costs), `passes/` (rewritings of plans), `planning`
(all results together), `quantities` and `costs` (the table that `cost()` shows), `memory`.

Invariant: a plan computes what its term means; no array of zeros and ones is made where a view or a bound will do.
"""

from combdiff.planning.costs import CostTable, table
from combdiff.planning.indirections import At, Clip, IndexEquals, Iota, Scatter, Take
from combdiff.planning.lowering.systems import base_name
from combdiff.planning.memory import BY_STRUCTURE, available, in_words, refuse_beyond
from combdiff.planning.operations import (
    Arrange,
    Block,
    Collect,
    Combine,
    ConjugateElements,
    Contract,
    Correlate,
    DiagonalEmbed,
    DiagonalScatterAdd,
    ElementwiseStep,
    Fill,
    Fold,
    Gram,
    Iteration,
    IterationResult,
    LinearSolve,
    Mask,
    MaskedContract,
    MatrixFunctionStep,
    NamedCall,
    Parameter,
    Pattern,
    PrefixSum,
    Read,
    Reduce,
    ReduceMax,
    Scale,
    SizeFactor,
    SolveEquation,
    Step,
)
from combdiff.planning.passes.correlations import correlated
from combdiff.planning.passes.fusion import fused
from combdiff.planning.passes.reuse import Reuse
from combdiff.planning.passes.slicing import sliced
from combdiff.planning.passes.stacks import stack_of, stack_text
from combdiff.planning.passes.structured import structured
from combdiff.planning.plan import Layout, Loop, Plan, cost, describe, elements, peak
from combdiff.planning.planning import make_plan, size_names
from combdiff.planning.views import IndexCondition, Position, extent_form

__all__ = [
    "BY_STRUCTURE",
    "Arrange",
    "At",
    "Block",
    "Clip",
    "Collect",
    "Combine",
    "ConjugateElements",
    "Contract",
    "Correlate",
    "CostTable",
    "DiagonalEmbed",
    "DiagonalScatterAdd",
    "ElementwiseStep",
    "Fill",
    "Fold",
    "Gram",
    "IndexCondition",
    "IndexEquals",
    "Iota",
    "Iteration",
    "IterationResult",
    "Layout",
    "LinearSolve",
    "Loop",
    "Mask",
    "MaskedContract",
    "MatrixFunctionStep",
    "NamedCall",
    "Parameter",
    "Pattern",
    "Plan",
    "Position",
    "PrefixSum",
    "Read",
    "Reduce",
    "ReduceMax",
    "Reuse",
    "Scale",
    "Scatter",
    "SizeFactor",
    "SolveEquation",
    "Step",
    "Take",
    "available",
    "base_name",
    "correlated",
    "cost",
    "describe",
    "elements",
    "extent_form",
    "fused",
    "in_words",
    "make_plan",
    "peak",
    "refuse_beyond",
    "size_names",
    "sliced",
    "stack_of",
    "stack_text",
    "structured",
    "table",
]
