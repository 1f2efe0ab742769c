"""The backends that source can be written for, by name.

    dialect("torch").arange("n")  =  "torch.arange(n, device=device)"

`numpy` writes every operation, for CuPy and JAX with small differences; `torch` and `dask` write some in their own way.

Invariant: a backend is one row of `DIALECTS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.codegen.dialects.dask import DaskDialect
from combdiff.codegen.dialects.numpy import CuPyDialect, JaxDialect, NumPyDialect
from combdiff.codegen.dialects.torch import TorchDialect
from combdiff.errors import UnsupportedError, shown

__all__ = ["DIALECTS", "NumPyDialect", "dialect"]

DIALECTS: Mapping[str, NumPyDialect] = {
    dialect.name: dialect for dialect in (NumPyDialect(), CuPyDialect(), JaxDialect(), DaskDialect(), TorchDialect())
}


def dialect(name: str) -> NumPyDialect:
    """The dialect of a backend. Raises UnsupportedError for a name that there is none of."""
    if not isinstance(name, str) or name not in DIALECTS:
        known = ", ".join(f'"{known}"' for known in DIALECTS)
        raise UnsupportedError(f"no source can be written for the backend {shown(name)}", hint=f"use one of {known}")
    return DIALECTS[name]
