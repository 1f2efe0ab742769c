"""Plain functions of arrays that emitted source may carry with it: what no library has under one name.

In: arrays. Out: arrays; no function here knows of terms or plans.

`numerics` (functions of matrices and numbers), `positions` (reads, writes at affine positions), `running` (sums up to
each position), `boxes` (positions at which conditions hold): in words that all libraries share, given the library.
`numpy`, `torch`, `jax`, `dask`, `cupy` (a module for each library: what it does in a way of its own, solvers),
`schedules` (which states a way back begins with), `bands` (windows that slide along an axis, multiplied by blocks),
`emission` (what source carries of all these).

Invariant: each kernel needs its own library alone. They stand below all that knows terms: the interpreter calls them, a
plan prices what they do, and a writer of source copies their text.
"""

from combdiff.kernels.bands import CHUNK
from combdiff.kernels.emission import needed, standard_imports, texts
from combdiff.kernels.numerics import for_numpy
from combdiff.kernels.numpy import GRAM_BLOCK, GRAM_SMALL

__all__ = ["CHUNK", "GRAM_BLOCK", "GRAM_SMALL", "for_numpy", "needed", "standard_imports", "texts"]
