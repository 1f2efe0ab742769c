"""Lowering: terms to a plan of array steps, and the plan to NumPy source.

    Σ_j A[i,j]·x[j]   to   Contract(left=(0, 1), right=(1,), out=(0,))   to   A @ x

`networks` finds contraction orders, `views` turns index expressions into positions, `steps` has the operations,
`graph` joins equal computations, `lower` walks the term, `plan` chooses among orders, `fusion` puts element-wise chains
into loops over blocks, `expressions` and `source` write it out.

Invariant: terms → plan → source, each step a function of the one before.
"""

from combdiff.lowering.plan import Plan, StepCost, cost, peak
from combdiff.lowering.planning import make_plan, size_names
from combdiff.lowering.slicing import sliced
from combdiff.lowering.source import source, step_names, suited

__all__ = ["Plan", "StepCost", "cost", "make_plan", "peak", "size_names", "sliced", "source", "step_names", "suited"]
