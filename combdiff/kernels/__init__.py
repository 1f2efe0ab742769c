"""Plain functions of arrays that emitted source may carry with it: what no library has under one name.

In: arrays. Out: arrays; no function here knows of terms or plans.

`helpers` (reads at affine positions, matrices), `bands` (windows that slide along an axis, multiplied by blocks),
`bounded` (sums up to a bound), `box_kernels` (positions at which conditions hold, box by box), `scatter_kernels`
(writing into arrays of zeros), `solvers` (roots, minima, linear systems).

Invariant: each kernel needs its own library alone. They stand below planning, since a plan prices what they do and
a writer of source copies their text.
"""

from combdiff.kernels.bands import BANDS, CHUNK, block_size
from combdiff.kernels.bounded import fold_helper, running
from combdiff.kernels.box_kernels import REGIONS
from combdiff.kernels.helpers import DASK, GATHER, TORCH_GATHER, VIEW, matrix_helpers
from combdiff.kernels.scatter_kernels import JAX_SCATTER, PLACE, SCATTER, TORCH_SCATTER
from combdiff.kernels.solvers import CUPY_HOST, DASK_HOST, JAX_HOST, SOLVERS, TORCH_HOST

__all__ = [
    "BANDS",
    "CHUNK",
    "CUPY_HOST",
    "DASK",
    "DASK_HOST",
    "GATHER",
    "JAX_HOST",
    "JAX_SCATTER",
    "PLACE",
    "REGIONS",
    "SCATTER",
    "SOLVERS",
    "TORCH_GATHER",
    "TORCH_HOST",
    "TORCH_SCATTER",
    "VIEW",
    "block_size",
    "fold_helper",
    "matrix_helpers",
    "running",
]
