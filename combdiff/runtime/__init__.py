"""Running programs on arrays: sizes from shapes, one plan for each program and shapes, the emitted source compiled.

In: a program and arrays of NumPy, JAX, PyTorch, CuPy or Dask. Out: arrays of the same library.

In the order in which data meets them: `libraries` (whose an array is), `arguments` (what a call gives a program),
`limits` (memory), `freed_memory` (what is kept of it between arrays), `execution` (plans, compiled and kept).

Invariant: everything about a call is checked before anything is computed.
"""

from combdiff.runtime.arguments import bind_sizes, unequal_lists
from combdiff.runtime.execution import Compiled, Runner, checked_sizes, compiled, cost_table, rough_plan, run, source
from combdiff.runtime.libraries import library_named

__all__ = [
    "Compiled",
    "Runner",
    "bind_sizes",
    "checked_sizes",
    "compiled",
    "cost_table",
    "library_named",
    "rough_plan",
    "run",
    "source",
    "unequal_lists",
]
