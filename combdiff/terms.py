"""Terms: the one immutable, hash-consed language that every stage reads and writes.

A tensor is a map from indices, so one application node serves tensors `A[i, j]`, fields `f(r)` and named maps
`R(u)`. The program `x ↦ Σ_i x[i]·x[i]` is

    x, i = Var("x", Space("n")), Var("i", Range("n"))
    Lambda((x,), Sum((i,), Mul((Apply(x, (i,)), Apply(x, (i,))))))

Equal terms are one object (construction interns them), so a program is a graph and never a tree that repeats
itself, and `is` decides equality. Build terms with the lower-case helpers (`add`, `mul`, `total`, …): they fold
what is trivially foldable, such as products with 0, and nothing else.

Invariant: a binder never binds a name that occurs free around it (`substitute` renames to keep it so).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from combdiff.domains import Cyclic, Domain, Function, Space, Whole

Type = Domain | Space | Function | Whole
Scalar = int | Fraction | float

_interned: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


class _Interning(type):
    """Makes construction return the one object that stands for an equal term."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        term = super().__call__(*args, **kwargs)
        return _interned.setdefault((cls, *term.identity()), term)


@dataclass(frozen=True, eq=False, repr=False)
class Term(metaclass=_Interning):
    """Base of all terms."""

    def identity(self) -> tuple[object, ...]:
        """What makes two terms of one class the same."""
        return tuple(getattr(self, f.name) for f in fields(self))

    @property
    def children(self) -> tuple[Term, ...]:
        """The direct subterms, binders' variables not counted."""
        return ()

    def with_children(self, children: tuple[Term, ...]) -> Term:
        """The same node over other subterms, given in the order of `children`."""
        return self

    @property
    def bound(self) -> tuple[Var, ...]:
        """The variables this node binds in (some of) its children."""
        return ()

    @cached_property
    def free(self) -> frozenset[Var]:
        """The variables that occur free."""
        inside = frozenset().union(*(child.free for child in self.children))
        return inside - frozenset(self.bound)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def __repr__(self) -> str:
        return _describe(self, 4)


def _describe(value: object, depth: int) -> str:
    """A term down to a depth: the whole of a graph would repeat what it shares."""
    if isinstance(value, tuple):
        return f"({', '.join(_describe(item, depth) for item in value)}{',' if len(value) == 1 else ''})"
    if not isinstance(value, Term) or isinstance(value, Var):
        return repr(value)
    inside = ", ".join(_describe(getattr(value, f.name), depth - 1) for f in fields(value)) if depth else "…"
    return f"{type(value).__name__}({inside})"


@dataclass(frozen=True, eq=False, repr=False)
class Number(Term):
    """A constant: exact (int or Fraction parts) unless the user wrote a float."""

    real: Scalar
    imag: Scalar = 0

    def identity(self) -> tuple[object, ...]:
        return tuple((isinstance(part, float), repr(part)) for part in (self.real, self.imag))

    @property
    def exact(self) -> bool:
        """Whether both parts are integers or fractions."""
        return not isinstance(self.real, float) and not isinstance(self.imag, float)

    def value(self) -> complex | float:
        """The number as Python computes with it."""
        return complex(float(self.real), float(self.imag)) if self.imag else float(self.real)


@dataclass(frozen=True, eq=False, repr=False)
class Var(Term):
    """A variable: a tensor, a scalar, a named map, an index, or (type Whole) a size name."""

    name: str
    type: Type

    @cached_property
    def free(self) -> frozenset[Var]:
        return frozenset({self})

    def __repr__(self) -> str:
        return f"Var({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Affine(Term):
    """An index expression `Σ coefficient·variable + offset` that is not just a variable.

    Variables are indices, or size names of type Whole. Over the real line coefficients may be fractions.
    Sorted by variable name; no coefficient is 0. Build with `affine`.
    """

    coefficients: tuple[tuple[Var, int | Fraction], ...]
    offset: int | Fraction = 0

    @property
    def children(self) -> tuple[Term, ...]:
        return tuple(var for var, _ in self.coefficients)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return affine(zip(children, (c for _, c in self.coefficients), strict=True), self.offset)


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Term):
    """`function(arguments)`: an element of a tensor or field, or a call of a named map."""

    function: Term
    arguments: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.function, *self.arguments)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Apply(children[0], children[1:])


@dataclass(frozen=True, eq=False, repr=False)
class Lambda(Term):
    """`(parameters) ↦ body`: a tensor when the parameters are indices, a program otherwise."""

    parameters: tuple[Var, ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Lambda(self.parameters, children[0])

    @property
    def bound(self) -> tuple[Var, ...]:
        return self.parameters


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Term):
    """Σ of body over the domains of the indices: a finite sum, or an integral over the real line."""

    indices: tuple[Var, ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return total(self.indices, children[0])

    @property
    def bound(self) -> tuple[Var, ...]:
        return self.indices


@dataclass(frozen=True, eq=False, repr=False)
class Delta(Term):
    """δ(left, right): 1 where the two are equal and 0 elsewhere (Kronecker), or Dirac's on the real line.

    `domain` is where the two are compared (on a cycle, modulo its size); None for numbers and tensors.
    """

    left: Term
    right: Term
    domain: Domain | None

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.left, self.right)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return delta(children[0], children[1], self.domain)


@dataclass(frozen=True, eq=False, repr=False)
class Indicator(Term):
    """1 where `form ≥ 0` (modulus 0) or `form ≡ 0 (mod modulus)`, and 0 elsewhere; form is an index expression."""

    form: Term
    modulus: int = 0

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.form,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return indicator(children[0], self.modulus)


@dataclass(frozen=True, eq=False, repr=False)
class Add(Term):
    """A sum of two or more terms."""

    terms: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.terms

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return add(*children)


@dataclass(frozen=True, eq=False, repr=False)
class Mul(Term):
    """A product of two or more factors."""

    factors: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.factors

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return mul(*children)


@dataclass(frozen=True, eq=False, repr=False)
class Conj(Term):
    """The complex conjugate of a scalar."""

    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return conj(children[0])


@dataclass(frozen=True, eq=False, repr=False)
class Primitive(Term):
    """A function of the table in `primitives`, applied: `exp(x)`, `power(x, 2)`, `inv(A)`."""

    name: str
    arguments: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.arguments

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Primitive(self.name, children)


@dataclass(frozen=True, eq=False, repr=False)
class Tuple(Term):
    """Several results."""

    items: tuple[Term, ...]

    @property
    def children(self) -> tuple[Term, ...]:
        return self.items

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Tuple(children)


@dataclass(frozen=True, eq=False, repr=False)
class Let(Term):
    """`let v₁ = t₁, v₂ = t₂, … in body`: each variable is visible in the later values and in the body."""

    bindings: tuple[tuple[Var, Term], ...]
    body: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (*(value for _, value in self.bindings), self.body)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return let(zip(self.bound, children[:-1], strict=True), children[-1])

    @property
    def bound(self) -> tuple[Var, ...]:
        return tuple(var for var, _ in self.bindings)

    @cached_property
    def free(self) -> frozenset[Var]:
        inside = self.body.free
        for var, value in reversed(self.bindings):
            inside = (inside - {var}) | value.free
        return inside


@dataclass(frozen=True, eq=False, repr=False)
class Pullback(Term):
    """The pullback of a named map with respect to one argument: `P_position function (arguments, cotangent)`.

    `∇R(u)` is the pullback of R with cotangent 1; for a linear D it is the adjoint Dᵀ of the cotangent.
    """

    function: Term
    position: int
    arguments: tuple[Term, ...]
    cotangent: Term

    @property
    def children(self) -> tuple[Term, ...]:
        return (self.function, *self.arguments, self.cotangent)

    def with_children(self, children: tuple[Term, ...]) -> Term:
        return Pullback(children[0], self.position, children[1:-1], children[-1])


# --- construction --------------------------------------------------------------------------------------------------

ZERO, ONE, MINUS_ONE = Number(0), Number(1), Number(-1)
MOST_JOINED = 256  # the most parts that joining nested sums or products may give


def exact(value: Scalar) -> Scalar:
    """An int or Fraction where the float is a small dyadic fraction such as 0.5; other floats stay floats."""
    if isinstance(value, float) and (value * 1024).is_integer() and abs(value) < 2**53:
        value = Fraction(value)
    return value if isinstance(value, float) else tidy(value)


def tidy(value: int | Fraction) -> int | Fraction:
    """An int where a fraction is whole."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def number(value: complex | Fraction) -> Number:
    """The constant term of a Python number."""
    if isinstance(value, complex):
        return Number(exact(value.real), exact(value.imag))
    return Number(exact(value))


def affine(coefficients: Iterable[tuple[Term, int | Fraction]], offset: int | Fraction = 0) -> Term:
    """`Σ coefficient·term + offset` for index terms (variables or affine), collected; a bare variable stays one.

    On a Cyclic domain the expression is understood modulo its size; it is not reduced here.
    """
    collected: dict[Var, int | Fraction] = {}
    for term, coefficient in coefficients:
        parts, constant = affine_parts(term)
        offset += coefficient * constant
        for var, inner in parts:
            collected[var] = collected.get(var, 0) + coefficient * inner
    kept = sorted(((v, tidy(c)) for v, c in collected.items() if c), key=lambda pair: pair[0].name)
    if not offset and len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    return Affine(tuple(kept), tidy(offset))


def affine_parts(term: Term) -> tuple[tuple[tuple[Var, int | Fraction], ...], int | Fraction]:
    """The (variable, coefficient) pairs and the offset of an index term."""
    if isinstance(term, Var):
        return ((term, 1),), 0
    assert isinstance(term, Affine), term
    return term.coefficients, term.offset


def apply(function: Term, arguments: Iterable[Term]) -> Term:
    """`function(arguments)`; applying an abstraction substitutes."""
    arguments = tuple(arguments)
    if isinstance(function, Lambda):
        return substitute(function.body, dict(zip(function.parameters, arguments, strict=True)))
    return Apply(function, arguments) if arguments else function


def total(indices: Iterable[Var], body: Term) -> Term:
    """Σ of body over indices; sums of sums are joined, sums of 0 and over no index vanish."""
    indices = tuple(indices)
    if isinstance(body, Sum):
        return total((*indices, *body.indices), body.body)
    return Sum(indices, body) if indices and body is not ZERO else body


def delta(left: Term, right: Term, domain: Domain | None = None) -> Term:
    """δ(left, right) on a domain; 1 when both are the same term. By default the domain is that of the indices."""
    if left is right:
        return ONE
    return Delta(left, right, domain or _common_domain(left, right))


def _common_domain(*forms: Term) -> Domain | None:
    """The domain of the indices in some index forms; a cycle if there is one."""
    indices = [v for form in forms if isinstance(form, Var | Affine) for v, _ in affine_parts(form)[0]]
    domains = [v.type for v in indices if not isinstance(v.type, Space | Function | Whole)]
    return next((d for d in domains if isinstance(d, Cyclic)), domains[0] if domains else None)


def indicator(form: Term, modulus: int = 0) -> Term:
    """The indicator of form ≥ 0, or of form ≡ 0 (mod modulus), decided here when form is a constant."""
    parts, offset = affine_parts(form)
    if parts:
        return Indicator(form, modulus)
    return ONE if (offset % modulus == 0 if modulus else offset >= 0) else ZERO


def add(*terms: Term) -> Term:
    """The sum of terms: nested sums joined, exact numbers collected."""
    flat = _flatten(terms, Add)
    constant, rest = _fold(flat, ZERO, lambda a, b: Number(a.real + b.real, a.imag + b.imag))
    kept = rest if constant is ZERO else [*rest, constant]
    return Add(tuple(kept)) if len(kept) > 1 else kept[0] if kept else ZERO


def mul(*factors: Term) -> Term:
    """The product of factors: nested products joined, numbers collected in front, 0 absorbs."""
    flat = _flatten(factors, Mul)
    constant, rest = _fold(flat, ONE, _multiply)
    if constant is ZERO:
        return ZERO
    kept = rest if constant is ONE else [constant, *rest]
    return Mul(tuple(kept)) if len(kept) > 1 else kept[0] if kept else ONE


def _flatten(parts: tuple[Term, ...], kind: type[Term]) -> list[Term]:
    """The parts with those of the same kind opened, unless one occurs twice or the result would be long.

    So y·y stays a graph of one shared y, and repeated squaring does not multiply terms.
    """
    nested = [part for part in parts if isinstance(part, kind)]
    flat = [inner for part in parts for inner in (part.children if isinstance(part, kind) else (part,))]
    return list(parts) if len(set(nested)) < len(nested) or (nested and len(flat) > MOST_JOINED) else flat


def _multiply(a: Number, b: Number) -> Number:
    if not a.imag and not b.imag:
        return Number(a.real * b.real) if a.real and b.real else ZERO
    return Number(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _fold(
    terms: Iterable[Term], start: Number, combine: Callable[[Number, Number], Number]
) -> tuple[Number, list[Term]]:
    """The numbers among the terms combined into one, and the others."""
    constant, rest = start, []
    for term in terms:
        if isinstance(term, Number):
            constant = combine(constant, term)
            if constant.exact:
                constant = Number(tidy(constant.real), tidy(constant.imag))  # type: ignore[arg-type]
        else:
            rest.append(term)
    return constant, rest


def negate(term: Term) -> Term:
    """−term."""
    return mul(MINUS_ONE, term)


def conj(body: Term) -> Term:
    """The conjugate; of a number, or of a conjugate, it is taken at once."""
    if isinstance(body, Number):
        return Number(body.real, -body.imag) if body.imag else body
    return body.body if isinstance(body, Conj) else Conj(body)


def let(bindings: Iterable[tuple[Var, Term]], body: Term) -> Term:
    """`let bindings in body`; no bindings, no let; a let in the body is joined."""
    bindings = tuple(bindings)
    if isinstance(body, Let):
        return let((*bindings, *body.bindings), body.body)
    return Let(bindings, body) if bindings else body


def lambda_(parameters: Iterable[Var], body: Term) -> Term:
    """`(parameters) ↦ body`; with no parameters, body itself."""
    parameters = tuple(parameters)
    return Lambda(parameters, body) if parameters else body


# --- traversal -----------------------------------------------------------------------------------------------------


def subterms(term: Term) -> Iterator[Term]:
    """Every distinct subterm once, children before parents."""
    seen: set[Term] = set()

    def visit(node: Term) -> Iterator[Term]:
        if node not in seen:
            seen.add(node)
            for child in node.children:
                yield from visit(child)
            yield node

    return visit(term)


def fresh(var: Var, taken: Iterable[str]) -> Var:
    """A variable like var whose name is not among those taken: i, i.1, i.2, …"""
    taken = taken if isinstance(taken, set) else set(taken)
    base = var.name.split(".")[0]
    name, count = var.name, 0
    while name in taken:
        count += 1
        name = f"{base}.{count}"
    return Var(name, var.type)


class Names:
    """Gives out variables whose names are used nowhere else: i, i.1, i.2, … in order of asking."""

    def __init__(self, *terms: Term) -> None:
        self._taken = {var.name for term in terms for node in subterms(term) for var in (*node.bound, *node.free)}

    def fresh(self, var: Var) -> Var:
        """A variable of var's type with a new name of the same base."""
        new = fresh(var, self._taken)
        self._taken.add(new.name)
        return new

    def indices(self, domains: Iterable[Domain], letters: str = "defgh") -> tuple[Var, ...]:
        """New index variables over the domains, named from the letters in turn."""
        return tuple(self.fresh(Var(letters[n % len(letters)], domain)) for n, domain in enumerate(domains))


def substitute(term: Term, replacement: Mapping[Var, Term]) -> Term:
    """term with free variables replaced, bound names renamed where they would capture."""
    return _Substitution().run(term, dict(replacement))


class _Substitution:
    """Memoised per replacement, so that shared subterms are visited once."""

    def __init__(self) -> None:
        self.done: dict[tuple[Term, frozenset[tuple[Var, Term]]], Term] = {}

    def run(self, term: Term, replacement: dict[Var, Term]) -> Term:
        active = {v: t for v, t in replacement.items() if v in term.free and t is not v}
        if not active:
            return term
        if isinstance(term, Var):
            return active[term]
        key = (term, frozenset(active.items()))
        if key not in self.done:
            self.done[key] = self._node(term, active)
        return self.done[key]

    def _node(self, term: Term, active: dict[Var, Term]) -> Term:
        if isinstance(term, Let):
            return self._let(term, active)
        if term.bound:
            term, active = self._avoid_capture(term, active)
        return term.with_children(tuple(self.run(child, active) for child in term.children))

    def _avoid_capture(self, term: Term, active: dict[Var, Term]) -> tuple[Term, dict[Var, Term]]:
        incoming = frozenset().union(*(t.free for t in active.values()))
        clashes = [v for v in term.bound if v in incoming]
        if not clashes:
            return term, active
        taken = {v.name for v in incoming | term.free | frozenset(term.bound)}
        taken |= {v.name for child in term.children for v in child.free}
        renaming: dict[Var, Term] = {}
        for var in clashes:
            renaming[var] = new = fresh(var, taken)
            taken.add(new.name)
        bound = tuple(renaming.get(v, v) for v in term.bound)
        body = self.run(term.children[0], renaming)
        assert isinstance(term, Lambda | Sum)
        return type(term)(bound, body), active  # type: ignore[arg-type]

    def _let(self, term: Let, active: dict[Var, Term]) -> Term:
        """Bindings are sequential: rename a bound variable that clashes as its scope begins."""
        incoming = frozenset().union(*(t.free for t in active.values()))
        taken = {v.name for v in incoming | frozenset(term.bound)} | {v.name for t in term.children for v in t.free}
        scope, bindings = dict(active), []
        for var, value in term.bindings:
            value = self.run(value, scope)
            scope.pop(var, None)
            new = fresh(var, taken) if var in incoming else var
            if new is not var:
                scope[var] = new
                taken.add(new.name)
            bindings.append((new, value))
        return let(bindings, self.run(term.body, scope))


def size_form(size: int | str) -> Term:
    """A size as an index expression: a constant, or the size name as a variable."""
    return Affine((), size) if isinstance(size, int) else Var(size, Whole())
