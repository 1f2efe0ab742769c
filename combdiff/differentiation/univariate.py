"""The univariate primitives that programs decompose into, each with its pullback and pushforward.

    v ↦ a·v       pullback k ↦ a*·k       (Li & Damle, Table 1)

Anything else a primitive needs is a *capture*, a term stored in it; a capture that mentions the variable of
differentiation is the business of the second half of the B rule (see `pullback`).

Invariant: calling a primitive on a term gives the term it stands for.
"""

from __future__ import annotations

from itertools import product

from combdiff.errors import UnsupportedError
from combdiff.ir import (
    HALF,
    MATRIX_TABLE,
    TABLE,
    Add,
    Apply,
    Conj,
    Function,
    Lambda,
    Mul,
    Names,
    Number,
    Point,
    Primitive,
    Pullback,
    Range,
    Space,
    Sum,
    Term,
    Var,
    add,
    affine,
    apply,
    conj,
    dtype_of,
    fresh,
    function,
    is_complex,
    is_linear,
    lambda_,
    mul,
    size_form,
    size_sum,
    total,
    type_of,
    upper_blocks,
)
from combdiff.records import dataclass

Indices = tuple[Var, ...]


def conjugate(term: Term) -> Term:
    """The conjugate of a scalar term; a real one is its own."""
    return conj(term) if dtype_of(term) is complex else term


def _parts(term: Term) -> tuple[Term, ...]:
    """The terms of a sum: a product is spread over them, so that those of the product rule meet like ones."""
    return term.terms if isinstance(term, Add) else (term,)


def _networks(term: Term | None) -> list[tuple[Indices, Term]]:
    """A derivative of a matrix function as sums of products, each with the indices it sums over; None is 0.

    So one index after another can be summed over, beginning with what arrives: a factor that is a Σ of its own has as
    many indices as the result and the matrix together.
    """
    match term:
        case None:
            return []
        case Add():
            return [network for part in term.terms for network in _networks(part)]
        case Sum():
            return [((*term.indices, *own), body) for own, body in _networks(term.body)]
        case Conj():
            return [(own, conj(body)) for own, body in _networks(term.body)]
        case Mul():
            choices = product(*map(_networks, term.factors))
            return [(tuple(v for own, _ in parts for v in own), mul(*(body for _, body in parts))) for parts in choices]
    return [((), term)]


@dataclass(frozen=True)
class Multiply:
    """`v ↦ factor·v`; pullback `k ↦ factor*·k`."""

    factor: Term

    def __call__(self, value: Term) -> Term:
        return mul(self.factor, value)

    def pullback(self, value: Term, cotangent: Term) -> Term:
        return mul(conjugate(self.factor), cotangent)

    def pushforward(self, value: Term, tangent: Term) -> Term:
        return add(*(mul(self.factor, part) for part in _parts(tangent)))


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
class SumOver:
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
    """`v ↦ h(…, v, …)` with captures in the other places; pullback `k ↦ (∂h/∂v)*·k + (∂h/∂v̄)·k*`.

    A real h has ∂h/∂v̄ = (∂h/∂v)*, so its pushforward `2 Re(∂h/∂v·v̇)` is written as a real number.
    """

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
        holomorphic, antiholomorphic = self._partials(value)
        first = mul(conjugate(holomorphic), cotangent)
        return first if antiholomorphic is None else add(first, mul(antiholomorphic, conjugate(cotangent)))

    def pushforward(self, value: Term, tangent: Term) -> Term:
        holomorphic, antiholomorphic = self._partials(value)
        first = mul(holomorphic, tangent)
        if antiholomorphic is None:
            return first
        if TABLE[self.name].real_valued:
            return function("real", mul(Number(2), first))
        return add(first, mul(antiholomorphic, conjugate(tangent)))


def _hermitian_part(tensor: Term, at: Point) -> Term:
    """½(T + T†) of each matrix of a stack, T as one object: it is computed once."""
    space = type_of(tensor)
    assert isinstance(space, Space)
    *stack, k, m = indices = tuple(map(at.fresh, space.axes))
    return Lambda(indices, mul(HALF, add(Apply(tensor, indices), conjugate(Apply(tensor, (*stack, m, k))))))


@dataclass(frozen=True)
class MatrixFunction:
    """`X ↦ f(X)`, a row of `MATRIX_TABLE`; pullback `k ↦ Σ (∂f/∂X)*·k + (∂f/∂X̄)·k*`, Σ over the indices of the result.

    Source: Laue, Mitterreiter and Giesen, the rules for general unary functions.
    """

    name: str

    def __call__(self, value: Term) -> Term:
        return Primitive(self.name, (value,))

    def _indices(self, value: Term, other: Term) -> tuple[Point, Indices, Indices, Indices]:
        """The point, and new indices: of the stack, of one matrix, and of the result for one matrix."""
        names, space = Names(value, other), type_of(value)
        assert isinstance(space, Space)
        rows, columns = space.axes[-2:]
        stack, matrix = names.indices(space.axes[:-2], "abc"), names.indices((rows, columns))
        out = names.indices(MATRIX_TABLE[self.name].of_result((rows, columns)), "ij")
        point = Point(value, stack, (rows, columns), lambda domain: names.indices((domain,), "p")[0])
        return point, stack, matrix, out

    def _partials(self, at: Point, out: Indices, matrix: Indices) -> tuple[Term, Term | None]:
        """∂f/∂X and ∂f/∂X̄ at indices (the latter None where f is holomorphic or everything is real)."""
        holomorphic, antiholomorphic = MATRIX_TABLE[self.name].partials(not is_complex(at.matrix))
        return holomorphic(at, out, *matrix), None if antiholomorphic is None else antiholomorphic(at, out, *matrix)

    def _block(self, value: Term, change: Term, adjoint: bool) -> Term:
        """The upper right block of f([[A, E], [0, A]]): the derivative of a primary function in the direction E."""
        space = type_of(value)
        assert isinstance(space, Space)
        *axes, rows, _ = space.axes
        assert isinstance(rows, Range)
        names, twice = Names(value, change), Range(size_sum((rows.size, 2)))
        stack, (a, b) = names.indices(axes, "abc"), names.indices((twice, twice), "ij")

        def own(i: Term, j: Term) -> Term:
            return conjugate(apply(value, (*stack, j, i))) if adjoint else apply(value, (*stack, i, j))

        blocks = upper_blocks((*stack, a, b), rows, own, lambda i, j: apply(change, (*stack, i, j)))
        function_ = Primitive(self.name, (blocks,))
        outer = names.indices(axes, "abc")
        k, m = names.indices((rows, rows))
        return Lambda((*outer, k, m), Apply(function_, (*outer, k, affine([(m, 1), (size_form(rows.size), 1)]))))

    def pullback(self, value: Term, cotangent: Term) -> Term:
        if MATRIX_TABLE[self.name].primary:
            return self._block(value, cotangent, adjoint=True)
        at, stack, matrix, out = self._indices(value, cotangent)
        holomorphic, antiholomorphic = self._partials(at, out, matrix)
        k = apply(cotangent, (*stack, *out))
        pulled = add(
            *(total((*own, *out), mul(conjugate(part), k)) for own, part in _networks(holomorphic)),
            *(total((*own, *out), mul(part, conjugate(k))) for own, part in _networks(antiholomorphic)),
        )
        slope = Lambda((*stack, *matrix), pulled)
        return _hermitian_part(slope, at) if MATRIX_TABLE[self.name].hermitian else slope

    def pushforward(self, value: Term, tangent: Term) -> Term:
        if MATRIX_TABLE[self.name].primary:
            return self._block(value, tangent, adjoint=False)
        at, stack, matrix, out = self._indices(value, tangent)
        holomorphic, antiholomorphic = self._partials(at, out, matrix)
        if MATRIX_TABLE[self.name].hermitian:
            tangent = _hermitian_part(tangent, at)
        t = apply(tangent, (*stack, *matrix))
        pushed = add(*(total((*own, *matrix), mul(part, t)) for own, part in _networks(holomorphic)))
        row = MATRIX_TABLE[self.name]
        if row.hermitian and row.real_valued and is_complex(value):
            pushed = function("real", pushed)
        elif antiholomorphic is not None and row.real_valued:
            pushed = function("real", mul(Number(2), pushed))
        elif antiholomorphic is not None:
            networks = _networks(antiholomorphic)
            pushed = add(pushed, *(total((*own, *matrix), mul(part, conjugate(t))) for own, part in networks))
        return lambda_((*stack, *out), pushed)


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


@dataclass(frozen=True)
class Differential:
    """`v ↦ P_position R (…, v, …)`: the pullback of a named map R, in an argument of R or the cotangent (last slot).

    What it differentiates to is not known.
    """

    function: Var
    position: int
    slot: int
    parts: tuple[Term, ...]

    def __call__(self, value: Term) -> Term:
        parts = (*self.parts[: self.slot], value, *self.parts[self.slot + 1 :])
        return Pullback(self.function, self.position, parts[:-1], parts[-1])

    def pullback(self, value: Term, cotangent: Term) -> Term:
        raise UnsupportedError(
            f"the second derivative of {self.function.name}, which is only named, is not known",
            hint="pass a program for it before differentiating twice",
        )

    pushforward = pullback


Univariate = Multiply | Translate | Conjugate | SumOver | Elementwise | MatrixFunction | Call | Adjoint | Differential
