"""The kernel of CuPy's own: the others are NumPy's, in its words.

    _on_host(solver, given, dtype)            what NumPy solves, brought from the GPU and back to it

Invariant: it writes to none of its arguments.
"""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np


def _on_host(solver: Any, given: Any, dtype: Any, *captures: Any) -> Any:
    """A solution that NumPy finds for arrays, which come from the GPU and go back to it."""
    found = solver(cp.asnumpy(given), np.dtype(dtype), *[cp.asnumpy(value) for value in captures])
    return cp.asarray(found, dtype)
