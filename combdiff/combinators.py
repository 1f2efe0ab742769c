"""Abstraction elimination: a program becomes B, C, the identity and univariate primitives with captures.

    𝐁 = f ↦ g ↦ x ↦ f(g(x))          𝐂 = f ↦ x ↦ y ↦ f(y)(x)

The map `x ↦ Σ_i x[i]·v[i]` becomes, one step at a time,

    𝐁 Σ (𝐂 (i ↦ 𝐁 (v[i]·) (𝐁 x 𝐈 i)))

`decompose` does one step on the map `x ↦ term`, x standing for all the variables in `points` at once: an
abstraction becomes C, everything else a composition B(f)(g), where the univariate f may itself mention x (a
*capture*). `Compose.captured` is then the map `x ↦ f`, as the second half of the B rule needs it; with it, products
of any number of factors need only multiplication by a capture (Li & Damle, §5). `eliminate` runs the steps to the
end and `reduce` goes back.

Invariant: reduce(eliminate(term, points)) equals term up to the order of factors and terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from combdiff.checking import dtype_of, type_of
from combdiff.domains import Function
from combdiff.errors import UnsupportedError
from combdiff.primitives import TABLE
from combdiff.terms import (
    Add,
    Apply,
    Conj,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Pullback,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    apply,
    conj,
    fresh,
    mul,
    total,
)


def conjugate(term: Term) -> Term:
    """The conjugate of a scalar term; a real one is its own."""
    return conj(term) if dtype_of(term) is complex else term


# --- univariate primitives -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Multiply:
    """`v ↦ factor·v`; pullback `k ↦ factor*·k`."""

    factor: Term

    def __call__(self, value: Term) -> Term:
        return mul(self.factor, value)

    def pullback(self, value: Term, cotangent: Term) -> Term:
        return mul(conjugate(self.factor), cotangent)

    def pushforward(self, value: Term, tangent: Term) -> Term:
        return mul(self.factor, tangent)


@dataclass(frozen=True)
class Translate:
    """`v ↦ summand + v`; pullback `k ↦ k`."""

    summand: Term

    def __call__(self, value: Term) -> Term:
        return add(self.summand, value)

    def pullback(self, value: Term, cotangent: Term) -> Term:
        return cotangent

    def pushforward(self, value: Term, tangent: Term) -> Term:
        return tangent


@dataclass(frozen=True)
class Conjugate:
    """`v ↦ v*`; pullback `k ↦ k*`."""

    def __call__(self, value: Term) -> Term:
        return conj(value)

    def pullback(self, value: Term, cotangent: Term) -> Term:
        return conjugate(cotangent)

    def pushforward(self, value: Term, tangent: Term) -> Term:
        return conjugate(tangent)


@dataclass(frozen=True)
class Contract:
    """`f ↦ Σ f` over the domains of the indices; pullback `k ↦ (i ↦ k)`."""

    indices: tuple[Var, ...]

    def __call__(self, value: Term) -> Term:
        return total(self.indices, apply(value, self.indices))

    def pullback(self, value: Term, cotangent: Term) -> Term:
        taken = {var.name for var in cotangent.free}
        return Lambda(tuple(fresh(index, taken) for index in self.indices), cotangent)

    def pushforward(self, value: Term, tangent: Term) -> Term:
        return total(self.indices, apply(tangent, self.indices))


@dataclass(frozen=True)
class Elementwise:
    """`v ↦ h(…, v, …)` with captures in the other places; pullback `k ↦ (∂h/∂v)*·k + (∂h/∂v̄)·k*`."""

    name: str
    position: int
    arguments: tuple[Term, ...]

    def __call__(self, value: Term) -> Term:
        return Primitive(self.name, self._at(value))

    def _at(self, value: Term) -> tuple[Term, ...]:
        return (*self.arguments[: self.position], value, *self.arguments[self.position + 1 :])

    def _partials(self, value: Term) -> tuple[Term, Term | None]:
        """∂h/∂v and ∂h/∂v̄ at the value (the latter None where h is holomorphic or everything is real)."""
        row, arguments = TABLE[self.name], self._at(value)
        real = all(dtype_of(argument) is not complex for argument in arguments)
        if real and row.real_partials:
            return row.real_partials[self.position](*arguments), None
        antiholomorphic = row.conjugate_partials
        return (
            row.partials[self.position](*arguments),
            antiholomorphic[self.position](*arguments) if antiholomorphic else None,
        )

    def pullback(self, value: Term, cotangent: Term) -> Term:
        direct, mirrored = self._partials(value)
        first = mul(conjugate(direct), cotangent)
        return first if mirrored is None else add(first, mul(mirrored, conjugate(cotangent)))

    def pushforward(self, value: Term, tangent: Term) -> Term:
        direct, mirrored = self._partials(value)
        first = mul(direct, tangent)
        return first if mirrored is None else add(first, mul(mirrored, conjugate(tangent)))


@dataclass(frozen=True)
class Call:
    """`v ↦ R(…, v, …)`, a named map with captures in the other places; its pullback keeps the name: ∇R."""

    function: Var
    position: int
    arguments: tuple[Term, ...]

    def __call__(self, value: Term) -> Term:
        return Apply(self.function, self._at(value))

    def _at(self, value: Term) -> tuple[Term, ...]:
        return (*self.arguments[: self.position], value, *self.arguments[self.position + 1 :])

    def pullback(self, value: Term, cotangent: Term) -> Term:
        if is_linear(self.function):
            return Adjoint(self.function)(cotangent)
        return Pullback(self.function, self.position, self._at(value), cotangent)

    def pushforward(self, value: Term, tangent: Term) -> Term:
        """⟨∇R, tangent⟩ for a scalar R; a linear map is its own pushforward."""
        if is_linear(self.function):
            return Apply(self.function, (tangent,))
        type_ = self.function.type
        assert isinstance(type_, Function)
        if type_.result.order or type_.result.dtype is complex or type_.arguments[self.position].dtype is complex:
            raise UnsupportedError(
                f"the pushforward of the named map {self.function.name} is not known",
                hint="only real scalar maps and linear maps have one; pass a program instead",
            )
        gradient = Pullback(self.function, self.position, self._at(value), Number(1))
        indices = Names(gradient, tangent).indices(type_.arguments[self.position].axes)
        return total(indices, mul(apply(gradient, indices), apply(tangent, indices)))


@dataclass(frozen=True)
class Adjoint:
    """`k ↦ Dᵀ(k)` for a linear map D; its pullback is D."""

    function: Var

    def __call__(self, value: Term) -> Term:
        return Pullback(self.function, 0, (), value)

    def pullback(self, value: Term, cotangent: Term) -> Term:
        return Apply(self.function, (cotangent,))

    def pushforward(self, value: Term, tangent: Term) -> Term:
        return self(tangent)


def is_linear(function: Term) -> bool:
    """Whether a term is a named map that is declared linear."""
    return isinstance(function, Var) and isinstance(function.type, Function) and function.type.linear


Univariate = Multiply | Translate | Conjugate | Contract | Elementwise | Call | Adjoint

# --- combinator forms of the map x ↦ term --------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """𝐈, or the projection on one of several points."""

    var: Var


@dataclass(frozen=True)
class Constant:
    """𝐊 value: the map that ignores x."""

    value: Term


@dataclass(frozen=True)
class Exchange:
    """𝐂 (parameters ↦ (x ↦ body)): a map that returns a map."""

    parameters: tuple[Var, ...]
    body: Term


@dataclass(frozen=True)
class Compose:
    """𝐁 outer inner at x, that is outer(inner(x)).

    `captured` is the map `x ↦ outer` as an abstraction `v ↦ outer(v)` over x, None where outer does not mention x.
    """

    outer: Univariate
    inner: Term
    captured: Lambda | None = None


@dataclass(frozen=True)
class Evaluate:
    """𝐁 function 𝐈 at fixed arguments: `x ↦ function(x)(arguments)`, where only the function mentions x."""

    function: Term
    arguments: tuple[Term, ...]


@dataclass(frozen=True)
class Fork:
    """`x ↦ (item₁(x), item₂(x), …)`: a tuple, which is a map from positions."""

    items: tuple[Term, ...]


Combinator = Identity | Constant | Exchange | Compose | Evaluate | Fork


def decompose(term: Term, points: frozenset[Var]) -> Combinator:
    """One step of abstraction elimination of the map `points ↦ term`."""
    if not term.free & points:
        return Constant(term)
    match term:
        case Var():
            return Identity(term)
        case Lambda():
            return Exchange(term.parameters, term.body)
        case Sum():
            return Compose(Contract(term.indices), Lambda(term.indices, term.body))
        case Conj():
            return Compose(Conjugate(), term.body)
        case Mul():
            return _split(term.factors, points, lambda rest: Multiply(mul(*rest)))
        case Add():
            return _split(term.terms, points, lambda rest: Translate(add(*rest)))
        case Primitive():
            return _slot(Elementwise, term.name, term.arguments, points)
        case Apply():
            return _application(term, points)
        case Tuple():
            return Fork(term.items)
        case Pullback():
            return _adjoint(term, points)
    by = ", ".join(sorted(v.name for v in term.free & points))
    raise UnsupportedError(f"a {type(term).__name__} that depends on {by} has no derivative")


def _captured(outer: Univariate, inner: Term, mentions: bool) -> Compose:
    """B outer inner, with `x ↦ outer` when outer mentions x."""
    if not mentions:
        return Compose(outer, inner)
    taken = {v.name for v in outer(inner).free}
    value = fresh(Var("v", type_of(inner)), taken)  # type: ignore[arg-type]
    return Compose(outer, inner, Lambda((value,), outer(value)))


def _split(
    parts: tuple[Term, ...], points: frozenset[Var], outer: Callable[[list[Term]], Multiply | Translate]
) -> Compose:
    """An n-ary operation as a univariate one: the last part that depends on x is its argument, the rest captured."""
    at = max(n for n, part in enumerate(parts) if part.free & points)
    rest = [part for n, part in enumerate(parts) if n != at]
    return _captured(outer(rest), parts[at], any(part.free & points for part in rest))


def _slot(
    kind: Callable[..., Elementwise | Call], of: object, arguments: tuple[Term, ...], points: frozenset[Var]
) -> Compose:
    """A function of several arguments as a univariate one of the last argument that depends on x."""
    at = max(n for n, argument in enumerate(arguments) if argument.free & points)
    mentions = any(argument.free & points for n, argument in enumerate(arguments) if n != at)
    return _captured(kind(of, at, arguments), arguments[at], mentions)


def _application(term: Apply, points: frozenset[Var]) -> Combinator:
    if term.function.free & points:
        if any(argument.free & points for argument in term.arguments):
            raise UnsupportedError("a derivative with respect to a map and the point it is taken at, both at once")
        return Evaluate(term.function, term.arguments)
    if not isinstance(term.function, Var) or not isinstance(term.function.type, Function):
        raise UnsupportedError("an index that depends on the variable of differentiation has no derivative")
    return _slot(Call, term.function, term.arguments, points)


def _adjoint(term: Pullback, points: frozenset[Var]) -> Combinator:
    """The pullback of a linear map is linear, and its own pullback is the map again; others stay unknown."""
    function = term.function
    if is_linear(function):
        assert isinstance(function, Var)
        return Compose(Adjoint(function), term.cotangent)
    name = function.name if isinstance(function, Var) else "a map"
    raise UnsupportedError(
        f"the second derivative of {name}, which is only named, is not known",
        hint="pass a program for it before differentiating twice",
    )


# --- whole programs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A fully eliminated map: a combinator step and the forms of the maps inside it.

    `parts` are, for Compose the inner map and (when captured) the map `x ↦ outer` under 𝐂; for Exchange the map
    under 𝐂; for Evaluate the map that gives the function; for Fork one per item.
    """

    step: Combinator
    parts: tuple[Form, ...] = ()


def eliminate(term: Term, points: frozenset[Var]) -> Form:
    """The complete combinator form of the map `points ↦ term`."""
    step = decompose(term, points)
    match step:
        case Exchange():
            inside: tuple[Term, ...] = (step.body,)
        case Compose():
            inside = (step.inner,) if step.captured is None else (step.inner, step.captured)
        case Evaluate():
            inside = (step.function,)
        case Fork():
            inside = step.items
        case _:
            inside = ()
    return Form(step, tuple(eliminate(part, points) for part in inside))


def reduce(form: Form) -> Term:
    """The body of the map a combinator form stands for: 𝐁 f g x → f(g(x)), 𝐂 f x y → f(y)(x), 𝐈 x → x."""
    step, parts = form.step, tuple(reduce(part) for part in form.parts)
    match step:
        case Identity():
            return step.var
        case Constant():
            return step.value
        case Exchange():
            return Lambda(step.parameters, parts[0])
        case Compose():
            return step.outer(parts[0]) if step.captured is None else apply(parts[1], (parts[0],))
        case Evaluate():
            return Apply(parts[0], step.arguments)
        case Fork():
            return Tuple(parts)
