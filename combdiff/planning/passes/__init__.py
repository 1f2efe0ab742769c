"""Rewritings of plans, each with its reason in its first lines; none changes a value beyond rounding.

`solves`, `decompositions`, `parts`, `factoring`, `scaling`, `layouts`, `masked_products`, `stacks`, `quotients`,
`transforms`, `running_logarithms` (for every plan); `invariants` (of iterations); `early_ends` (of loops with a
condition);
`axis_orders`, `powers`, `chosen_products`, `correlations`, `structured` with `grams`, `rows`, `fusion` with `summands`
(for arrays in memory); `fused_sums` (for compilers); `pipeline` (all these in one list); `reuse` (as a plan is
written); `loop_axis`, `loops`, `slicing` (blocks, for less memory), `checkpoints` (the steps of iterations in blocks).
"""
