"""Random well-typed programs for Hypothesis, with arrays to evaluate them at.

    Case(x ↦ Σ_i sin(x[i])·x[i], sizes {n: 2}, arrays {x: [0.5, -1.0]})

Invariant: a program is smooth at its arrays (primitives only see arguments inside their domains), every access is in
range (or guarded by indicators when `guarded` is set), every binder has a name of its own, and every named size is an
axis of a parameter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from combdiff.api import Program
from combdiff.ir import (
    ONE,
    Affine,
    Apply,
    Cyclic,
    Domain,
    Function,
    Implicit,
    Lambda,
    Let,
    Number,
    Primitive,
    Pullback,
    Range,
    Scan,
    Space,
    Symmetric,
    Term,
    Tuple,
    Var,
    add,
    affine,
    conj,
    delta,
    divide,
    dtype_of,
    extent,
    first_index,
    function,
    indicator,
    lambda_,
    mul,
    power,
    size_form,
    square,
    substitute,
    total,
    type_of,
    unequal,
)
from combdiff.testing.arrays import array_shape, random_arrays
from combdiff.testing.routes import Case

T = TypeVar("T")

DOMAINS: tuple[Domain, ...] = (
    Range("n"),
    Range("m"),
    Range(2),
    Range(4),
    Cyclic("c"),
    Cyclic(3),
    Symmetric("b"),
    Symmetric(1),
)
HALF = Number(Fraction(1, 2))
NUMBERS = (Number(2), Number(-1), Number(3), Number(Fraction(1, 2)), Number(Fraction(-2, 3)), Number(0.3))
COMPLEX_NUMBERS = (Number(0, 1), Number(1, -2), Number(Fraction(1, 2), Fraction(1, 3)))
SMOOTH = (
    *("sin", "exp", "tanh", "cos", "log", "sqrt", "arctan", "arcsin", "square", "cube"),
    *("reciprocal", "power", "abs", "sign", "real", "imag"),
)
OF_REALS = ("erf", "expit", "gammaln", "logaddexp", "hypot", "maximum", "minimum", "tie")
LETTERS = "ijkpqrstuvw"


KINDS = ("lookups", "empty axes", "matrix functions", "solutions", "recurrences", "maps")
"""What `drawn` can leave out."""
MATRIX_FUNCTIONS = ("inv", "det", "adj", "logdet")
DECOMPOSED = ("expm", "cholesky")  # of matrices whose rows and columns have a first one


@st.composite
def drawn(
    draw: st.DrawFn, *, result: str = "any", guarded: bool = True, depth: int = 3, without: Sequence[str] = ()
) -> Case:
    """Random programs of one to three parameters, and perhaps integer ones.

    `result` is "scalar" (a real number), "tensor" (order 1 or 2, real or complex) or "any". `guarded` allows
    accesses that leave their axis where an indicator in the same product is 0. `depth` bounds the nesting. `without`
    names the KINDS to leave out.
    """
    kinds = frozenset(KINDS) - frozenset(without)
    least = 0 if "empty axes" in kinds and draw(st.integers(0, 4)) == 4 else 1
    sizes = {name: draw(st.integers(least, 3)) for name in ("n", "m")} | {"c": draw(st.integers(1, 3))}
    sizes["b"] = draw(st.integers(0, 1))
    domains = draw(st.lists(st.sampled_from(DOMAINS), min_size=1, max_size=2, unique=True))
    spaces = draw(st.lists(_spaces(domains), min_size=1, max_size=3))
    parameters = tuple(Var(name, space) for name, space in zip("xyz", spaces, strict=False))
    known = {axis for space in spaces for axis in space.axes}
    usable = [domain for domain in domains if domain in known or _limits(domain) or domain == Cyclic(3)]
    writer = _ProgramWriter(draw, usable or [Range(2)], list(parameters), guarded, sizes, kinds)
    pointers = writer.point() if "lookups" in kinds and draw(st.booleans()) else ()
    map_ = writer.name_map() if "maps" in kinds and draw(st.integers(0, 2)) == 2 else None
    body = writer.program(result, depth)
    term = Lambda((*parameters, *pointers), body)
    if map_ is not None:
        inner = Program(Lambda((map_[1],), writer.inside_map(map_[1])), "inner")
        term = Program(Lambda((map_[0], *term.parameters), body), "case").partial(R=inner).term
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    arrays = random_arrays(parameters, rng, sizes)
    for var in pointers:
        assert isinstance(var.type, Space)
        start, count = first_index(writer.pointers[var], sizes), extent(writer.pointers[var], sizes)
        arrays[var.name] = rng.integers(start, start + max(count, 1), array_shape(var.type, sizes))
    return Case(term, sizes, arrays)


@st.composite
def _spaces(draw: st.DrawFn, domains: list[Domain]) -> Space:
    """A Space of order 0 to 3 over the domains, sometimes with a symmetry that its axes allow."""
    order = draw(st.sampled_from([1, 2, 0, 3, 2]))
    dtype = draw(st.sampled_from([float, complex]))
    if order > 1 and draw(st.booleans()):
        return Space(*[draw(st.sampled_from(domains))] * order, dtype=dtype, symmetry=draw(_exchanges(order)))
    axes = [draw(st.sampled_from(domains)) for _ in range(order)]
    mirrored = order == 1 and not isinstance(axes[0], Range) and draw(st.booleans())
    return Space(*axes, dtype=dtype, symmetry=["w[b] = w[-b]"] if mirrored else ())


def _exchanges(order: int) -> st.SearchStrategy[list[str]]:
    """Symmetries of a tensor of order 2 or 3 with equal axes."""
    if order == 2:
        right = ["T[j,i]", "-T[j,i]", "conj(T[j,i])"]
        return st.sampled_from([[f"T[i,j] = {side}"] for side in right])
    full = ["T[i,j,k] = T[j,i,k]", "T[i,j,k] = T[k,j,i]"]
    return st.sampled_from([full[:1], full, ["T[i,j,k] = -T[i,k,j]"]])


class _ProgramWriter:
    """Writes one program, drawing every choice. `tensors` are what an access may read: parameters and let names."""

    def __init__(
        self,
        draw: st.DrawFn,
        domains: list[Domain],
        tensors: list[Var],
        guarded: bool,
        sizes: Mapping[str, int],
        kinds: frozenset[str],
    ) -> None:
        self.draw, self.domains, self.tensors, self.guarded = draw, domains, tensors, guarded
        self.sizes, self.kinds = sizes, kinds
        self.pointers: dict[Var, Domain] = {}  # integer parameters, and the axis of which they hold indices
        self.map: tuple[Var, Var] | None = None  # a named map of real numbers, and what it is of
        self.shared: list[Lambda] = []  # tensors used un-reduced, as tracing leaves them
        self.names = (f"{letter}{round_ or ''}" for round_ in itertools.count() for letter in LETTERS)
        self.written: list[Term] = []  # what a later place may repeat

    def pick(self, options: Iterable[T]) -> T:
        return self.draw(st.sampled_from(list(options)))

    def chance(self) -> bool:
        return self.draw(st.booleans())

    def indices(self, least: int, most: int) -> tuple[Var, ...]:
        return tuple(Var(next(self.names), self.pick(self.domains)) for _ in range(self.draw(st.integers(least, most))))

    # --- integers, and a map

    def point(self) -> tuple[Var, ...]:
        """Integer parameters whose elements are indices."""
        full = [domain for domain in self.domains if extent(domain, dict(self.sizes))]
        for name in ("idx", "jdx")[: self.draw(st.integers(1, 2))]:
            axes = [self.pick(self.domains) for _ in range(self.draw(st.integers(0, 2 if len(full) > 1 else 1)))]
            if full:
                self.pointers[Var(name, Space(*axes, dtype=int))] = self.pick(full)
        return tuple(self.pointers)

    def name_map(self) -> tuple[Var, Var]:
        """A map of a vector or number to a number."""
        space = Space(self.pick(self.domains)) if self.chance() else Space()
        self.map = Var("R", Function(space)), Var("v", space)
        return self.map

    def inside_map(self, argument: Var) -> Term:
        """What the map is."""
        known = [domain for domain in self.domains if domain in _space(argument).axes or _limits(domain)]
        writer = _ProgramWriter(self.draw, known or [Range(2)], [argument], self.guarded, self.sizes, frozenset())
        writer.names = self.names
        body = writer.scalar((), 1)
        if dtype_of(body) is int:
            return mul(Number(0.3), body)  # a map of real numbers has real ones
        return Primitive("real", (body,)) if dtype_of(body) is complex else body

    def call(self, scope: tuple[Var, ...], depth: int) -> Term:
        """The map at some tensor, or at a number, or an element of its gradient."""
        assert self.map is not None
        name, argument = self.map
        (axis,) = _space(argument).axes or (None,)
        if axis is None:
            return Apply(name, (self.small_real(scope, depth),))
        (own,) = self.indices_of([axis])
        around = scope if self.chance() else ()
        at = Lambda((own,), self.small_real((*around, own), depth))
        place = self.place(axis, scope)
        if place is None or around or self.chance():
            return Apply(name, (at,))
        return Apply(Pullback(name, 0, (at,), ONE), (place,))

    def place(self, axis: Domain, scope: tuple[Var, ...]) -> Term | None:
        """An index that is inside an axis; None where that is empty."""
        return self.index(axis, scope, None) if self.may_read([axis], scope) else None

    def may_read(self, axes: Iterable[Domain], scope: tuple[Var, ...]) -> bool:
        """Whether a tensor has elements, or is read where an index of each empty axis is bound."""
        known = {var.type for var in scope}
        return all(axis in known or extent(axis, dict(self.sizes)) for axis in axes)

    def indices_of(self, axes: Iterable[Domain]) -> tuple[Var, ...]:
        return tuple(Var(next(self.names), axis) for axis in axes)

    def looked_up(self, axis: Domain, scope: tuple[Var, ...]) -> Term | None:
        """An integer that a parameter holds for an axis, at a place that may be looked up itself."""
        fit = [v for v, to in self.pointers.items() if to == axis and self.may_read(_space(v).axes, scope)]
        return self.element(self.pick(fit), scope, None) if fit else None

    def element(self, tensor: Term, scope: tuple[Var, ...], guards: list[Term] | None) -> Term:
        """An element of a tensor, at indices some of which integers hold."""
        found: list[tuple[Var, Term]] = []
        arguments: list[Term] = []
        for axis in _space(tensor).axes:
            value = self.looked_up(axis, scope) if self.pointers and self.draw(st.integers(0, 2)) == 2 else None
            if value is None:
                arguments.append(self.index(axis, scope, guards))
            else:
                (own,) = self.indices_of([axis])
                found.append((own, value))
                arguments.append(own)
        read = Apply(tensor, tuple(arguments)) if arguments else tensor
        return total((own for own, _ in found), mul(*(delta(own, value) for own, value in found), read))

    # --- functions of matrices, and solutions of equations

    def matrix(self, scope: tuple[Var, ...], depth: int) -> Term:
        """A function of a matrix that is far from a singular one."""
        axis = self.pick(self.domains)
        i, j = self.indices_of([axis, axis])
        name = self.pick((*MATRIX_FUNCTIONS, *DECOMPOSED) if isinstance(axis, Range) else MATRIX_FUNCTIONS)
        small = self.small_real((i, j), depth) if name == "cholesky" else bounded(self.scalar((i, j), depth - 1))
        if name == "cholesky":
            k, m = self.indices_of([axis, axis])
            turned = Apply(Lambda((k, m), substitute(small, {i: k, j: m})), (j, i))
            small = mul(HALF, add(small, turned))
        found = Primitive(name, (Lambda((i, j), add(mul(Number(3), delta(i, j)), small)),))
        if not _space(found).order:
            return found
        places = [self.place(each, scope) for each in (axis, axis)]
        return Apply(found, tuple(p for p in places if p is not None)) if None not in places else ONE

    def solution(self, number: int, depth: int) -> tuple[Var, Term]:
        """What solves an equation of a number or a vector: sin and cos of it are small beside it."""
        kind = self.pick(["root", "argmin", "solve"])
        space = Space(self.pick(self.domains)) if self.chance() else Space()
        unknown = Var(f"u{number}", space)
        i, j = self.indices_of([*space.axes, *space.axes]) if space.order else (None, None)
        own = () if i is None else (i,)
        u: Term = Apply(unknown, own) if own else unknown
        factor = self.small_real(() if j is None or i is None else (i, j), depth)
        mixed = mul(factor, u) if j is None else total((j,), mul(factor, Apply(unknown, (j,))))
        right = self.small_real(own, depth)
        if kind == "argmin":
            value = add(mul(Number(2), square(u)), function("cos", mixed), mul(Number(-1), right, u))
            equation = total(own, value)
        else:
            bent = mixed if kind == "solve" else add(function("sin", mixed), mul(Number(-1), right))
            equation = lambda_(own, add(mul(Number(3), u), bent))
        (start,) = self.indices_of(space.axes) or (None,)
        given = right if start is None or i is None else substitute(right, {i: start})
        found = Implicit(kind, Lambda((unknown,), equation), lambda_(() if start is None else (start,), given))
        return Var(f"t{number}", space), found

    def recurrence(self, number: int, depth: int) -> tuple[Var, Term]:
        """What steps give that are done over and over: the last state, all states, or what each step gives beside."""
        domain = self.pick(domain for domain in (*self.domains, Range(2)) if isinstance(domain, Range))
        space = Space(self.pick(self.domains), dtype=self.pick([float, complex])) if self.chance() else Space()
        step, state = Var(next(self.names), domain), Var(f"s{number}", space)
        own = self.indices_of(space.axes)
        start = lambda_(own, self.small_real(own, depth))
        before = len(self.tensors), list(self.written)
        self.tensors.append(state)
        read: Term = Apply(state, own) if own else state
        around = (step, *own)
        following = add(mul(HALF, read), self.small_real(around, depth))
        if space.dtype is complex:
            following = add(following, mul(Number(0, HALF.real), self.small_real(around, depth)))
        beside = mul(read, self.small_real(around, depth))
        del self.tensors[before[0] :]
        self.written = before[1]  # what is written in a step is read there alone
        given = Tuple((lambda_(own, following), lambda_(own, beside)))
        kind, component = self.pick([("last", 0), ("before", 0), ("after", 0), ("after", 1)])
        found = Scan(Lambda((step, state), given), (start,), kind, component, reverse=self.chance())
        axes = space.axes if kind == "last" else (domain, *space.axes)
        return Var(f"t{number}", Space(*axes, dtype=space.dtype)), found

    # --- the program

    def program(self, result: str, depth: int) -> Term:
        bindings = [self.binding(n, depth - 1) for n in range(self.draw(st.integers(0, 2)))]
        if self.chance():
            self.shared.append(self.tensor(depth - 1))
        if result == "tensor" or (result == "any" and self.chance()):
            body: Term = self.tensor(depth)
        else:
            body = self.contraction((), depth) if self.draw(st.integers(0, 3)) else self.scalar((), depth)
            body = Primitive("real", (body,)) if dtype_of(body) is complex else body
        return Let(tuple(bindings), body) if bindings else body

    def binding(self, number: int, depth: int) -> tuple[Var, Term]:
        if "solutions" in self.kinds and self.draw(st.integers(0, 3)) == 3:
            solved = self.solution(number, depth)
            self.tensors.append(solved[0])
            return solved
        if "recurrences" in self.kinds and self.draw(st.integers(0, 3)) == 3:
            repeated = self.recurrence(number, depth)
            self.tensors.append(repeated[0])
            return repeated
        value: Term = self.tensor(depth) if self.chance() else self.scalar((), depth)
        var = Var(f"t{number}", _space(value))
        self.tensors.append(var)
        return var, value

    def tensor(self, depth: int) -> Lambda:
        indices = self.indices(1, 2)
        return Lambda(indices, self.scalar(indices, depth))

    # --- scalars

    def scalar(self, scope: tuple[Var, ...], depth: int) -> Term:
        """A number that may depend on the indices in scope."""
        reusable = [term for term in self.written if {v for v in term.free if _is_index(v)} <= set(scope)]
        if depth <= 0 or (reusable and self.draw(st.integers(0, 4)) == 4):
            return self.pick(reusable) if reusable and self.chance() else self.leaf(scope)
        kinds = [self.product, self.contraction, self.sum_of, self.smooth, self.conjugate, self.product]
        kinds += [self.condition, self.of_reals, self.comparison]
        kinds += [self.matrix] * ("matrix functions" in self.kinds) + [self.call] * (self.map is not None)
        term = self.pick(kinds)(scope, depth)
        self.written.append(term)
        return term

    def leaf(self, scope: tuple[Var, ...]) -> Term:
        if self.draw(st.integers(0, 9)) == 9:
            return self.pick(NUMBERS + COMPLEX_NUMBERS)
        tensors = self.shared if self.shared and self.draw(st.integers(0, 3)) == 3 else self.tensors
        readable: list[Term] = [tensor for tensor in tensors if self.may_read(_space(tensor).axes, scope)]
        if not readable:
            return self.pick(NUMBERS)
        guards: list[Term] = []
        element = self.element(self.pick(readable), scope, guards)
        return mul(*guards, element)

    def product(self, scope: tuple[Var, ...], depth: int) -> Term:
        return mul(*(self.scalar(scope, depth - 1) for _ in range(self.draw(st.integers(2, 3)))))

    def sum_of(self, scope: tuple[Var, ...], depth: int) -> Term:
        return add(*(self.scalar(scope, depth - 1) for _ in range(self.draw(st.integers(2, 3)))))

    def contraction(self, scope: tuple[Var, ...], depth: int) -> Term:
        indices = self.indices(1, 3 - min(len(scope), 2))
        return total(indices, self.scalar((*scope, *indices), depth - 1))

    def conjugate(self, scope: tuple[Var, ...], depth: int) -> Term:
        return conj(self.scalar(scope, depth - 1))

    def smooth(self, scope: tuple[Var, ...], depth: int) -> Term:
        """A primitive of an argument that is kept where the primitive is smooth."""
        inner = self.scalar(scope, depth - 1)
        small = bounded(inner)  # |small| < 0.36
        name = self.pick(SMOOTH)
        if name in ("square", "cube"):
            return power(inner, Number(2 if name == "square" else 3))
        if name in ("real", "imag"):
            return function(name, inner)
        if name in ("log", "sqrt", "abs", "sign"):
            return function(name, add(small, ONE))
        if name == "reciprocal":
            return divide(ONE, add(small, ONE))
        if name == "power":
            return power(add(small, ONE), Number(Fraction(3, 2)))
        return function(name, small)

    def of_reals(self, scope: tuple[Var, ...], depth: int) -> Term:
        """A function of real numbers; the arguments of maximum and minimum are apart, or one and the same."""
        small, other = self.small_real(scope, depth), self.small_real(scope, depth)
        name = self.pick(OF_REALS)
        if name in ("maximum", "minimum"):
            return function(name, *self.draw(st.permutations([small, add(other, ONE)])))
        if name == "tie":
            return function(self.pick(["maximum", "minimum"]), small, small)
        if name in ("logaddexp", "hypot"):
            return function(name, add(small, ONE), other)
        return function(name, add(small, ONE))

    def comparison(self, scope: tuple[Var, ...], depth: int) -> Term:
        """One value where a comparison of values holds, and another elsewhere."""
        small = self.small_real(scope, depth)
        sign = self.pick(["less", "less_equal"])
        bound = Number(self.pick([0.37, 0.11, -0.0703]))  # larger than all, or hardly met to the digit
        one, other = self.scalar(scope, depth - 1), self.scalar(scope, depth - 1)
        return add(mul(function(sign, small, bound), one), mul(function(f"not_{sign}", small, bound), other))

    def small_real(self, scope: tuple[Var, ...], depth: int) -> Term:
        """A real number below 0.36 in size."""
        small = bounded(self.scalar(scope, depth - 1))
        return function("real", small) if dtype_of(small) is complex else small

    def condition(self, scope: tuple[Var, ...], depth: int) -> Term:
        """δ or ≠ of two indices, another condition on indices, or a choice by one."""
        body = self.scalar(scope, depth - 1)
        if not scope:
            return body
        index = self.pick(scope)
        partners = [other for other in scope if other.type == index.type]
        kind = self.pick(["delta", "apart", "order", "choice", "parity"])
        if kind in ("delta", "apart"):
            other: Term = self.pick(partners)
            if kind == "delta" and self.pointers and self.chance():
                assert isinstance(index.type, Range | Cyclic | Symmetric)
                held = self.looked_up(index.type, scope)
                return mul(delta(index, other if held is None else held), body)
            if isinstance(index.type, Cyclic):
                other = affine([(other, self.pick([1, -1, 2]))], self.draw(st.integers(-2, 2)))
            equal = kind == "delta"
            return mul(delta(index, other) if equal else unequal(affine([(index, 1), (other, -1)])), body)
        if kind == "parity":
            return mul(indicator(affine([(self.pick(scope), 1), (index, 1)], 1), 2), body)
        form = affine([(index, 1), (self.pick(scope), -1)], self.draw(st.integers(-1, 1)))
        if kind == "order":
            return mul(indicator(form), body)
        complement = affine([(form, -1)], -1)
        return add(mul(indicator(form), body), mul(indicator(complement), self.scalar(scope, depth - 1)))

    # --- indices

    def index(self, axis: Domain, scope: tuple[Var, ...], guards: list[Term] | None) -> Term:
        """An index for that axis, mostly a bare one."""
        bare = [var for var in scope if var.type == axis]
        if bare and (not extent(axis, dict(self.sizes)) or self.draw(st.integers(0, 2)) < 2):
            return self.pick(bare)
        if isinstance(axis, Cyclic):
            return self.cyclic(axis, scope)
        if isinstance(axis, Symmetric):
            return affine([(self.pick(bare), -1)]) if bare else Affine((), 0)
        assert isinstance(axis, Range)
        inside = [*_inside(axis, scope), *(affine([(size_form(axis.size), 1), (var, -1)], -1) for var in bare)]
        finite = [var for var in scope if not isinstance(var.type, Cyclic)]
        if self.guarded and guards is not None and finite and self.draw(st.integers(0, 2)) == 2:
            form = affine(
                [(self.pick(finite), self.pick([1, 2, -1])), (self.pick(finite), self.pick([1, -1]))],
                self.draw(st.integers(-1, 1)),
            )
            guards += [indicator(form), indicator(affine([(size_form(axis.size), 1), (form, -1)], -1))]
            return form
        return self.pick(inside)

    def cyclic(self, axis: Cyclic, scope: tuple[Var, ...]) -> Term:
        """Any whole combination of indices on the same cycle and of symmetric ones: it wraps."""
        usable = [var for var in scope if var.type == axis or isinstance(var.type, Symmetric)]
        offset = self.draw(st.integers(-4, 4))
        if not usable:
            return Affine((), offset)
        parts = [(self.pick(usable), self.pick([1, -1, 2])) for _ in range(self.draw(st.integers(1, 2)))]
        return affine(parts, offset)


def bounded(term: Term) -> Term:
    """z / (2 + |z|²), at most 1/√8 in size, smooth everywhere."""
    size = square(term) if dtype_of(term) is not complex else Primitive("real", (mul(term, conj(term)),))
    return divide(term, add(Number(2), size))


def _is_index(var: Var) -> bool:
    return isinstance(var.type, Range | Cyclic | Symmetric)


def _space(term: Term) -> Space:
    found = type_of(term)
    assert isinstance(found, Space)
    return found


def _limits(domain: object) -> tuple[int, int] | None:
    """The least and greatest index of a domain of fixed size."""
    match domain:
        case Range(int(size)):
            return 0, size - 1
        case Symmetric(int(bound)):
            return -bound, bound
    return None


def _inside(axis: Range, scope: tuple[Var, ...]) -> list[Term]:
    """Index expressions that stay inside a Range whatever the sizes are: 0, and affine ones where sizes are fixed."""
    if not isinstance(axis.size, int):
        return [Affine((), 0)]
    found: list[Term] = [Affine((), number) for number in range(axis.size)]
    known = [(var, limits) for var in scope if (limits := _limits(var.type))]
    for count in (1, 2):
        for chosen in itertools.combinations(known, count):
            for factors in itertools.product((1, 2, -1), repeat=count):
                ends = [sorted((f * low, f * high)) for f, (_, (low, high)) in zip(factors, chosen, strict=True)]
                offset = -sum(low for low, _ in ends)
                if sum(high for _, high in ends) + offset < axis.size:
                    found.append(affine([(v, f) for f, (v, _) in zip(factors, chosen, strict=True)], offset))
    return found
