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

from combdiff.differentiation.univariate import (
    Adjoint,
    Call,
    Conjugate,
    Differential,
    Elementwise,
    MatrixFunction,
    Multiply,
    SumOver,
    Translate,
    Univariate,
)
from combdiff.errors import UnsupportedError
from combdiff.ir import (
    MATRIX_TABLE,
    Add,
    Apply,
    Conj,
    Delta,
    Function,
    Implicit,
    Lambda,
    Mul,
    Primitive,
    Pullback,
    Relation,
    Scan,
    Sum,
    Term,
    Tuple,
    Var,
    add,
    apply,
    fresh,
    inline_all,
    is_linear,
    is_matrix_function,
    is_primary,
    mul,
    type_of,
)
from combdiff.records import dataclass

# --- combinator forms of the map x ↦ term --------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """𝐈, or the projection on one of several points."""

    var: Var


@dataclass(frozen=True)
class ConstantMap:
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


@dataclass(frozen=True)
class Solve:
    """𝐁 root (𝐂 (unknown ↦ (x ↦ equation))): the solution of an equation that mentions x, or of which `given` does."""

    term: Implicit


@dataclass(frozen=True)
class Iterate:
    """𝐁 applied once for each step: a result of a scan whose step mentions x, or one of whose starts does."""

    term: Scan


Combinator = Identity | ConstantMap | Exchange | Compose | Evaluate | Fork | Solve | Iterate


def decompose(term: Term, points: frozenset[Var]) -> Combinator:
    """One step of abstraction elimination of the map `points ↦ term`."""
    if not term.free & points:
        return ConstantMap(term)
    match term:
        case Var():
            return Identity(term)
        case Lambda(body=Apply(function=function, arguments=read)) if read == term.parameters and is_primary(term.body):
            return decompose(function, points)  # i, j ↦ f(X)[i, j] is f(X), whose derivative takes a whole cotangent
        case Lambda():
            return Exchange(term.parameters, term.body)
        case Sum():
            return Compose(SumOver(term.indices), Lambda(term.indices, term.body))
        case Conj():
            return Compose(Conjugate(), term.body)
        case Mul():
            return _split(term.factors, points, lambda rest: Multiply(mul(*rest)), mul)
        case Add():
            return _split(term.terms, points, lambda rest: Translate(add(*rest)), add)
        case Primitive() if is_matrix_function(term) and MATRIX_TABLE[term.name].whole:
            return ConstantMap(term)  # whole numbers jump
        case Primitive() if is_matrix_function(term):
            return Compose(MatrixFunction(term.name), term.arguments[0])
        case Relation():
            return ConstantMap(term)  # constant between the places where it jumps
        case Delta() if term.lookup is not None:
            return ConstantMap(term)  # of a whole number computed from x, which jumps
        case Primitive():
            return _slot(Elementwise, term.name, term.arguments, points)
        case Apply():
            return _application(term, points)
        case Tuple():
            return Fork(term.items)
        case Pullback():
            return _adjoint(term, points)
        case Implicit():
            return Solve(term)
        case Scan():
            return Iterate(term)
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
    parts: tuple[Term, ...],
    points: frozenset[Var],
    outer: Callable[[list[Term]], Multiply | Translate],
    join: Callable[..., Term],
) -> Compose:
    """An n-ary operation as a univariate one: half of the parts that depend on x are its argument, the rest captured.

    Halving keeps the nesting of captures logarithmic in the number of parts.
    """
    dependent = [n for n, part in enumerate(parts) if part.free & points]
    inside = set(dependent[len(dependent) // 2 :])
    rest = [part for n, part in enumerate(parts) if n not in inside]
    inner = join(*(part for n, part in enumerate(parts) if n in inside))
    return _captured(outer(rest), inner, len(inside) < len(dependent))


def _slot(
    kind: Callable[..., Elementwise | Call | Differential],
    of: object,
    arguments: tuple[Term, ...],
    points: frozenset[Var],
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
    """The pullback of a linear map is linear, and its own pullback is the map again; those of others are unknown."""
    function = term.function
    if is_linear(function):
        assert isinstance(function, Var)
        return Compose(Adjoint(function), term.cotangent)
    if not isinstance(function, Var):
        raise UnsupportedError("the pullback of a map that is computed has no derivative")
    parts = (*term.arguments, term.cotangent)

    def outer(_: object, slot: int, rest: tuple[Term, ...]) -> Differential:
        return Differential(function, term.position, slot, rest)

    return _slot(outer, function, parts, points)


# --- whole programs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A fully eliminated map: a combinator step and the forms of the maps inside it.

    `parts` are, for Compose the inner map and (when captured) the map `x ↦ outer` under 𝐂; for Exchange the map
    under 𝐂; for Evaluate the map that gives the function; for Fork one per item; for Solve the equation and the given;
    for Iterate what a step gives and the starts.
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
        case Solve():
            inside = (inline_all(step.term.equation), step.term.given)
        case Iterate():
            inside = (inline_all(step.term.body), *step.term.starts)
        case _:
            inside = ()
    return Form(step, tuple(eliminate(part, points) for part in inside))


def reduce(form: Form) -> Term:
    """The body of the map a combinator form stands for: 𝐁 f g x → f(g(x)), 𝐂 f x y → f(y)(x), 𝐈 x → x."""
    step, parts = form.step, tuple(reduce(part) for part in form.parts)
    match step:
        case Identity():
            return step.var
        case ConstantMap():
            return step.value
        case Exchange():
            return Lambda(step.parameters, parts[0])
        case Compose():
            return step.outer(parts[0]) if step.captured is None else apply(parts[1], (parts[0],))
        case Evaluate():
            return Apply(parts[0], step.arguments)
        case Fork():
            return Tuple(parts)
        case Solve():
            return step.term.with_children((Lambda((step.term.unknown,), parts[0]), parts[1]))
        case Iterate():
            return step.term.with_children((Lambda(step.term.variables, parts[0]), *parts[1:]))
