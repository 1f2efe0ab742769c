"""Plans: a program as the list of array operations that computes all of its results, each with its cost.

    Σ_j A[i,j]·x[j]   to   Contract(left=(0, 1), right=(1,), out=(0,))

In: a term and the sizes of its axes. Out: a `Plan`.

In the order in which data meets them: `extents`, `operations/` (the nodes of a plan, a class each), `views` (index
expressions as positions), `networks` and `search` (contraction orders), `lowering/` (terms to the graph of operations),
`plan` (the list, what each step costs), `passes/` (rewritings of plans), `planning` (all results together),
`quantities` and `costs` (the table that `cost()` shows), `memory`.

Invariant: a plan computes what its term means; no array of zeros and ones is made where a view or a bound will do.
"""

from combdiff.planning.costs import CostTable, table
from combdiff.planning.extents import elements, extent_form
from combdiff.planning.memory import BY_STRUCTURE, available, in_words, refuse_beyond
from combdiff.planning.operations import (
    Arrange,
    At,
    Block,
    Clip,
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
    IndexCondition,
    IndexEquals,
    Iota,
    Iteration,
    IterationResult,
    LinearSolve,
    Mask,
    MaskedContract,
    MatrixFunctionStep,
    NamedCall,
    Operation,
    Parameter,
    Pattern,
    Position,
    PrefixSum,
    Read,
    Reduce,
    ReduceMax,
    Scale,
    Scatter,
    SizeFactor,
    SolveEquation,
    Step,
    Sweep,
    SweepBack,
    Take,
    Words,
    plain_name,
)
from combdiff.planning.passes.checkpoints import checkpointed
from combdiff.planning.passes.pipeline import specialise
from combdiff.planning.passes.reuse import Reuse
from combdiff.planning.passes.slicing import sliced
from combdiff.planning.plan import Layout, Loop, Plan, cost, peak, repeated
from combdiff.planning.planning import make_plan, size_names

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
    "Operation",
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
    "Sweep",
    "SweepBack",
    "Take",
    "Words",
    "available",
    "checkpointed",
    "cost",
    "elements",
    "extent_form",
    "in_words",
    "make_plan",
    "peak",
    "plain_name",
    "refuse_beyond",
    "repeated",
    "size_names",
    "sliced",
    "specialise",
    "table",
]
