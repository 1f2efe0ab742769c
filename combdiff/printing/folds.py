"""The largest, the smallest and the product of numbers over indices, as they are written: max_j x[i,j] and Π_j x[j].

    let t = (d, e, f<1) ↦ x[d,e] in (i) ↦ amax(t)[i]      is written      i ↦ max_j x[i,j]
    prod_others(t)[k]                                     is written      Π_{j≠k} x[j]
    cumprod(t)[k]                                         is written      Π_{j=0}^{k} x[j]
    amax_ties(t)                                          is written      maxima_j x[j]      how many are the largest
    [amax_marks(t)[k] = 1]                                is written      [x[k] = max_j x[j]]

Such a function is one of a matrix, whose second axis may have one index, and of a stack of them: of a tensor that is
bound for it. A tensor that is bound for nothing else is written where it is read, if it is short or read once.

Invariant: the term that is written has the value of the term given.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from combdiff.ir import (
    ONE,
    ZERO,
    Affine,
    Apply,
    Domain,
    Lambda,
    Let,
    Names,
    Number,
    Primitive,
    PrintedNumber,
    Range,
    Relation,
    Space,
    Sum,
    Term,
    Var,
    affine,
    axes_of,
    is_mark,
    lambda_,
    let,
    opposite,
    substitute,
    total,
)
from combdiff.printing.outline import postorder
from combdiff.records import dataclass

# The functions of matrices that are written so, by their signs: of all numbers, of all but one, of those up to one.
FOLDS: Mapping[str, tuple[str, str]] = {
    "amax": ("max", ""),
    "amin": ("min", ""),
    "amax_ties": ("maxima", ""),
    "amin_ties": ("minima", ""),
    "amax_marks": ("max", "marks"),
    "amin_marks": ("min", "marks"),
    "prod": ("Π", ""),
    "prod_others": ("Π", "others"),
    "cumprod": ("Π", "running"),
}
_FIRST = affine([], 0)


@dataclass(frozen=True, eq=False, repr=False)
class FoldSign(PrintedNumber):
    """`max_{indices} body`; an index is not `apart`, or is at most `last`. It occurs in prints alone."""

    sign: str
    indices: tuple[Var, ...]
    body: Term
    apart: Term | None = None
    last: Term | None = None

    @property
    def children(self) -> tuple[Term, ...]:
        return (*(term for term in (self.apart, self.last) if term is not None), self.body)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        rest = iter(children)
        apart, last = (None if term is None else next(rest) for term in (self.apart, self.last))
        return replace(self, body=next(rest), apart=apart, last=last)

    @property
    def bound(self) -> tuple[Var, ...]:
        return self.indices

    def over(self, bound: tuple[Var, ...], body: Term) -> Term:
        return replace(self, indices=bound, body=body)


def with_folds(term: Term) -> Term:
    """The term with these functions written over indices."""
    nodes = list(postorder(term))
    return _FoldWriter(nodes, Names(term)).run(term) if any(map(_is_fold, nodes)) else term


def _is_fold(term: Term) -> TypeGuard[Primitive]:
    """Whether such a function has a sign: Π_{j≠d} and Π_{j≤d} are over one index."""
    if not isinstance(term, Primitive) or term.name not in FOLDS:
        return False
    return FOLDS[term.name][1] in ("", "marks") or len(_long_axes(term)) == 1


def _long_axes(function: Primitive) -> list[int]:
    """Those of the rows and columns of its matrix, 0 and 1, that have more than one index."""
    return [n for n, axis in enumerate(axes_of(function.arguments[0])[-2:]) if axis != Range(1)]


class _FoldWriter:
    """Rewrites one term; knows the tensors bound for such functions alone, and those with axes of one index."""

    def __init__(self, nodes: Sequence[Term], names: Names) -> None:
        self.nodes, self.names = nodes, names
        self.written: dict[Term, Term] = {}
        readers: dict[Var, list[Term]] = defaultdict(list)
        for node in nodes:
            for child in node.children:
                if isinstance(child, Var) and not (isinstance(node, Let) and child is not node.body):
                    readers[child].append(node)
        bindings = {binding for node in nodes if isinstance(node, Let) for binding in node.bindings}
        often = Counter(var for var, _ in bindings)  # steps of several scans may each have a tensor of one name
        tensors = {var: value for var, value in bindings if isinstance(value, Lambda)}
        elements = Counter(_folded(node) for node in nodes)
        once = [(var, value) for var, value in tensors.items() if often[var] == 1]
        short = {var for var, value in once if _is_read(value.body) or elements[var] == 1}
        self.inlined = {var: tensors[var] for var in short if readers[var] and all(map(_is_fold, readers[var]))}
        narrow = {var for var in tensors if all(_is_fold(r) or _is_element(r, var) for r in readers[var])}
        kept = {var: [axis for axis in axes_of(var) if axis != Range(1)] for var in narrow - self.inlined.keys()}
        self.narrow = {var: _with_axes(var, axes) for var, axes in kept.items() if len(axes) < len(axes_of(var))}

    def run(self, term: Term) -> Term:
        """The term, rewritten from the leaves up."""
        for node in self.nodes:
            children = tuple(self.written[child] for child in node.children)
            self.written[node] = self._node(node, children)
        return self.written[term]

    def _node(self, node: Term, children: tuple[Term, ...]) -> Term:
        match node:
            case Relation(arguments=(Apply(function=mark), _)) if is_mark(mark):
                if not isinstance(children[0], Relation | Number):
                    return node.with_children(children)
                return children[0] if node.name == "equal" else opposite(children[0]) or ZERO  # 1 of one number alone
            case Apply() if _is_fold(node.function):
                return self._fold(node.function, children[1:]) or node.with_children((node.function, *children[1:]))
            case Apply(function=Var() as var) if var in self.narrow:
                return self._narrow_element(var, children[1:])
            case Primitive() if _is_fold(node):
                return self._whole(node)
            case Let():
                kept = ((var, value) for var, value in zip(node.bound, children[:-1], strict=True))
                bindings = ((v, value) for v, value in kept if v not in self.inlined)
                return let(
                    ((self.narrow.get(v, v), _at_units(value) if v in self.narrow else value) for v, value in bindings),
                    children[-1],
                )
            case Sum() if children != node.children:
                units = {index: _FIRST for index in node.indices if index.type == Range(1)}
                return total((i for i in node.indices if i not in units), substitute(children[0], units))
        return node.with_children(children) if children != node.children else node

    def _whole(self, function: Primitive) -> Term:
        """Such a function that is read whole, as what a map takes: `d ↦ Π_j C[j,d]`."""
        axes = axes_of(function.arguments[0])  # the function itself may have no type, as what is told of in an error
        places = self.names.indices(axes if FOLDS[function.name][1] else axes[:-2])
        body = self._fold(function, places)
        return function if body is None else lambda_(places, body)

    def _narrow_element(self, var: Var, indices: Sequence[Term]) -> Term:
        """An element of a tensor that is written without its axes of one index."""
        kept = tuple(index for index, axis in zip(indices, axes_of(var), strict=True) if axis != Range(1))
        return Apply(self.narrow[var], kept) if kept else self.narrow[var]

    def _fold(self, function: Term, places: tuple[Term, ...]) -> Term | None:
        """A function of a matrix, or of one in a stack, at places in its result; None where it has no such form."""
        assert isinstance(function, Primitive)
        (tensor,) = function.arguments
        axes = axes_of(tensor)
        stack, own = places[: len(axes) - 2], places[len(axes) - 2 :]
        long = _long_axes(function)
        sign, part = FOLDS[function.name]
        indices = tuple(self.names.fresh(Var("j", axes[len(axes) - 2 + n])) for n in long)
        body = self._element(tensor, (*stack, *indices))
        if body is None:
            return None
        if not indices:  # one number is the only one that is largest, and there are no others
            return body if function.name in ("amax", "amin", "prod", "cumprod") else ONE
        if part == "marks":
            marked = self._element(tensor, (*stack, *(own[n] for n in long)))
            if marked is None:
                return None
            return Relation("equal", (marked, FoldSign(sign, indices, body)))
        place = own[long[0]] if own else None
        apart, last = (place if part == each else None for each in ("others", "running"))
        return FoldSign(sign, indices, body, apart, last)

    def _element(self, tensor: Term, indices: Sequence[Term]) -> Term | None:
        """The element of a tensor at indices for its axes, those of one index left out among the last two."""
        rest, axes = iter(indices), axes_of(tensor)
        whole = [_FIRST if n >= len(axes) - 2 and axis == Range(1) else next(rest) for n, axis in enumerate(axes)]
        value = self.written[self.inlined.get(tensor, tensor)]  # type: ignore[call-overload]
        if isinstance(value, Lambda) and len(value.parameters) == len(axes):
            return substitute(value.body, dict(zip(value.parameters, whole, strict=True)))
        if not isinstance(value, Var):
            return None
        return self._narrow_element(value, whole) if value in self.narrow else Apply(value, tuple(whole))


def _at_units(value: Term) -> Term:
    """A tensor without its axes of one index."""
    assert isinstance(value, Lambda)
    units = {v: _FIRST for v in value.parameters if v.type == Range(1)}
    return lambda_((v for v in value.parameters if v not in units), substitute(value.body, units))


def _with_axes(var: Var, axes: Sequence[Domain]) -> Var:
    """A tensor of the same name and other axes."""
    assert isinstance(var.type, Space)
    return Var(var.name, Space(*axes, dtype=var.type.dtype))


def _folded(node: Term) -> Term | None:
    """The tensor that a node is such a function of: the element of one, or a number."""
    if isinstance(node, Apply) and _is_fold(node.function):
        return node.function.children[0]
    is_number = _is_fold(node) and not FOLDS[node.name][1] and len(axes_of(node.children[0])) == 2
    return node.children[0] if is_number else None


def _is_element(node: Term, var: Var) -> bool:
    return isinstance(node, Apply) and node.function is var and var not in node.arguments


def _is_read(body: Term) -> bool:
    """Whether a tensor is one element of another for each index, or a number."""
    plain = isinstance(body, Apply) and isinstance(body.function, Var)
    return isinstance(body, Number) or (plain and all(isinstance(a, Var | Affine) for a in body.children[1:]))
