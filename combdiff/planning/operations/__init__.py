"""The operations of plans: each a class that knows its labels, what it costs, and its text in the words of a dialect.

    Contract(left=(0, 1), right=(1,), out=(0,))     flops n·m     A @ x

In: arrays and numbers. Out: one array.

`words` (how steps, sizes and element types are called), `operation` (what each tells of itself, and a `Step`),
`leaves` (arguments, numbers), `positions`, `reads` and `wrapped_reads` (views), `elementwise`, `contraction`,
`reductions`, `diagonals`, `stacks`, `masks` (conditions), `prefixes` (sums up to each position), `windows` and
`sliding`, `indirections` (indices in arrays), `matrices`, `calls`, `loops` (blocks), `iterations` (programs done over
and over).

Invariant: an operation says everything about a step but the sizes; adding one is adding a class in its module, from
which those take it that build it or look for it: there is no list of operations.
"""
