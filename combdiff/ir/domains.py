"""Index domains, the types of tensors and maps, and symmetry equations as permutation groups.

A tensor is a map from indices to numbers, so its type is the tuple of the domains of its axes and an element
type. A symmetry equation such as `J[p,q,r,s] = conj(J[q,p,s,r])` says that the tensor is unchanged by an
`Action`: a permutation of axes, negation of some indices, a sign and perhaps a complex conjugate. The equations
of one Space generate a finite group of actions:

    Space("N", "N", symmetry=["A[i,j] = -A[j,i]"]).group
    = (identity, swap the axes and negate the value)

Invariant: `group` contains the identity, is closed under composition, and never holds two actions that differ
only in sign (such equations would force the tensor to vanish, and are refused). Two Spaces are equal if their groups
are, however the equations were written, and what is read off them is equal, too: the letters are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from combdiff.errors import SpaceError, shown
from combdiff.ir.sizes import Size, canonical, size_value
from combdiff.records import dataclass

_SUM = re.compile(r"[\w\s*+-]*[+*-][\w\s*+-]*")  # of names and numbers: "n - 1"
MOST_INDICES = 2**62  # of an axis: arrays count in 64 bits
MOST_SYMMETRIES = 50_000  # 8! = 40 320


def _checked(size: object, what: str) -> Size:
    """A size that is a name or a whole number, NumPy's as Python's. Raises SpaceError for anything else."""
    size = int(size) if isinstance(size, np.integer) else size
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise SpaceError(
            f"the size of {what} is {shown(size)}",
            hint='give a whole number such as 5, or a name such as "N" for a size known when arrays are given',
        )
    if isinstance(size, int) and size < 0:
        raise SpaceError(f"the size of {what} is {shown(size)}, which is negative")
    if isinstance(size, int) and size > MOST_INDICES:
        raise SpaceError(f"the size of {what} is more than 2**62, which no array has", hint="give a smaller number")
    if isinstance(size, str) and (what != "a Range" or not _SUM.fullmatch(size)) and not size.isidentifier():
        raise SpaceError(
            f"the size of {what} is named {shown(size)}, which is not a name",
            hint='use a name of letters, digits and underscores, such as "N"',
        )
    return size


@dataclass(frozen=True)
class Range:
    """The indices 0 … size−1."""

    size: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", canonical(_checked(self.size, "a Range")))


@dataclass(frozen=True)
class Cyclic:
    """The integers modulo `size`: index arithmetic wraps."""

    size: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", _checked(self.size, "a Cyclic domain"))


@dataclass(frozen=True)
class Symmetric:
    """The indices −bound … bound, stored in an array with index −bound first."""

    bound: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", _checked(self.bound, "a Symmetric domain"))


@dataclass(frozen=True)
class Real:
    """The real line: sums over it are integrals; arrays cannot be passed for it."""


Domain = Range | Cyclic | Symmetric | Real


@dataclass(frozen=True)
class Whole:
    """The type of a size name such as N where it occurs inside an index expression."""


TYPICAL_SIZE = 24  # of a named size, where a program is simplified or planned before there are arrays


def extent(domain: Domain, sizes: dict[str, int]) -> int:
    """How many indices a finite domain has, named sizes looked up in `sizes`."""
    if isinstance(domain, Real):
        raise SpaceError("the real line has no number of indices")
    if isinstance(domain, Symmetric):
        return 2 * size_value(domain.bound, sizes) + 1
    return size_value(domain.size, sizes)


def first_index(domain: Domain, sizes: dict[str, int]) -> int:
    """The index stored first: −bound for a Symmetric domain, 0 for the others."""
    return -(extent(domain, sizes) // 2) if isinstance(domain, Symmetric) else 0


@dataclass(frozen=True)
class Action:
    """What leaves a tensor unchanged: `T[i…] = sign · conj?(T[i'…])` with `i'[n] = ±i[axes[n]]`.

    `axes[n]` is the position on the left of the index that stands at position n on the right, `negated[n]` says
    whether it stands there with a minus, `sign` is 1 or −1 and `conjugate` whether the right side is conjugated.
    """

    axes: tuple[int, ...]
    negated: tuple[bool, ...]
    sign: int = 1
    conjugate: bool = False

    def then(self, other: Action) -> Action:
        """The action that rewrites by self and then rewrites the result by other."""
        return Action(
            tuple(self.axes[a] for a in other.axes),
            tuple(self.negated[a] != n for a, n in zip(other.axes, other.negated, strict=True)),
            self.sign * other.sign,
            self.conjugate != other.conjugate,
        )

    @property
    def inverse(self) -> Action:
        """The action that undoes this one."""
        axes = tuple(self.axes.index(n) for n in range(len(self.axes)))
        return Action(axes, tuple(self.negated[a] for a in axes), self.sign, self.conjugate)

    @property
    def rank(self) -> tuple[object, ...]:
        """Its place in a group: the identity, exchanges of two indices, plain ones before those that conjugate."""
        moved = [n for n, source in enumerate(self.axes) if source != n or self.negated[n]]
        return len(moved), sum(self.negated), self.conjugate, -self.sign, moved, self.axes, self.negated

    def equation(self, tensor: str) -> str:
        """What it says of a tensor of that name, as a Space is told it: `T[i,j] = -conj(T[j,i])`."""
        order = len(self.axes)
        letters = "ijklmnopqrstuvwxyz"[:order] if order <= 18 else [f"i{n}" for n in range(order)]
        read = (f"{'-' * minus}{letters[axis]}" for axis, minus in zip(self.axes, self.negated, strict=True))
        image = f"{tensor}[{','.join(read)}]"
        return f"{tensor}[{','.join(letters)}] = {'-' * (self.sign < 0)}{f'conj({image})' if self.conjugate else image}"


def identity_action(order: int) -> Action:
    """The action that changes nothing."""
    return Action(tuple(range(order)), (False,) * order)


class Space:
    """The type of a tensor: its axes, element type and symmetries.

    `Space("N", "N", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])` is an N × N Hermitian matrix. An axis is an
    int (fixed size), a str (named size, shared by every axis of that name) or a domain (`Range`, `Cyclic`,
    `Symmetric`, `Real`). `Space()` is a scalar. `dtype` is float, complex or int, or a NumPy dtype of those kinds.
    Raises SpaceError for an axis, dtype or symmetry that cannot be.
    """

    axes: tuple[Domain, ...]
    dtype: type
    group: tuple[Action, ...]  # all actions that leave such a tensor unchanged, by rank: the identity first
    _hash: int

    def __init__(self, *axes: Size | Domain, dtype: Any = float, symmetry: Iterable[str] = ()) -> None:
        set_ = super().__setattr__
        set_("axes", tuple(_as_domain(axis) for axis in axes))
        set_("dtype", _element_type(dtype))
        if not isinstance(symmetry, Iterable) or getattr(symmetry, "shape", None) == ():
            raise SpaceError(f"the symmetry is {shown(symmetry)}", hint='write a list: symmetry=["A[i,j] = A[j,i]"]')
        stated = (symmetry,) if isinstance(symmetry, str) else tuple(symmetry)
        actions = tuple(parse_symmetry(equation, self.axes, self.dtype) for equation in stated)
        set_("group", close(self.order, actions, stated))
        set_("_hash", hash(self._key()))  # variables, which have Spaces, are looked up again and again

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Space cannot be changed; make a new one with another {name}")

    @property
    def order(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def generators(self) -> tuple[Action, ...]:
        """The first actions of the group of which all others are made."""
        return generators_of(self.group)

    def equations(self, tensor: str) -> tuple[str, ...]:
        """The generators as equations about a tensor of that name."""
        return tuple(action.equation(tensor) for action in self.generators)

    @property
    def symmetry(self) -> tuple[str, ...]:
        """The generators as equations about A: the same for equal Spaces, whatever was written."""
        return self.equations("A")

    def _key(self) -> tuple[object, ...]:
        return (self.axes, self.dtype, self.group)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._key() == other._key()

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_space, (self.axes, self.dtype, self.symmetry)

    def __repr__(self) -> str:
        parts = [repr(show_axis(axis)) for axis in self.axes]
        if self.dtype is not float:
            parts.append(f"dtype={self.dtype.__name__}")
        if len(self.group) > 1:
            parts.append(f"symmetry={list(self.symmetry)!r}")
        return f"Space({', '.join(parts)})"


def _rebuild_space(axes: tuple[Domain, ...], dtype: type, symmetry: tuple[str, ...]) -> Space:
    return Space(*axes, dtype=dtype, symmetry=symmetry)


def show_axis(axis: Domain) -> Size | Domain:
    """An axis as users write it: of a Range the size alone."""
    return axis.size if isinstance(axis, Range) else axis


def _as_domain(axis: object) -> Domain:
    if isinstance(axis, Range | Cyclic | Symmetric | Real):
        return axis
    return Range(axis if isinstance(axis, str) and _SUM.fullmatch(axis) else _checked(axis, "an axis"))


def _element_type(dtype: Any) -> type:
    """float, complex or int for anything NumPy would accept as a real, complex or integer dtype."""
    if isinstance(dtype, type) and dtype in (float, complex, int):
        return dtype
    kind = getattr(dtype, "kind", None)
    if kind is None:
        import numpy as np

        try:
            kind = np.dtype(dtype).kind
        except (TypeError, ValueError, SyntaxError, RecursionError):  # of a list in lists
            kind = None
    found = {"f": float, "c": complex, "i": int, "u": int}.get(kind or "")
    if found is None:
        raise SpaceError(f"dtype {shown(dtype)} is not a number type", hint="use float, complex or int")
    return found


@dataclass(frozen=True)
class Function:
    """The type of a map that is only named: `Function(Space("n"))` is R: vector → scalar.

    `arguments` are Spaces, `result` a Space, `linear` promises linearity (then the derivative is the adjoint).
    """

    arguments: tuple[Space, ...]
    result: Space = field(default_factory=Space)
    linear: bool = False

    def __init__(self, *arguments: Space, result: Space | None = None, linear: bool = False) -> None:
        for argument in (*arguments, *([] if result is None else [result])):
            if not isinstance(argument, Space):
                raise SpaceError(f"a Function takes and gives Spaces, not {shown(argument)}")
        if linear and len(arguments) != 1:
            raise SpaceError(f"a linear Function takes one argument, not {len(arguments)}")
        object.__setattr__(self, "arguments", arguments)
        object.__setattr__(self, "result", result or Space())
        object.__setattr__(self, "linear", linear)


# --- symmetry equations --------------------------------------------------------------------------------------------

_ACCESS = re.compile(r"\s*([^\W\d]\w*)\s*\[([^\]]*)\]\s*")
_INDEX = re.compile(r"\s*(-?)\s*([^\W\d]\w*)\s*")


def _parse_access(text: str, equation: str) -> tuple[str, list[tuple[bool, str]]]:
    match = _ACCESS.fullmatch(text)
    if not match:
        raise SpaceError(
            f"in the symmetry {shown(equation)}, {text.strip()!r} is not an access",
            hint='write for example "A[i,j] = -A[j,i]" or "H[i,j] = conj(H[j,i])"',
        )
    indices = [_INDEX.fullmatch(part) for part in match[2].split(",")]
    if not all(indices):
        raise SpaceError(f"in the symmetry {shown(equation)}, {match[2]!r} is not a list of index names")
    return match[1], [(i[1] == "-", i[2]) for i in indices if i]


def parse_symmetry(equation: str, axes: Sequence[Domain], dtype: type) -> Action:
    """The action an equation such as `"J[p,q,r,s] = conj(J[q,p,s,r])"` states about tensors with these axes."""
    if not isinstance(equation, str) or equation.count("=") != 1:
        raise SpaceError(
            f"the symmetry {shown(equation)} is not an equation", hint='write for example "A[i,j] = A[j,i]"'
        )
    left, right = equation.split("=")
    name, names = _parse_access(left, equation)
    sign, conjugate, right = 1, False, right.strip()
    if right.startswith("-"):
        sign, right = -1, right[1:].strip()
    wrapped = re.fullmatch(r"(?:cd\.)?conj\s*\((.*)\)|(.*\])\s*\*", right)  # or as it is printed: H[j,i]*
    if wrapped:
        conjugate, right = True, wrapped[1] or wrapped[2]
    other, others = _parse_access(right, equation)
    if name != other:
        raise SpaceError(f"the symmetry {shown(equation)} relates two tensors, {name} and {other}")
    for side in (names, others):
        if len(side) != len(axes):
            raise SpaceError(
                f"the symmetry {shown(equation)} has {len(side)} indices, but the Space has {len(axes)} axes"
            )
    order = [n for _, n in names]
    if len(set(order)) != len(order) or any(negative for negative, _ in names):
        raise SpaceError(f"the left side of the symmetry {shown(equation)} must be plain, distinct indices")
    if sorted(n for _, n in others) != sorted(order):
        raise SpaceError(f"the right side of the symmetry {shown(equation)} must use each index of the left side once")
    action = Action(
        tuple(order.index(n) for _, n in others),
        tuple(negative for negative, _ in others),
        sign,
        conjugate and dtype is complex,
    )
    _check_axes(action, axes, equation)
    return action


def _check_axes(action: Action, axes: Sequence[Domain], equation: str) -> None:
    for position, (source, negative) in enumerate(zip(action.axes, action.negated, strict=True)):
        if axes[source] != axes[position]:
            raise SpaceError(
                f"the symmetry {shown(equation)} exchanges axes {position} and {source}, which are "
                f"{show_axis(axes[position])!r} and {show_axis(axes[source])!r}: they must be equal"
            )
        if negative and isinstance(axes[position], Range):
            raise SpaceError(
                f"the symmetry {equation!r} negates the index of axis {position}, a Range without negative indices",
                hint="declare the axis as Symmetric(…), Cyclic(…) or Real()",
            )


@lru_cache(maxsize=256)
def close(order: int, generators: tuple[Action, ...], equations: tuple[str, ...]) -> tuple[Action, ...]:
    """The group that the generators (stated by the equations) generate, by rank: the identity first.

    Raises SpaceError where they contradict each other.
    """
    group = {identity_action(order): None}
    frontier = list(group)
    while frontier:
        found = [a.then(g) for a in frontier for g in generators]
        frontier = [a for a in dict.fromkeys(found) if a not in group]
        group.update(dict.fromkeys(frontier))
        if len(group) > MOST_SYMMETRIES:
            raise SpaceError(
                f"the symmetries {list(equations)!r} generate more than {MOST_SYMMETRIES} exchanges of {order} axes",
                hint="declare fewer: of up to eight axes any may be exchanged with any",
            )
    for action in group:
        if replace(action, sign=-action.sign) in group:
            raise SpaceError(
                f"the symmetries {list(equations)!r} together say T = −T, so only the zero tensor has them",
                hint="remove one of the equations",
            )
    return tuple(sorted(group, key=lambda action: action.rank))


@lru_cache(maxsize=256)
def generators_of(group: tuple[Action, ...]) -> tuple[Action, ...]:
    """The actions of a group, in its order, that those before them do not generate."""
    chosen: list[Action] = []
    made = set(group[:1])
    for action in group:
        if action not in made:
            chosen.append(action)
            made = set(close(len(action.axes), tuple(chosen), ()))
    return tuple(chosen)
