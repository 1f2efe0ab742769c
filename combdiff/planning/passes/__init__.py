"""Rewritings of plans, each with its reason in its first lines; none changes a value beyond rounding.

`factoring`, `scaling`, `solves`, `masked_products`, `layouts`, `stacks` (before a plan is priced); `grams`,
`structured`, `correlations`, `summands`, `fusion`, `reuse` (before it is written); `loop_axis`, `loops`, `slicing`
(for less memory).
"""
