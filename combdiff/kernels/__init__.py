"""Plain functions of arrays that emitted source may carry with it: what no library has under one name.

In: arrays. Out: arrays; no function here knows of terms or plans.

`numpy`, `torch`, `jax`, `dask`, `cupy` (a module for each library: reads at affine positions, writes into zeros, sums
up to a bound, solvers), `schedules` (which states a way back begins with), `bands` (windows that slide along an axis,
multiplied by blocks), `boxes` (positions at which conditions hold), `helpers` (functions of
matrices), `emission` (what source carries of all these).

Invariant: each kernel needs its own library alone. They stand below planning, since a plan prices what they do and
a writer of source copies their text.
"""

from combdiff.kernels.bands import CHUNK, block_size
from combdiff.kernels.emission import needed, standard_imports, texts
from combdiff.kernels.helpers import matrix_helpers
from combdiff.kernels.numpy import GRAM_BLOCK, GRAM_SMALL

__all__ = ["CHUNK", "GRAM_BLOCK", "GRAM_SMALL", "block_size", "matrix_helpers", "needed", "standard_imports", "texts"]
