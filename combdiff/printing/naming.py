"""The names bound variables are shown with.

    Σ_{i.1, j} A[i, i.1] x[j]   inside   i ↦ …
    is shown as   i ↦ Σ_{k,j} A[i,k] x[j]

Names inside terms are unique (`i`, `i.1`, `@7`); on paper a name may serve again where its first use has ended.
A variable keeps its base name (`i` of `i.1`) where no enclosing binder shows that name. Otherwise an index takes
the next free letter and a tensor the next free number. A name that was made up (one with a suffix, or without a
base) also leaves alone the names of everything inside its scope, so that the names the user gave survive.

Invariant: variables of overlapping scope are shown with different names; the choice depends on the term alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import count

from combdiff.ir import Real, Var, Whole, is_domain
from combdiff.records import dataclass

LETTERS = "abcdefghijklmnpqrstuvwxyz"  # without o, which reads as 0
REAL_LETTERS = "xyztsuvwrqp"


def base_name(var: Var) -> str:
    """The name without its suffix; empty where only a made-up name such as `@7` is known."""
    base = var.name.split(".")[0]
    return base if base.isidentifier() else ""


@dataclass(frozen=True)
class Scope:
    """The variables visible at one place with the names they are shown by; no index is shown by a `reserved` name."""

    shown: Mapping[Var, str] = field(default_factory=dict)
    reserved: frozenset[str] = frozenset()

    def __getitem__(self, var: Var) -> str:
        return self.shown[var]

    def enter(self, variables: Iterable[Var], inside: frozenset[str] = frozenset()) -> Scope:
        """The scope below a binder; `inside` are the base names of the variables bound further in."""
        shown = dict(self.shown)
        taken = set(shown.values())
        # Variables that still have the name the user gave choose before their renamed siblings.
        for var in sorted(variables, key=lambda v: v.name != base_name(v)):
            shown[var] = _choose(var, taken, inside, self.reserved)
            taken.add(shown[var])
        return Scope(shown, self.reserved)


def _choose(var: Var, taken: set[str], inside: frozenset[str], reserved: frozenset[str]) -> str:
    base = base_name(var)
    mine = base == var.name and (base not in reserved or not _is_index(var))
    if base and base not in taken and (mine or base not in inside | reserved):
        return base
    return next(name for name in _candidates(var, base) if name not in taken and name not in inside | reserved)


def size_names(size: str) -> Iterator[str]:
    """The names that a size may be shown with, the first that is free: its own, if nothing else has that."""
    yield size
    yield from _candidates(Var(size, Whole()), size)


def _is_index(var: Var) -> bool:
    return is_domain(var.type) and not isinstance(var.type, Whole)


def _candidates(var: Var, base: str) -> Iterator[str]:
    """Letters that follow the base for an index, then (and for tensors at once) the base with a number."""
    if is_domain(var.type):
        letters, first = (REAL_LETTERS, "x") if isinstance(var.type, Real) else (LETTERS, "i")
        if not base or base in letters:
            start = letters.index(base or first)
            yield from letters[start:] + letters[:start]
        yield from (f"{base or first}{n}" for n in count(2))
    yield from (f"{base or 't'}{n}" for n in count(2 if base else 1))
