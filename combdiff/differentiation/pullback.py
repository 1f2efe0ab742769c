"""The B rule and the C rule: pullbacks and pushforwards of programs in combinator form.

For real maps P f (x, k) = J f(x)ᵀ k; complex maps use the same rules on real and imaginary parts (theory: Li &
Damle, eqs. 23 and 27), so that the gradient of a real objective is ∂f/∂Re + i ∂f/∂Im.

    C rule   P(C g)             = (x, k) ↦ Σ_b P(g b)(x, k(b))
    B rule   P(x ↦ B f g x)     = (x, k) ↦ P(g)(x, P f (g x, k))  +  P(x ↦ f)(x, i ↦ δ(g x, i, k))

In the second half of the B rule the δ over *numbers* meets the Σ over numbers that the C rule makes, and the two
cancel here into a substitution (`_sift`). A δ over *indices* stays in the result, `(j ↦ δ(i, j)·k)`, for the e-graph
to contract. All points are handled in one sweep: a cotangent is sent down the program once and arrives at every
variable it reaches, so each binding of a let program is visited once and growth is linear in the program.

Invariant: no binder in a result has a name that is visible around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from combdiff.differentiation.calls_by_step import with_calls_by_step
from combdiff.differentiation.combinators import (
    Compose,
    ConstantMap,
    Evaluate,
    Exchange,
    Fork,
    Identity,
    Iterate,
    Solve,
    decompose,
)
from combdiff.differentiation.idle_extremes import held
from combdiff.ir import (
    AFTER,
    BEFORE,
    LAST,
    ONE,
    ZERO,
    Implicit,
    Lambda,
    Let,
    Names,
    OpenStep,
    Scan,
    Space,
    Term,
    Tuple,
    Var,
    add,
    apply,
    at_histories,
    at_step,
    average,
    delta,
    families,
    function,
    is_complex,
    join,
    lambda_,
    let,
    mul,
    negate,
    opened,
    share,
    substitute,
    substituting,
    total,
    type_of,
)

Contribution = tuple[Var, Term]
Result = tuple[str, int]  # of a scan: its kind and component


def cotangent_space(type_: Space) -> Space:
    """The space of cotangents: the same axes and element type, real for whole numbers, without the symmetries."""
    return Space(*type_.axes, dtype=join(type_.dtype, float))


class Pulling:
    """One sweep of the rules; `names` keeps the binders of its result apart."""

    def __init__(self, names: Names, points: Iterable[Var]) -> None:
        self.names = names
        self.points = frozenset(points)

    def __call__(self, term: Term, cotangent: Term, place: Term | None = None) -> Iterator[Contribution]:
        """The contributions of `points ↦ term` to the cotangent of each point, given the cotangent of the term.

        `place` is a variable that has the value of the term, if there is one.
        """
        step = decompose(term, self.points)
        match step:
            case ConstantMap():
                return
            case Identity():
                yield step.var, cotangent if _space(step.var).order else self._real_part(step.var, cotangent)
            case Exchange():
                yield from self._c_rule(step, cotangent)
            case Compose():
                yield from self._b_rule(step, cotangent)
            case Evaluate():
                yield from self(step.function, self._mass(step, cotangent))
            case Fork():
                assert isinstance(cotangent, Tuple)
                for item, part in zip(step.items, cotangent.items, strict=True):
                    yield from self(item, part)
            case Solve():
                yield from self._solution(step.term, place or step.term, cotangent)
            case Iterate():
                yield from self.iteration(step.term, {(step.term.kind, step.term.component): cotangent})

    def _real_part(self, var: Var, cotangent: Term) -> Term:
        """The pullback of the inclusion of the reals into the complex numbers is Re."""
        if is_complex(var) or not is_complex(cotangent):
            return cotangent
        return self._pointwise((cotangent,), lambda *parts: function("real", *parts))

    def _c_rule(self, step: Exchange, cotangent: Term) -> Iterator[Contribution]:
        """P(C (i ↦ x ↦ f i x))(x, k) = Σ_i P(f i)(x, k(i)).

        That is P g (x, j ↦ Σ_i δ(j, a(i)) k(i)) for f i x = g(x)(a(i)): a pullback is linear in its cotangent, and one
        of g is less work than one for each i.
        """
        indices = tuple(self.names.fresh(index) for index in step.parameters)
        body = substitute(step.body, dict(zip(step.parameters, indices, strict=True)))
        read = decompose(body, self.points)
        if isinstance(read, Evaluate) and read.function.free.isdisjoint(indices):
            mass = self._mass(read, apply(cotangent, indices))
            yield from self(read.function, self._pointwise((mass,), lambda inner: total(indices, inner)))
            return
        for var, term in self(body, apply(cotangent, indices)):
            yield var, self._pointwise((term,), lambda inner: total(indices, inner))

    def _b_rule(self, step: Compose, cotangent: Term) -> Iterator[Contribution]:
        yield from self(step.inner, step.outer.pullback(step.inner, cotangent))
        if step.captured is not None:
            yield from self._sift(step.captured, step.inner, cotangent)

    def _sift(self, captured: Lambda, location: Term, cotangent: Term) -> Iterator[Contribution]:
        """P(C (v ↦ x ↦ f v))(x, v ↦ δ(location, v, k)) = Σ_v δ(location, v) P(x ↦ f v)(x, k): v becomes location."""
        (parameter,) = captured.parameters
        value = self.names.fresh(parameter)
        body = substitute(captured.body, {parameter: value})
        for var, term in self(body, cotangent):
            yield var, substitute(term, {value: location})

    def _mass(self, step: Evaluate, cotangent: Term) -> Term:
        """`j ↦ δ(j, i, k)`: the cotangent of a map that is evaluated at i."""
        space = type_of(step.function)
        assert isinstance(space, Space)
        indices = self.names.indices(space.axes)
        masses = [delta(j, i, axis) for j, i, axis in zip(indices, step.arguments, space.axes, strict=True)]
        return Lambda(indices, mul(*masses, cotangent))

    def _solution(self, term: Implicit, place: Term, cotangent: Term) -> Iterator[Contribution]:
        """P ρ (θ, k) = P(θ ↦ g(θ, x))(θ, −H⁻¹ k) with H k = P(x ↦ g(θ, x))(x, k), for g(θ, x) − b = 0.

        On maps it is P ρ (g, k) = i ↦ δ(i, ρ(g), −H⁻¹ k); the δ meets the Σ of the C rule, as in `_sift`. The right
        side b of a linear system receives H⁻¹ k.
        """
        unknown, equation = equation_of(term, self.names)
        k = self.names.fresh(Var("k", unknown.type))
        backward, (transposed,) = pull(equation, (unknown,), k, self.names)
        transposed = let((*_bindings(equation)[0], *backward), transposed)
        cotangent = self._real_part(unknown, cotangent)
        adjoint = Implicit("solve", Lambda((k,), substitute(transposed, {unknown: place})), cotangent)
        if term.kind == "solve":
            yield from self(term.given, adjoint)
        points = tuple(point for point in sorted(self.points, key=_name) if point in equation.free)
        backward, pulled = pull(equation, points, self._pointwise((adjoint,), negate), self.names)
        for point, contribution in zip(points, pulled, strict=True):
            contribution = let((*_bindings(equation)[0], *backward), contribution)
            yield point, substitute(contribution, {unknown: place})

    def iteration(self, scan: Scan, cotangents: Mapping[Result, Term]) -> Iterator[Contribution]:
        """The pullback of x[t+1], y[t] = g(t, x[t]) is the scan back, of the cotangents λ of the states:

            λ[T] = x̄[T],    λ[t] = x̄[t] + P(x ↦ g(t, x))(x[t], (λ[t+1], ȳ[t])),    ā = λ[0],
            θ̄ = Σ_t P(θ ↦ g(t, x[t]))(θ, (λ[t+1], ȳ[t]))

        `cotangents` are those of the results of the scan that are used.
        """
        adjoint = self._adjoint(scan, cotangents)
        for n, start in enumerate(scan.starts):
            yield from self(start, adjoint.result(LAST, n))
        step = opened(scan, self.names)
        later = [at_step(adjoint.result(BEFORE, n), step.index, x, self.names) for n, x in enumerate(step.states)]
        points = tuple(point for point in sorted(self.points, key=_name) if point in scan.step.free)
        backward, pulled = pull(step.body, points, self._of_step(step, later, cotangents), self.names)
        for point, contribution in zip(points, pulled, strict=True):
            contribution = at_histories(let((*step.bindings, *backward), contribution), scan, step, self.names)
            contribution = with_calls_by_step(contribution, scan, step.index, self.names)
            yield point, self._pointwise((contribution,), lambda inner: total((step.index,), inner))

    def _adjoint(self, scan: Scan, cotangents: Mapping[Result, Term]) -> Scan:
        """The scan of the cotangents of the states, from the last step to the first."""
        step = opened(scan, self.names)
        later = tuple(self.names.fresh(Var(f"{x.name}_bar", cotangent_space(_space(x)))) for x in step.states)
        backward, pulled = pull(step.body, step.states, self._of_step(step, later, cotangents), self.names)
        outputs, starts = [], []
        for n, (x, before) in enumerate(zip(step.states, pulled, strict=True)):
            more = cotangents.get((BEFORE, n))
            parts = [before, *([at_step(self._real_part(x, more), step.index, x, self.names)] if more else [])]
            outputs.append(self._pointwise(tuple(parts), add))
            last = cotangents.get((LAST, n))
            starts.append(self._real_part(x, last) if last else zero(self.names, _space(x)))
        body = let((*step.bindings, *backward), Tuple(tuple(outputs)))
        back = Lambda((step.index, *later), at_histories(body, scan, step, self.names))
        return Scan(back, tuple(starts), LAST, 0, not scan.reverse)

    def _of_step(self, step: OpenStep, later: Sequence[Term], cotangents: Mapping[Result, Term]) -> Tuple:
        """The cotangents of what a step gives, from those of the next states and those of the results of all steps."""
        found = []
        for n, output in enumerate(step.outputs):
            space = type_of(output)
            assert isinstance(space, Space)
            like = step.states[n] if n < len(later) else Var("y", cotangent_space(space))
            parts = list(later[n : n + 1])
            if more := cotangents.get((AFTER, n)):
                parts.append(at_step(self._real_part(like, more), step.index, like, self.names))
            found.append(collect(self.names, parts, cotangent_space(space)))
        return Tuple(tuple(found))

    def _pointwise(self, terms: tuple[Term, ...], operation: object) -> Term:
        return pointwise(self.names, terms, operation)


def _name(var: Var) -> str:
    return var.name


def equation_of(term: Implicit, names: Names) -> tuple[Var, Term]:
    """The unknown x and the left side g of the equation g = 0 (or g = given) that a solution solves, names all new.

    For a minimum g is the gradient.
    """
    unknown = names.fresh(Var(term.unknown.name, cotangent_space(term.space)))
    body: Term = substitute(term.equation, {term.unknown: unknown})
    if term.kind == "argmin":
        backward, (gradient,) = pull(body, (unknown,), ONE, names)
        body = share(let((*_bindings(body)[0], *backward), gradient))  # in let normal form, to be differentiated again
    bindings, result = _bindings(body)
    renaming: dict[Var, Term] = {}
    renamed: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = substitute(value, renaming)
        renaming[var] = new = names.fresh(var)
        renamed.append((new, value))
    return unknown, let(renamed, substitute(result, renaming))


def pointwise(names: Names, terms: tuple[Term, ...], operation: object) -> Term:
    """An operation on numbers applied to tensors of one shape, element by element."""
    space = type_of(terms[0])
    assert isinstance(space, Space)
    assert callable(operation)
    indices = names.indices(space.axes)
    result: Term = operation(*(apply(term, indices) for term in terms))
    return lambda_(indices, result)


def zero(names: Names, space: Space) -> Term:
    """The tensor of zeros."""
    return lambda_(names.indices(space.axes), ZERO)


def collect(names: Names, contributions: list[Term], space: Space) -> Term:
    """The sum of the contributions to one cotangent; of a real tensor the real part of the sum of the complex ones.

    Of a number it is taken as each arrives; of a tensor a Σ of real parts would be no product of matrices.
    """
    if not contributions:
        return zero(names, space)
    turned = [] if space.dtype is complex else [each for each in contributions if is_complex(each)]
    if not turned:
        return pointwise(names, tuple(contributions), add)
    plain = [each for each in contributions if each not in turned]
    # The pullback of the inclusion of the reals is Re.
    real = pointwise(names, tuple(turned), lambda *parts: function("real", add(*parts)))
    return pointwise(names, (real, *plain), add)


def _bindings(body: Term) -> tuple[tuple[tuple[Var, Term], ...], Term]:
    return (body.bindings, body.body) if isinstance(body, Let) else ((), body)


def reached(body: Term, wrt: Iterable[Var]) -> list[Var]:
    """The wrt variables and those bindings of a let program that depend on them."""
    points = list(wrt)
    for var, value in _bindings(body)[0]:
        if not value.free.isdisjoint(points):
            points.append(var)
    return points


def pull(
    body: Term, wrt: tuple[Var, ...], cotangent: Term, names: Names, place: Term | None = None
) -> tuple[list[tuple[Var, Term]], list[Term]]:
    """The pullback of `wrt ↦ body` for a let program in normal form; `place` is a variable of the body's value, if any.

    Returns the bindings of the cotangents of intermediate values (to follow body's own bindings) and, for each wrt
    variable, its cotangent. Each binding is visited once, with its cotangent summed over all of its uses.
    """
    body, extremes = held(body, names)
    bindings, result = _bindings(body)
    points = reached(body, wrt)
    sweep = Pulling(names, points)
    received: dict[Var, list[Term]] = {var: [] for var in points}
    first_of = {var: family[0] for family in families(bindings) for var in family}
    of_scans: dict[Var, dict[Result, Term]] = {}

    def send(term: Term, cotangent: Term, place: Term | None = None) -> None:
        for var, contribution in sweep(term, cotangent, place):
            received[var].append(contribution)

    send(result, cotangent, place)
    backward: list[tuple[Var, Term]] = []
    for var, value in reversed(bindings):
        bar: Var | None = None
        if received.get(var):
            space = cotangent_space(_space(var))
            bar = names.fresh(Var(f"{var.name}_bar", space))
            backward.append((bar, collect(names, received[var], space)))
        if not isinstance(value, Scan):
            if bar:
                send(value, bar, var)
            continue
        first = first_of[var]
        if bar:
            of_scans.setdefault(first, {})[value.kind, value.component] = bar
        if var is first and first in of_scans:  # all that uses a result of the scan stands later, and is done
            for point, contribution in sweep.iteration(value, of_scans[first]):
                received[point].append(contribution)
    pulled = (collect(names, received[var], cotangent_space(_space(var))) for var in wrt)
    put_back = substituting(extremes)
    return [(bar, put_back(value)) for bar, value in backward], [put_back(term) for term in pulled]


def onto_spaces(
    wrt: tuple[Var, ...], cotangents: Iterable[Term], names: Names, bindings: list[tuple[Var, Term]]
) -> list[Term]:
    """The cotangents of parameters, each in the Space of its parameter; new bindings are added to those given.

    The pullback of the inclusion of a Space with symmetries into all tensors is the projection onto it.
    """
    pairs = zip(wrt, cotangents, strict=True)
    return [average(each, _space(var).group, f"{var.name}_bar", names, bindings) for var, each in pairs]


def _space(var: Var) -> Space:
    assert isinstance(var.type, Space)
    return var.type


class Pushing:
    """The pushforward by the same decomposition: T(C g) = b ↦ T(g b), T(B f g) = T f (g x, T g) + (T(x ↦ f))(g x)."""

    def __init__(self, names: Names, tangents: Mapping[Var, Term]) -> None:
        self.names = names
        self.tangents = tangents
        self.points = frozenset(tangents)

    def __call__(self, term: Term, place: Term | None = None) -> Term | None:
        """The tangent of `points ↦ term`; None where it is zero because term is constant.

        `place` is a variable that has the value of the term, if there is one.
        """
        step = decompose(term, self.points)
        match step:
            case Identity():
                return self.tangents[step.var]
            case Exchange():
                return self._under(step)
            case Compose():
                return self._composition(step)
            case Evaluate():
                inner = self(step.function)
                return None if inner is None else apply(inner, step.arguments)
            case Fork():
                return Tuple(tuple(self.or_zero(item) for item in step.items))
            case Solve():
                return self._solution(step.term, place or step.term)
            case Iterate():
                return self._iteration(step.term)
        return None

    def or_zero(self, term: Term) -> Term:
        """The tangent of a term, a tensor of zeros where it is constant."""
        if isinstance(term, Tuple):
            return Tuple(tuple(map(self.or_zero, term.items)))
        space = type_of(term)
        tangent = self(term)
        if tangent is None:
            assert isinstance(space, Space)
            return zero(self.names, space)
        return tangent

    def _under(self, step: Exchange) -> Term | None:
        indices = tuple(self.names.fresh(index) for index in step.parameters)
        inner = self(substitute(step.body, dict(zip(step.parameters, indices, strict=True))))
        if inner is None:
            return None
        own = type_of(inner)
        assert isinstance(own, Space)
        more = self.names.indices(own.axes)
        return Lambda((*indices, *more), apply(inner, more) if more else inner)

    def _composition(self, step: Compose) -> Term | None:
        inner = self(step.inner)
        first = None if inner is None else step.outer.pushforward(step.inner, inner)
        if step.captured is None:
            return first
        (parameter,) = step.captured.parameters
        value = self.names.fresh(parameter)
        second = self(substitute(step.captured.body, {parameter: value}))
        if second is None:
            return first
        second = substitute(second, {value: step.inner})
        return second if first is None else pointwise(self.names, (first, second), add)

    def _solution(self, term: Implicit, place: Term) -> Term | None:
        """T ρ (θ, θ̇) = J⁻¹ (ḃ − T(θ ↦ g(θ, x))(θ, θ̇)) with J v = T(x ↦ g(θ, x))(x, v), for g(θ, x) − b = 0."""
        unknown, equation = equation_of(term, self.names)
        parts: list[Term] = []
        if equation.free & self.points:
            moved = self._under_let(equation, self.tangents, negate)
            parts.append(substitute(moved, {unknown: place}))
        if term.kind == "solve" and (tangent := self(term.given)) is not None:
            parts.append(tangent)
        if not parts:
            return None
        v = self.names.fresh(Var("v", unknown.type))
        linear = substitute(self._under_let(equation, {unknown: v}), {unknown: place})
        return Implicit("solve", Lambda((v,), linear), pointwise(self.names, tuple(parts), add))

    def _iteration(self, scan: Scan) -> Term:
        """The tangents of the states are states: ẋ[t+1] = T(x ↦ g(t, x))(x[t], ẋ[t]) + T(θ ↦ g(t, x[t]))(θ, θ̇)."""
        step = opened(scan, self.names)
        moved = {x: self.names.fresh(Var(f"{x.name}_dot", cotangent_space(_space(x)))) for x in step.states}
        forward, tangents = push(step.body, {**self.tangents, **moved}, self.names)
        body = at_histories(let((*step.bindings, *forward), tangents), scan, step, self.names)
        starts = tuple(map(self.or_zero, scan.starts))
        return Scan(Lambda((step.index, *moved.values()), body), starts, scan.kind, scan.component, scan.reverse)

    def _under_let(self, body: Term, tangents: Mapping[Var, Term], operation: object = add) -> Term:
        """The tangent of a let program, under its bindings and theirs."""
        forward, tangent = push(body, tangents, self.names)
        return let((*_bindings(body)[0], *forward), pointwise(self.names, (tangent,), operation))


def push(body: Term, tangents: Mapping[Var, Term], names: Names) -> tuple[list[tuple[Var, Term]], Term]:
    """The pushforward of `wrt ↦ body` for a let program in normal form, tangents given per wrt variable.

    Returns the bindings of the tangents of intermediate values (to follow body's own) and the tangent of the result.
    """
    body, extremes = held(body, names)
    bindings, result = _bindings(body)
    known = dict(tangents)
    forward: list[tuple[Var, Term]] = []
    for var, value in bindings:
        tangent = Pushing(names, known)(value, var)
        if tangent is not None:
            dot = names.fresh(Var(f"{var.name}_dot", cotangent_space(_space(var))))
            forward.append((dot, tangent))
            known[var] = dot
    put_back = substituting(extremes)
    return [(dot, put_back(value)) for dot, value in forward], put_back(Pushing(names, known).or_zero(result))


def joined(*parts: Iterable[tuple[Var, Term]], result: Term) -> Term:
    """One let program from groups of bindings in order."""
    return let((binding for part in parts for binding in part), result)
