"""Checks that users and combdiff's own tests share.

In the order in which data meets them: `arrays` (with the symmetries of a Space), `differences` (central differences,
`check_grad`), `routes` (`check_routes`: one value on every route), `generation` (random programs), `conditions`,
`instances`, `meaning` and `laws` (rule files tested on numbers), `text_derivatives` (the command line's `--check`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from combdiff.errors import ArgumentError, shown
from combdiff.hessians import transform
from combdiff.testing.arrays import (
    array_shape,
    broken_symmetry,
    check_arguments,
    named_sizes,
    random_array,
    random_arrays,
    symmetrize,
    tensors,
)
from combdiff.testing.differences import (
    check_grad,
    default_step,
    finite_difference_gradient,
    finite_difference_pullback,
    unit_moves,
)
from combdiff.testing.laws import FalseLaw, Verdict, require, verdicts
from combdiff.testing.routes import Case, check_routes
from combdiff.testing.text_derivatives import largest_error, largest_errors

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "Case",
    "FalseLaw",
    "Verdict",
    "array_shape",
    "broken_symmetry",
    "check_arguments",
    "check_grad",
    "check_routes",
    "check_rules",
    "default_step",
    "finite_difference_gradient",
    "finite_difference_pullback",
    "largest_error",
    "largest_errors",
    "named_sizes",
    "programs",
    "random_array",
    "random_arrays",
    "symmetrize",
    "tensors",
    "transform",
    "unit_moves",
    "verdicts",
]


def programs(
    *, result: str = "any", guarded: bool = True, depth: int = 3, without: Sequence[str] = ()
) -> SearchStrategy[Case]:
    """A Hypothesis strategy for random programs of one to three parameters, with arrays to evaluate them at.

    Sums, products, δ, conditions on indices and on values, affine indices, let bindings, element-wise functions of real
    and complex numbers, maxima at and away from ties; symmetric parameters, Cyclic and Symmetric axes, axes of length
    0 and 1. `without` leaves out some of "lookups" (integer parameters, whose elements are indices), "empty axes",
    "matrix functions", "solutions" (of equations, minima and linear systems), "recurrences" and "maps" (calls of a map,
    and its gradient, for which a program is passed). `result` is "scalar" (a real number), "tensor" (order 1 or 2, real
    or complex) or "any". `guarded` allows accesses that leave their axis where an indicator in the same product is 0.
    `depth` bounds the nesting. Programs are smooth at the arrays that come with them. Needs Hypothesis (`pip install
    combdiff[testing]`). Raises ArgumentError for a kind that there is not.
    """
    from combdiff.testing.generation import KINDS, drawn

    if unknown := [kind for kind in without if kind not in KINDS]:
        raise ArgumentError(f"programs() draws no {shown(unknown[0])}", hint=f"leave out some of {', '.join(KINDS)}")
    return drawn(result=result, guarded=guarded, depth=depth, without=tuple(without))


def check_rules(path: str | Path | None = None, *, seed: int = 0) -> list[Verdict]:
    """Test every law and primitive of the rule file at `path` on numbers; of the built-in files if none is given.

    Each law runs alone on random typed instances of its left side, complex ones where it does not ask for real ones;
    what it puts into one class is compared through the reference interpreter. Derivatives of primitives are compared
    with central differences. The same seed draws the same instances.

    Returns a Verdict for each. Raises RuleError for a file that cannot be read as one, and FalseLaw (a RuleError and an
    AssertionError) that names every law that is false, with a counter-example and its numbers, or that no random
    instance meets.
    """
    return require(verdicts(path, seed))
