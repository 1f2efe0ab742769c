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
from combdiff.planning.lowering.summed_iterations import with_sums_in_steps
from combdiff.planning.memory import BY_STRUCTURE, available, in_words, refuse_beyond
from combdiff.planning.operations.calls import SolveEquation, plain_name
from combdiff.planning.operations.contraction import ChosenProduct
from combdiff.planning.operations.elementwise import Combine, ConjugateElements, ElementwiseStep, Scale
from combdiff.planning.operations.iterations import Iteration, IterationResult, Sweep, SweepBack
from combdiff.planning.operations.leaves import Fill, Parameter
from combdiff.planning.operations.loops import Collect
from combdiff.planning.operations.masks import Mask, MaskedContract
from combdiff.planning.operations.matrices import Decomposition, DecompositionResult
from combdiff.planning.operations.operation import Operation, PartialResult, Step
from combdiff.planning.operations.prefixes import Powers, PrefixSum
from combdiff.planning.operations.reads import Arrange, Read
from combdiff.planning.operations.reductions import ReduceExtreme, Rescale
from combdiff.planning.operations.words import Words
from combdiff.planning.passes.checkpoints import checkpointed
from combdiff.planning.passes.pipeline import specialise
from combdiff.planning.passes.reuse import written_over
from combdiff.planning.passes.slicing import sliced
from combdiff.planning.plan import Layout, Loop, Plan, cost, peak, repeated, with_real_results
from combdiff.planning.planning import make_plan, size_names

__all__ = [
    "BY_STRUCTURE",
    "Arrange",
    "ChosenProduct",
    "Collect",
    "Combine",
    "ConjugateElements",
    "CostTable",
    "Decomposition",
    "DecompositionResult",
    "ElementwiseStep",
    "Fill",
    "Iteration",
    "IterationResult",
    "Layout",
    "Loop",
    "Mask",
    "MaskedContract",
    "Operation",
    "Parameter",
    "PartialResult",
    "Plan",
    "Powers",
    "PrefixSum",
    "Read",
    "ReduceExtreme",
    "Rescale",
    "Scale",
    "SolveEquation",
    "Step",
    "Sweep",
    "SweepBack",
    "Words",
    "available",
    "checkpointed",
    "cost",
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
    "with_real_results",
    "with_sums_in_steps",
    "written_over",
]
