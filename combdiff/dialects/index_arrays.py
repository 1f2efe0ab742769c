"""Names for index arrays, so that reads at the same positions compute them once.

    S[:, np.arange(K)[:, None], (np.arange(K)[:, None] + np.arange(3)) % K]     becomes     i1 = np.arange(K)
                                                                            i2 = (i1[:, None] + np.arange(3)) % K
                                                                            S[:, i1[:, None], i2]

Invariant: a name stands for one text, and its line comes before the first step that uses it.
"""

from __future__ import annotations

from collections.abc import Callable


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
