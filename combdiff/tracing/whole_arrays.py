"""NumPy's functions of whole arrays on traced tensors, under NumPy's names and with its keywords.

    np.concatenate([x, y])      cd.stack([x, y], axis=1)      x[1:].reshape(2, -1)      np.var(x, axis=0)

Each is a few words about an operation of `rearranging` or of elements. What NumPy has and a program cannot have is
refused by a sentence of its own.

Invariant: shape, elements and keywords are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import combdiff.tracing.arrays as arrays
import combdiff.tracing.rearranging as rearranging
from combdiff.errors import TypeMismatchError, UnsupportedError, shown
from combdiff.ir import ONE, ZERO, Domain, Range, Term, axes_of, describe, function
from combdiff.ir import number as number_term
from combdiff.tracing.functions import abs as absolute
from combdiff.tracing.functions import arctan, cos, exp, log, log1p_of, maximum, mean, minimum, power, sign, sin, sqrt
from combdiff.tracing.numpy_protocol import HANDLERS, METHODS
from combdiff.tracing.values import Scalar, Value, combined, lift, wrap

Axis = int | Sequence[int] | None
