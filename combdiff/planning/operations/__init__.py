"""The operations of plans: each a class that knows its labels, what it costs, and its text in the words of a dialect.

    Contract(left=(0, 1), right=(1,), out=(0,))     flops n·m     A @ x

In: arrays and numbers. Out: one array.

All are written in `words` (how steps, sizes and element types are called) and derived from `operation` (what each tells
of itself, and a `Step`). Each other module holds operations of one kind, which its first line names; they are in no
order, and in no list.

Invariant: an operation says everything about a step but the sizes; adding one is adding a class in its module, from
which those take it that build it or look for it.
"""
