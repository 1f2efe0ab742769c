"""What NumPy has and a program does not take, each with the reason and what to write in its place.

    np.unique(x)      how many elements the result has depends on the values

Invariant: each sentence names something that works.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from combdiff.tracing.numpy_protocol import REFUSED

_SIZE = "how many elements the result has depends on the values"
_PLACE = "an array of a program is not changed in place"
_TRUTH = "its truth has no value while the program is traced"
_BITS = "it looks at how numbers are stored"
_COUNT = "it counts or numbers elements, which jumps with the values and has no derivative"
_OUTSIDE = "compute it outside, and pass it as a parameter"
_CHOICE = "keep all elements: np.where(x > 0, x, 0)"
_NEW = "build the new tensor: np.where(mask, value, x), np.concatenate, or cd.tensor(lambda i: …)"

_REASONS: dict[tuple[str, str], tuple[str, ...]] = {
    (_SIZE, _CHOICE): ("extract", "argwhere", "nonzero", "flatnonzero", "trim_zeros", "packbits"),
    (_SIZE, _OUTSIDE): (
        *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "union1d", "intersect1d"),
        *("setdiff1d", "setxor1d"),
    ),
    (_PLACE, _NEW): ("copyto", "place", "put", "put_along_axis", "putmask"),
    (_PLACE, "np.where(np.eye(n) > 0, value, A), or A - np.diag(np.diag(A)) + np.diag(v)"): ("fill_diagonal",),
    (_TRUTH, "np.all(x == y), a comparison for np.where"): ("array_equal", "array_equiv"),
    (_BITS, "leave it out of the program"): (
        *("frexp", "spacing", "nextafter", "view", "tobytes", "may_share_memory", "shares_memory", "bitwise_count"),
        *("result_type", "can_cast", "min_scalar_type", "common_type", "base", "ctypes", "data", "device", "flags"),
        *("getfield", "isfortran", "itemsize", "nbytes", "strides", "to_device", "unpackbits"),
    ),
    ("it works on the bits of whole numbers", _OUTSIDE): ("left_shift", "right_shift"),
    ("divisors are those of whole numbers, which have no derivative", _OUTSIDE): ("gcd", "lcm"),
    ("dates are no numbers of a program", "count days or seconds outside, and pass the numbers"): (
        *("busday_count", "busday_offset", "is_busday", "isnat", "datetime_as_string", "datetime_data"),
    ),
    ("an index is a letter, and no array of places", "cd.tensor(lambda i, j: …), with i // n and i % n"): (
        *("unravel_index", "ravel_multi_index"),
    ),
    ("rows and columns are told apart by the axes of index arrays", "A[rows[:, None], columns]"): ("ix_",),
    ("places in a triangle are those of a condition", "np.tril(A), np.triu(A), or A[np.tril_indices(3)]"): (
        *("tril_indices_from", "triu_indices_from"),
    ),
    ("places on a diagonal have one index", "np.diag(A), or cd.tensor(lambda i: A[i, i])"): ("diag_indices_from",),
    ("a plan finds the order of its products", "cd.einsum(…); f.cost() shows the order"): ("einsum_path",),
    ("complex numbers have no order", "np.sort(z.real), np.sort(abs(z))"): ("sort_complex",),
    (_COUNT, _OUTSIDE): ("histogram", "histogram2d", "histogramdd", "histogram_bin_edges", "lexsort"),
    (_COUNT, "np.where(x[:, None] >= edges, 1, 0).sum(1) counts the edges below; np.interp interpolates"): (
        *("digitize", "searchsorted"),
    ),
    (_COUNT, "np.argmax, np.argmin of np.where(np.isnan(x), -np.inf, x)"): ("nanargmax", "nanargmin"),
    ("how many numbers are left depends on the values", "np.median or np.quantile of np.where(np.isnan(x), 0, x)"): (
        *("nanmedian", "nanquantile", "nanpercentile"),
    ),
    ("the order within its parts is not defined", "np.sort(x), which costs little more"): ("partition", "argpartition"),
    ("membership compares all with all", "np.any(x[:, None] == y, axis=1)"): ("isin",),
    ("the roots of a polynomial are eigenvalues of a matrix that is not symmetric", "find one by cd.root"): ("roots",),
    ("the quotient of polynomials is a recursion", "solve for its coefficients: np.linalg.lstsq"): ("polydiv",),
    ("it gives Python's numbers", "return the tensor, and ask the result"): (
        *("tolist", "item", "array2string", "array_repr", "array_str", "dump", "dumps", "tofile", "save", "savetxt"),
        *("savez", "savez_compressed"),
    ),
    ("it reads a tensor as a row of numbers", "x.reshape(-1)[n]"): ("flat", "flatiter"),
    (_PLACE + ", and its size does not change", "np.resize(x, n)"): ("setflags", "byteswap", "fill", "setfield"),
}

_LINALG: dict[tuple[str, str], tuple[str, ...]] = {
    (
        "eigenvalues of a matrix that is not symmetric are complex, and collide",
        "np.linalg.eigh of symmetric matrices; det, trace and matrix powers of others",
    ): ("eig", "eigvals"),
    ("it is a whole number that jumps", "compute it outside of the program"): ("matrix_rank",),
}

_FREQUENCIES = ("NumPy makes it of a number, not of a name", "cd.arange(n) / n, with n = x.shape[0]")


def _all_reasons() -> dict[Any, tuple[str, str]]:
    """The table by functions; by names, for methods that are no functions."""
    found: dict[Any, tuple[str, str]] = {}
    for table, module in ((_REASONS, np), (_LINALG, np.linalg)):
        for said, names in table.items():
            found.update({getattr(module, name, name): said for name in names})
    found.update({np.fft.fftfreq: _FREQUENCIES, np.fft.rfftfreq: _FREQUENCIES})
    return found


REFUSED.update(_all_reasons())
