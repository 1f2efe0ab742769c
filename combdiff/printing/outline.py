"""Any program as a list of definitions short enough to read.

    x ↦ (let y = i ↦ exp(x[i]) in Σ_i y[i] y[i]),  or the same with the map i ↦ exp(x[i]) applied twice,
    is written   y[i] = exp(x[i])   and then   Σ_i y[i]²

A program in normal form is such a list already and is left as it is. In others, maps that are applied to indices
are reduced where that is short and become definitions where they are long or used again; so do scalars that a deep
or heavily shared graph would otherwise repeat. A definition made under a binder takes the indices around it as
further arguments.

Invariant: the text of the outline is linear in the number of nodes of the term's graph, and no expression in it
is nested deeper than `DEEPEST` unless a map that is not a tensor binds something around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from combdiff.ir import (
    Affine,
    Apply,
    Delta,
    Implicit,
    Indicator,
    Lambda,
    Let,
    Names,
    Number,
    Primitive,
    Relation,
    Scan,
    Space,
    Sum,
    Term,
    Tuple,
    Unequal,
    Var,
    apply,
    fresh,
    is_call,
    is_domain,
    is_field,
    is_matrix_function,
    lambda_,
    put_back,
    substitute,
    subterms,
    type_of,
    uses,
    whole_calls,
)
from combdiff.printing.recurrences import AtStep, with_recurrences
from combdiff.records import dataclass

# Lengths count operations and accesses; indices, variables and numbers are free.
SHORT = 3  # a map shorter than this is written out however often it is used
LONG = 20  # a map at least this long is a definition although it is used once
REPEATED = 10  # in a large program, a scalar at least this long is written once
LARGE = 200  # programs longer than this, written as trees, are large
DEEPEST = 40  # operations on a path


@dataclass(frozen=True)
class Outline:
    """A program taken apart: groups of parameters, definitions in order, and the result."""

    groups: tuple[tuple[Var, ...], ...]
    definitions: tuple[tuple[Var, Term], ...]
    result: Term


def outline(term: Term) -> Outline:
    """The outline of any term; one that is not a program has no groups of parameters."""
    nodes = list(postorder(term))
    for node in nodes:
        node.free  # noqa: B018  (cached from the leaves up, which keeps the recursion of `free` shallow)
    groups: list[tuple[Var, ...]] = []
    while isinstance(term, Lambda) and not is_tensor(term):
        groups.append(term.parameters)
        term = term.body
    bindings: list[tuple[Var, Term]] = []
    while isinstance(term, Let):
        bindings += term.bindings
        term = term.body
    bindings, term = with_recurrences(*_calls_put_back(bindings, term))
    values = [_closed(value) for _, value in bindings]
    result = whole_calls(_closed(term))
    known = frozenset().union(*(r.free for r in (*values, result)), (v for v, _ in bindings), *groups)
    writer = _OutlineWriter([*values, result], known)
    for (var, _), value in zip(bindings, values, strict=True):
        value = writer.root(value)  # first, since it may add definitions of its own
        writer.definitions.append((var, value))
    result = writer.root(result)
    return Outline(tuple(groups), tuple(writer.definitions), result)


def _calls_put_back(bindings: list[tuple[Var, Term]], result: Term) -> tuple[list[tuple[Var, Term]], Term]:
    """The same program with tensors that named maps give written where they are used.

    That is where each is used once, or where it is a field of a name: `D(r)`. A tensor of a map whose arguments hold a
    Σ or a function has a line of its own, as a layer of a network has.
    """
    calls = {var for var, value in bindings if is_call(value) and not isinstance(value, Implicit | Scan)}
    if not calls:
        return bindings, result
    counts: Counter[Var] = Counter(uses(result))
    for _, value in bindings:
        counts.update(uses(value))
    replacement: dict[Var, Term] = {}
    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = put_back(value, replacement)
        once = counts[var] == 1 and (is_field(value) or _is_plain_call(value))
        if var in calls and (once or _is_short_field(value)):
            replacement[var] = value
        else:
            kept.append((var, value))
    return kept, put_back(result, replacement)


def _is_short_field(value: Term) -> bool:
    return is_field(value) and all(isinstance(child, Var) for child in value.children)


def _is_plain_call(call: Term) -> bool:
    """Whether there is nothing heavy in the arguments of a call."""
    inside = (part for argument in call.children for part in subterms(argument))
    return not any(isinstance(part, Sum | Primitive) for part in inside)


def is_tensor(term: Term) -> bool:
    """Whether a term is an abstraction over indices."""
    return isinstance(term, Lambda) and all(is_domain(p.type) for p in term.parameters)


def postorder(*roots: Term) -> Iterator[Term]:
    """Every distinct subterm once, children first and left to right; without recursion, for deep terms."""
    seen: set[Term] = set()
    stack: list[tuple[Term, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        term, left = stack.pop()
        if left:
            yield term
        elif term not in seen:
            seen.add(term)
            stack.append((term, True))
            stack += [(child, False) for child in reversed(term.children)]


def _closed(term: Term) -> Term:
    """The same program without lets and applied programs inside it: their values stand where they are used.

    Maps that are applied to indices stay, and with them the sharing in the graph.
    """
    while any(_is_redex(node) for node in postorder(term)):
        done: dict[Term, Term] = {}
        for node in postorder(term):
            new = node.with_children(tuple(done[child] for child in node.children))
            done[node] = _contracted(new) if _is_redex(new) else new
        term = done[term]
    return term


def _is_redex(term: Term) -> bool:
    if isinstance(term, Apply):
        return isinstance(term.function, Lambda) and not is_tensor(term.function)
    return isinstance(term, Let)


def _contracted(term: Term) -> Term:
    if isinstance(term, Apply) and isinstance(term.function, Lambda):
        return apply(term.function, term.arguments)
    assert isinstance(term, Let)
    replacement: dict[Var, Term] = {}
    for var, value in term.bindings:
        replacement[var] = substitute(value, replacement)
    return substitute(term.body, replacement)


class _OutlineWriter:
    """Rewrites expressions from the leaves up and turns what is long, deep or repeated into definitions."""

    def __init__(self, roots: Sequence[Term], known: frozenset[Var]) -> None:
        nodes = list(postorder(*roots))
        tops = [top for root in roots for top in _tops(root)]
        self.definitions: list[tuple[Var, Term]] = []
        self._known = set(known)
        self._taken = {var.name for node in nodes for var in (*node.free, *node.bound)} | {v.name for v in known}
        self._uses = Counter(child for node in nodes for child in node.children)
        self._tops = frozenset(tops)
        self._lengths: dict[Term, int] = {}
        self._heights: dict[Term, int] = {}
        for node in nodes:
            self._measure(node)
        self._large = sum(self._lengths[top] for top in tops) > LARGE
        self._done: dict[Term, Term] = {}
        self._references: dict[Term, Term] = {}

    def root(self, term: Term) -> Term:
        """The value of a definition, or the result, with everything below its outermost binder rewritten."""
        if isinstance(term, Tuple):
            return Tuple(tuple(self.root(item) for item in term.items))
        if isinstance(term, Lambda) and is_tensor(term):
            return Lambda(term.parameters, self._rewritten(term.body))
        if isinstance(term, AtStep):
            return replace(term, body=self._rewritten(term.body))
        return self._rewritten(term)

    def _rewritten(self, term: Term) -> Term:
        for node in postorder(term):
            if node not in self._done:
                new = _reduced(node.with_children(tuple(self._done[child] for child in node.children)))
                self._done[node] = self._reference(new) if self._is_definition(node, new) else new
        return self._done[term]

    def _measure(self, term: Term) -> tuple[int, int]:
        """Length and height of a term; what is new in it since the last call is never deep."""
        if isinstance(term, Var | Number | Affine):
            return self._set(term, 0, 0)
        if term not in self._lengths:
            sizes = [self._measure(child) for child in term.children]
            return self._set(term, 1 + sum(n for n, _ in sizes), 1 + max((h for _, h in sizes), default=0))
        return self._lengths[term], self._heights[term]

    def _set(self, term: Term, length: int, height: int) -> tuple[int, int]:
        self._lengths[term], self._heights[term] = length, height
        return length, height

    def _is_definition(self, node: Term, new: Term) -> bool:
        if isinstance(new, _NEVER_DEFINED) or (isinstance(new, Lambda) and not is_tensor(new)):
            return False
        length, height = self._measure(new)
        again = self._uses[node] > 1
        if isinstance(new, Lambda):
            wanted = length >= LONG or (again and length >= SHORT)
        else:
            deep = height >= DEEPEST and node not in self._tops
            wanted = deep or (self._large and again and length >= REPEATED)
        return wanted and all(is_domain(var.type) for var in self._outer(new))

    def _outer(self, term: Term) -> tuple[Var, ...]:
        """The variables bound around a term that it mentions, in order of first occurrence."""
        wanted = term.free - self._known
        return tuple(node for node in postorder(term) if isinstance(node, Var) and node in wanted) if wanted else ()

    def _reference(self, term: Term) -> Term:
        """A mention of the definition of a term, which is made where it is first asked for."""
        if term not in self._references:
            own, body = _elements(term)
            outer = self._outer(term)
            domains = [v.type for v in (*outer, *own)]
            var = fresh(Var("@", Space(*domains)), self._taken)  # type: ignore[arg-type]
            self._taken.add(var.name)
            self._known.add(var)
            self.definitions.append((var, lambda_((*outer, *own), body)))
            access = Apply(var, (*outer, *own)) if outer else var
            self._references[term] = Lambda(own, access) if own and outer else access
        return self._references[term]


def _elements(term: Term) -> tuple[tuple[Var, ...], Term]:
    """A tensor as its element at indices; a number has none."""
    if isinstance(term, Lambda):
        return term.parameters, term.body
    space = type_of(term) if is_matrix_function(term) or isinstance(term, Implicit | Scan) else None
    indices = Names(term).indices(space.axes) if isinstance(space, Space) else ()
    return indices, apply(term, indices) if indices else term


def _reduced(term: Term) -> Term:
    """`x[i]·2` for `(j ↦ x[j]·2)[i]`."""
    return apply(term.function, term.arguments) if isinstance(term, Apply) else term


_NEVER_DEFINED = (Var, Number, Affine, Tuple, Indicator, Unequal, Delta, Relation)


def _tops(root: Term) -> Iterator[Term]:
    """The expressions that stand at the outermost level of a definition or result."""
    if isinstance(root, Tuple):
        for item in root.items:
            yield from _tops(item)
    elif isinstance(root, AtStep):
        yield root.body
    else:
        yield root.body if isinstance(root, Lambda) and is_tensor(root) else root
