"""The backends that source can be written for, by name.

    dialect("torch").arange("n")  =  "torch.arange(n, device=device)"

Invariant: a backend is one row of `DIALECTS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.errors import UnsupportedError, shown
from combdiff.lowering.dialects.dask import Dask
from combdiff.lowering.dialects.numpy import CuPy, Jax, NumPy
from combdiff.lowering.dialects.torch import Torch

__all__ = ["DIALECTS", "NumPy", "dialect"]

DIALECTS: Mapping[str, NumPy] = {dialect.name: dialect for dialect in (NumPy(), CuPy(), Jax(), Dask(), Torch())}


def dialect(name: str) -> NumPy:
    """The dialect of a backend. Raises UnsupportedError for a name that there is none of."""
    if not isinstance(name, str) or name not in DIALECTS:
        known = ", ".join(f'"{known}"' for known in DIALECTS)
        raise UnsupportedError(f"no source can be written for the backend {shown(name)}", hint=f"use one of {known}")
    return DIALECTS[name]
