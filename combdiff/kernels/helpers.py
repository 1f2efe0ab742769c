"""Functions of matrices that emitted source carries with it: those of `ir.numerics`, which programs are made with too.

    matrix_helpers("jnp")["_adjugate"]      the text of `numerics.adjugate` in the words of jax.numpy

Invariant: a helper never writes to its argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache

from combdiff.ir import (
    adjugate,
    cholesky,
    eigvalsh,
    eigvecsh,
    expm,
    inverse,
    linear_solve,
    logdet_positive,
    products_of_others,
    qr_r,
    sinc_slope,
    sqrtm,
    svd_left,
    svd_right,
    svdvals,
    wrapped,
)

_FUNCTIONS = (
    *(inverse, linear_solve, adjugate, logdet_positive, wrapped),
    *(cholesky, eigvalsh, eigvecsh, svdvals, svd_left, svd_right, qr_r, products_of_others, sinc_slope, expm, sqrtm),
)


@cache
def matrix_helpers(np: str) -> Mapping[str, str]:
    """The texts of numerical functions as helpers, without types, for the library with that name in the text."""
    texts = {f"_{function.__name__}": inspect.getsource(function) for function in _FUNCTIONS}
    return {
        name: text.replace(f"def {name[1:]}(", f"def {name}(")
        .replace(": Any", "")
        .replace(" -> Any", "")
        .replace("np.", f"{np}.")
        for name, text in texts.items()
    }
