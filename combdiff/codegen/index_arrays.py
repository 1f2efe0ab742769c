"""Names for index arrays, so that reads at the same positions compute them once.

    S[:, np.arange(K)[:, None], (np.arange(K)[:, None] + np.arange(3)) % K]     becomes     i1 = np.arange(K)
                                                                            i2 = (i1[:, None] + np.arange(3)) % K
                                                                            S[:, i1[:, None], i2]

Invariant: a name stands for one text, and its line comes before the first step that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from combdiff.codegen.dialects.numpy import NumPyDialect
from combdiff.codegen.fragments import parenthesised
from combdiff.ir import Domain, Symmetric
from combdiff.planning import Pattern, Plan, extent_form
from combdiff.polyhedra import Linear


class IndexArrays:
    """The index arrays that a function names: each is computed on a line of its own, before it is used first."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.fresh = fresh
        self.names: dict[str, str] = {}
        self._lines: list[str] = []

    def named(self, text: str) -> str:
        """The name of an index array."""
        if text not in self.names:
            name = self.fresh(f"i{len(self.names) + 1}")
            self._lines.append(f"{name} = {self.short(text)}  # indices")
            self.names[text] = name
        return self.names[text]

    def short(self, text: str) -> str:
        """An expression with the names of the arrays in it."""
        for known, name in self.names.items():
            text = text.replace(known, name)
        return text

    def lines(self) -> list[str]:
        """The lines for the names that were given since this was asked last."""
        found, self._lines = self._lines, []
        return found

    def forget(self) -> None:
        """Name nothing that was named so far any more, as what follows may not find it."""
        self.names.clear()


class Words(Protocol):
    """What is asked of the writer of expressions."""

    plan: Plan
    dialect: NumPyDialect
    index_arrays: IndexArrays

    def form(self, form: Linear) -> str:
        """A linear form in sizes."""

    def extent(self, domain: Domain) -> str:
        """The number of indices of a domain."""

    def placed(self, text: str, pattern: Pattern, rank: int) -> str:
        """An array with its axes where the pattern says."""

    def dtype(self, kind: type) -> str:
        """The element type of new arrays."""


def grid(writer: Words, steps: Pattern, start: Linear, axes: Sequence[Domain], full: bool = False) -> str:
    """`steps · t + start` for all t, an array over the axes; `full` says over those with step 0, too."""
    shiftable = [(isinstance(axes[label], Symmetric), label) for label, size in enumerate(steps) if size == 1]
    first = max(shiftable, default=(False, None))[1]  # the label that begins at the start
    parts = [] if first is not None or (start == Linear() and any(steps)) else [writer.form(start)]
    for label, (size, domain) in enumerate(zip(steps, axes, strict=True)):
        if size or full:
            shift = start if label == first else Linear()
            bounds = [shift, shift + extent_form(domain)][shift == Linear() :]
            array = writer.placed(writer.dialect.arange(*map(writer.form, bounds)), (label,), len(axes))
            parts.append(array if size == 1 else f"-{array}" if size == -1 else f"{parenthesised(str(size))} * {array}")
    return " + ".join(parts).replace(" + -", " - ")
