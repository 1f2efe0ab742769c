"""How each array library writes: the backends that source can be written for, by name.

    dialect("torch").arange("n")  =  "torch.arange(n, device=device)"

In: fragments of text. Out: text of Python in the words of a library.

`fragments` (numbers, tuples, parentheses, which all write alike), `index_arrays` (names for arrays of indices), `numpy`
(writes everything, for CuPy and JAX with small differences), `torch` and `dask` (write some in their own way).

Invariant: a backend is one row of `DIALECTS`; a dialect knows nothing of plans, and needs no library to be installed.
"""

from __future__ import annotations

from collections.abc import Mapping

from combdiff.dialects.dask import DaskDialect
from combdiff.dialects.fragments import LETTERS, literal, parenthesised, tuple_text
from combdiff.dialects.index_arrays import IndexArrays
from combdiff.dialects.numpy import CuPyDialect, JaxDialect, NumPyDialect
from combdiff.dialects.torch import TorchDialect
from combdiff.errors import UnsupportedError, shown

__all__ = [
    "DIALECTS",
    "LETTERS",
    "IndexArrays",
    "NumPyDialect",
    "dialect",
    "literal",
    "parenthesised",
    "tuple_text",
]

DIALECTS: Mapping[str, NumPyDialect] = {
    dialect.name: dialect for dialect in (NumPyDialect(), CuPyDialect(), JaxDialect(), DaskDialect(), TorchDialect())
}


def dialect(name: str) -> NumPyDialect:
    """The dialect of a backend. Raises UnsupportedError for a name that there is none of."""
    if not isinstance(name, str) or name not in DIALECTS:
        known = ", ".join(f'"{known}"' for known in DIALECTS)
        raise UnsupportedError(f"no source can be written for the backend {shown(name)}", hint=f"use one of {known}")
    return DIALECTS[name]
