"""Roots, quotients and logarithms of sums of squares, computed of numbers that are scaled by a power of 2.

    sqrt(Σ_j x[j]²)                              →   s·sqrt(Σ_j (x[j]/s)²)              s = 2^k near max_j |x[j]|
    x[i]·Σ_j x[j]·v[j] / sqrt(Σ_j x[j]²)³        →   s^(1+1−3)·(x[i]/s)·Σ_j (x[j]/s)·v[j] / sqrt(Σ_j (x[j]/s)²)³

A sum of squares overflows long before its root does, and the third power of the root long before the quotient. Where
one stands under a root, a negative power or a logarithm, the tensors that are squared in it are scaled: each is
s·(x/s), and s^k is kept apart, as k, until products and quotients are put together (`ScaledNumber`). The scale of a row
of x is its own where the sum is over the rest of the axes (Σ_j x[i,j]²); terms of unlike scales get the larger one. A
scale is a power of 2, so that no digit changes, and 1 for ordinary numbers, which are not divided (`Magnitude`).

Invariant: the value is unchanged where the program has one without over- or underflow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from functools import reduce
from math import ceil
from typing import TypeGuard

from combdiff.ir import (
    HALF,
    ONE,
    ZERO,
    Add,
    Apply,
    Conj,
    Guard,
    Implicit,
    Lambda,
    Largest,
    Let,
    Magnitude,
    Mul,
    Names,
    Number,
    Primitive,
    Rescaled,
    Scan,
    Space,
    Sum,
    Term,
    Var,
    add,
    canonical_names,
    dtype_of,
    element,
    exact,
    factors_of,
    free_indices,
    function,
    is_nonnegative,
    lambda_,
    let,
    mul,
    parity,
    split,
    substitute,
    subterms,
    total,
)
from combdiff.records import dataclass
from combdiff.stability.bindings import Rewriting
from combdiff.stability.scaled_numbers import Exponent, ScaledNumber, common_part, plus, substituted, times

TINY = Number(2.0**-1022)  # below all scales
LINEAR = ("abs", "real", "imag")  # functions of a number that grow as it does


def with_scaled_sums(program: Lambda) -> Lambda:
    """The program with what roots, quotients and logarithms are of computed of scaled numbers."""
    if not any(map(_asked, subterms(program))):
        return program
    scaling = _Scaling(program)
    if scaling.nameless:
        scaling = _Scaling(_with_names(program, scaling.nameless))
    return scaling.rewritten() if scaling.squared else program


def _asked(node: Term) -> Term | None:
    """What a root, a quotient or a logarithm is of; None for other terms."""
    match node:
        case Primitive(name="sqrt" | "log", arguments=(base,)):
            return base
        case Primitive(name="power", arguments=(base, Number(imag=0) as power)):
            return None if isinstance(power.real, int) and power.real > 0 else base
    return None


_Seen = set[tuple[Term, bool]]


def _is_new(element: Term, summed: frozenset[Var], seen: _Seen) -> bool:
    """Whether a definition has not been read like this before, whatever the summed indices are called; notes it.

    Definitions that read one another have as many paths through them as there are subsets of them.
    """
    inner = tuple(index for index in free_indices(element) if index in summed)
    read = canonical_names(lambda_(inner, element)), bool(summed)
    is_new = read not in seen
    seen.add(read)
    return is_new


Access = tuple[Var, tuple[Term, ...], frozenset[Var]]
"""A tensor that a sum reads, the indices of the element, and all indices that are summed over."""


def _with_names(program: Lambda, forms: Collection[Term]) -> Lambda:
    """The program with the elements of tensors, abstracted over their indices, as elements of bindings."""
    names = Names(program)
    kinds = tuple({type(form.body if isinstance(form, Lambda) else form) for form in forms})
    bound: dict[Term, Var] = {}
    kept: list[tuple[Var, Term]] = []

    def named(term: Term) -> Term:
        if isinstance(term, kinds):
            indices = free_indices(term)
            form = canonical_names(lambda_(indices, term))
            if form in forms:
                if form not in bound:
                    axes = [index.type for index in indices]
                    bound[form] = names.fresh(Var("t", Space(*axes, dtype=dtype_of(term))))  # type: ignore[arg-type]
                    kept.append((bound[form], lambda_(indices, term)))
                return element(bound[form], indices)
        return term if isinstance(term, Implicit | Scan) else term.with_children(tuple(map(named, term.children)))

    bindings, result = split(program.body)
    for var, value in bindings:
        new = named(value)
        kept.append((var, new))
    last = named(result)
    return Lambda(program.parameters, let(kept, last))


@dataclass
class _Squared:
    """How a tensor is squared: to what power, and along which axes an index outside the sum tells the element."""

    tensor: Var
    degree: int = 2
    rows: set[int] = field(default_factory=set)
    mixed: set[int] = field(default_factory=set)

    def read_at(self, accesses: Sequence[Access]) -> None:
        """Note the places at which one sum reads the tensor, with the indices that it is over."""
        for axis, read in enumerate(zip(*(arguments for _, arguments, _ in accesses), strict=True)):
            inner = {index in summed for index, (_, _, summed) in zip(read, accesses, strict=True)}
            if inner == {False} and len(set(read)) == 1:
                self.rows.add(axis)
            elif inner != {True}:
                self.mixed.add(axis)


class _Scaling(Rewriting):
    """Rewrites the bindings of one program; `squared` are the tensors that are scaled."""

    def __init__(self, program: Lambda) -> None:
        super().__init__(program)
        self.squared: dict[Var, _Squared] = {}
        self.nameless: set[Term] = set()  # what is squared and no element, abstracted over its indices
        self._elements: dict[Var, ScaledNumber] = {}
        self._scaled: dict[tuple[Term, bool], ScaledNumber] = {}
        self._values: dict[Term, Term] = {}
        self._involved: dict[Term, bool] = {}
        self._nonnegative: dict[Term, bool] = {}
        self._scales: dict[Var, tuple[tuple[Var, ...], Term]] = {}
        for node in subterms(program):
            if (base := _asked(node)) is not None:
                self._search(base)

    # --- which tensors are squared

    def _search(self, base: Term) -> None:
        """Look for squares of tensors in sums."""
        accesses: dict[Var, list[Access]] = {}
        degrees: dict[Var, int] = {}
        for square, power, summed in self._squares(base, frozenset(), set()):
            found = self._tensors(square, summed)
            for access in found:
                tensor = access[0]
                accesses.setdefault(tensor, []).append(access)
                degrees[tensor] = max(power, degrees.get(tensor, 0))
        for tensor, read in accesses.items():
            one = self.squared.setdefault(tensor, _Squared(tensor))
            one.degree = max(one.degree, degrees[tensor])
            one.read_at(read)

    def _squares(self, term: Term, summed: frozenset[Var], seen: _Seen) -> Iterator[tuple[Term, int, frozenset[Var]]]:
        """The numbers that are squared in a sum, or to a higher power, and what they are summed over."""
        match term:
            case Sum():
                yield from self._squares(term.body, summed | frozenset(term.indices), seen)
            case Add():
                for part in term.terms:
                    yield from self._squares(part, summed, seen)
            case Mul():
                yield from self._products(term, summed, seen)
            case Primitive(name="power", arguments=(base, Number(imag=0) as power)) if summed and power.real >= 2:
                yield base, ceil(power.real), summed
            case Apply() | Var():
                if (found := self.read(term)) and _is_new(term, summed, seen):
                    yield from self._squares(substitute(found[1], found[0]), summed, seen)

    def _products(self, term: Mul, summed: frozenset[Var], seen: _Seen) -> Iterator[tuple[Term, int, frozenset[Var]]]:
        """The same of a product, in which a tensor may stand twice: Σ_i x[i] Σ_j A[i,j] x[j]."""
        sums = [factor for factor in term.factors if isinstance(factor, Sum)]
        within = summed.union(*(factor.indices for factor in sums))
        plain = [_plain(f) for one in (term, *(factor.body for factor in sums)) for f in factors_of(one)]
        heads = [factor.function if isinstance(factor, Apply) else factor for factor in plain]
        for factor, head in zip(plain, heads, strict=True):
            if within and not isinstance(head, Number | Guard) and heads.count(head) > 1:
                yield factor, heads.count(head), within
        for factor in term.factors:
            yield from self._squares(factor, summed, seen)

    def _tensors(self, square: Term, summed: frozenset[Var]) -> list[Access]:
        """The elements whose multiples a number is a sum of, or the element that it is; with what is summed over."""
        element = _plain(square)
        own = [_access(element, summed)] if _is_element(element) else []
        linear = list(self._linear(square, summed, set()))
        found = [one for one in linear if one is not None]
        if len(found) == len(linear):
            outer = {frozenset(arguments) - inner for _, arguments, inner in found}
            if len(outer) == 1:
                return found
            if frozenset().union(*outer) not in outer:  # of pairs of rows: there would be one scale for each
                return []
        if not own and _is_scaled_by_name(element) and free_indices(element):
            self.nameless.add(canonical_names(lambda_(free_indices(element), element)))
        return own

    def _linear(self, term: Term, summed: frozenset[Var], seen: _Seen) -> Iterator[Access | None]:
        """The elements of tensors in a linear form with numbers as factors; None for what is none."""
        match _plain(term):
            case Add(terms=terms):
                for part in terms:
                    yield from self._linear(part, summed, seen)
            case Mul(factors=factors):
                others = [factor for factor in factors if not self._is_number(factor)]
                yield from self._linear(others[0], summed, seen) if len(others) == 1 else (None,)
            case Sum(indices=indices, body=body):
                yield from self._linear(body, summed | frozenset(indices), seen)
            case Apply() | Var() as element if found := self.read(element):
                if _is_new(element, summed, seen):
                    yield from self._linear(substitute(found[1], found[0]), summed, seen)
            case element:
                yield _access(element, summed) if _is_element(element) else None

    def _is_number(self, term: Term) -> bool:
        """Whether a factor depends on no tensor: a number, a condition, a function of sizes."""
        found = self.read(term)
        tensors = (
            isinstance(node, Var) and isinstance(node.type, Space) for node in subterms(found[1] if found else term)
        )
        return isinstance(term, Guard) or not any(tensors)

    # --- scales

    def _scale(self, tensor: Var) -> tuple[tuple[Var, ...], Term]:
        """The scale of a tensor, bound, with the indices of it that tell its rows."""
        if tensor not in self._scales:
            assert isinstance(tensor.type, Space)
            noted = self.squared[tensor]
            indices = self.names.indices(tensor.type.axes, "ijkl")
            rows = noted.rows - noted.mixed
            others = tuple(index for axis, index in enumerate(indices) if axis not in rows)
            scale = Magnitude(others, Apply(tensor, indices), noted.degree)
            self._scales[tensor] = indices, self.named(scale, Var("s", Space()))
        return self._scales[tensor]

    def _largest(self, scales: Sequence[Term], indices: Sequence[Var] = ()) -> Term:
        """The largest of some scales, or of one over all indices that it has, as an element of a binding."""
        over = [Largest(tuple(i for i in indices if i in scale.free), scale) if indices else scale for scale in scales]
        found = reduce(lambda one, other: Primitive("maximum", (one, other)), [TINY, *over] if indices else over)
        return self.named(found, Var("s", Space()))

    # --- terms as numbers

    def value(self, term: Term) -> Term:
        """A number or tensor, with roots and quotients of sums of squares computed of scaled numbers."""
        if term not in self._values:
            self._values[term] = self._of_value(term)
        return self._values[term]

    def _of_value(self, term: Term) -> Term:
        if not self._is_involved(term):
            return term
        if isinstance(term, Lambda):
            return Lambda(term.parameters, self.value(term.body))
        if isinstance(term, Primitive) and term.name == "log" and (found := self._logarithm(term.arguments[0])):
            return found
        return _written(self.scaled(term))

    def _logarithm(self, argument: Term) -> Term | None:
        """log(s^k·r) = log r + k log s; of 1 and what is not negative by logaddexp, which is exact near 0."""
        found = self.scaled(argument, True)
        if not found.exponent:
            return None
        while read := self.read(argument):
            argument = substitute(read[1], read[0])
        one = next((part for part in argument.terms if part is ONE), None) if isinstance(argument, Add) else None
        if one is not None:
            rest = add(*(part for part in argument.children if part is not one))
            logarithm = self._logarithm(rest) if dtype_of(rest) is not complex and self._is_nonnegative(rest) else None
            joined = logarithm and Primitive("logaddexp", (ZERO, logarithm))
            return joined or self._with_values(Primitive("log", (argument,)))
        logarithms = [mul(Number(exact(n)), Primitive("log", (scale,))) for scale, n in found.exponent.items()]
        return add(Primitive("log", (found.rest,)), *logarithms)

    def _is_nonnegative(self, term: Term) -> bool:
        """Whether a term is real and not negative by its form, definitions written out."""
        if found := self.read(term):
            if found[1] not in self._nonnegative:
                self._nonnegative[found[1]] = self._is_nonnegative(found[1])
            return self._nonnegative[found[1]]
        if isinstance(term, Add | Sum):
            return all(map(self._is_nonnegative, term.children))
        return is_nonnegative(term)

    def _is_involved(self, term: Term) -> bool:
        """Whether a term has a root, a quotient or a logarithm of scaled numbers.

        Not in an equation or a step of its own, whose names may be those of other tensors here.
        """
        if isinstance(term, Implicit | Scan | Let):
            return False
        if term not in self._involved:
            base, found = _asked(term), self.read(term)
            own = base is not None and bool(self.scaled(base, True).exponent)
            parts = (found[1],) if found else term.children
            self._involved[term] = own or any(map(self._is_involved, parts))
        return self._involved[term]

    # --- terms as scaled numbers

    def scaled(self, term: Term, joins: bool = False) -> ScaledNumber:
        """A number as s^k·r; `joins` says that terms of unlike scales get the largest of them."""
        key = term, joins
        if key not in self._scaled:
            self._scaled[key] = self._of_scaled(term, joins) or ScaledNumber({}, self._with_values(term))
        return self._scaled[key]

    def _with_values(self, term: Term) -> Term:
        """A term of which no scale is known, of the values of its parts."""
        children = tuple(map(self.value, term.children))
        return term if children == term.children else term.with_children(children)

    def _of_scaled(self, term: Term, joins: bool) -> ScaledNumber | None:
        match term:
            case Apply(function=Var() as tensor) if tensor in self.squared:
                indices, scale = self._scale(tensor)
                read = substitute(scale, dict(zip(indices, term.arguments, strict=True)))
                return ScaledNumber({read: 1}, Rescaled(term, read))
            case Apply() | Var():
                return self._element(term, joins)
            case Primitive(name="sqrt", arguments=(base,)):
                return self.scaled(base, True).to(HALF)
            case Primitive(name="power", arguments=(base, Number(imag=0) as exponent)):
                return self.scaled(base, joins or _asked(term) is not None).to(exponent)
            case Primitive() if term.name in LINEAR:
                inside = self.scaled(term.arguments[0], joins)
                return ScaledNumber(inside.exponent, function(term.name, inside.rest))
            case Conj():
                inside = self.scaled(term.body, joins)
                return ScaledNumber(inside.exponent, Conj(inside.rest))
            case Mul():
                return reduce(ScaledNumber.__mul__, [self.scaled(factor, joins) for factor in term.factors])
            case Add():
                return self._added([self.scaled(part, joins) for part in term.terms], joins)
            case Sum():
                return self._total(term, joins)
        return None

    def _element(self, term: Term, joins: bool) -> ScaledNumber | None:
        """An element of a binding, of which the rest is bound, too."""
        found = self.read(term)
        if found is None:
            return None
        pairs, body = found
        whole = self.scaled(body, joins)
        if not whole.exponent:
            return ScaledNumber({}, term)
        var = term.function if isinstance(term, Apply) else term
        assert isinstance(var, Var)
        guards = [f for f in factors_of(whole.rest) if isinstance(f, Guard)]
        rest = mul(*guards, self.named(mul(*(f for f in factors_of(whole.rest) if not isinstance(f, Guard))), var))
        return ScaledNumber(substituted(whole.exponent, pairs), substitute(rest, pairs))

    def _added(self, parts: Sequence[ScaledNumber], joins: bool) -> ScaledNumber | None:
        """A sum: of terms of one scale, by the largest of the scales to the highest power, or by what they share."""
        if all(part.exponent == parts[0].exponent for part in parts):
            return ScaledNumber(parts[0].exponent, add(*(part.rest for part in parts)))
        if not joins or any(power < 0 for part in parts for power in part.exponent.values()):
            shared = common_part([part.exponent for part in parts])
            left = [ScaledNumber(plus(part.exponent, times(shared, -1)), part.rest) for part in parts]
            return ScaledNumber(shared, add(*map(_written, left))) if shared else None
        degrees = [sum(part.exponent.values()) for part in parts]
        scales = list(dict.fromkeys(scale for part in parts for scale in part.exponent))
        top = self._largest(scales if len(set(degrees)) == 1 else [*scales, ONE])
        whole = {top: max(degrees)}
        rests = [ScaledNumber(plus(part.exponent, times(whole, -1)), part.rest) for part in parts]
        return ScaledNumber(whole, add(*map(_written, rests)))

    def _total(self, term: Sum, joins: bool) -> ScaledNumber:
        """Σ of a scaled number; scales of rows that are summed over give way to the largest of them."""
        body = self.scaled(term.body, joins)
        outer = {scale: power for scale, power in body.exponent.items() if scale.free.isdisjoint(term.indices)}
        inner = {scale: power for scale, power in body.exponent.items() if scale not in outer}
        if len(inner) == 1 and joins and min(inner.values()) > 0:
            ((scale, power),) = inner.items()
            top = self._largest([scale], term.indices)
            outer, inner = {**outer, top: power}, {scale: power, top: -power}
        return ScaledNumber(outer, total(term.indices, _written(ScaledNumber(inner, body.rest))))


def _written(number: ScaledNumber) -> Term:
    """s^k·r, of which s/s' is a factor where one scale is divided by another: each power alone may overflow."""
    above: Exponent = {scale: power for scale, power in number.exponent.items() if power > 0}
    below: Exponent = {scale: -power for scale, power in number.exponent.items() if power < 0}
    factors: list[Term] = []
    while above and below:
        one, other = next(iter(above)), next(iter(below))
        power = min(above[one], below[other])
        quotient = mul(one, function("power", other, Number(-1)))
        factors.append(function("power", quotient, Number(exact(power))))
        above, below = plus(above, {one: -power}), plus(below, {other: -power})
    divisors: list[Term] = []
    for scale, power in plus(above, times(below, -1)).items():
        step = 1 if power > 0 else -1
        more = ceil(power * step) - 1
        divisors += more * [function("power", scale, Number(-step))]  # in turn: s² may overflow where s²·r does not
        factors.append(function("power", scale, Number(exact(power - more * step))))
    parts = number.rest.terms if isinstance(number.rest, Add) else (number.rest,)
    conditions = [tuple(factor for factor in factors_of(part) if isinstance(factor, Guard)) for part in parts]
    # Where a condition fails a divisor may be read beyond an axis: parts are divided beneath their conditions.
    divided = []
    for under in dict.fromkeys(conditions):
        own = [part for part, found in zip(parts, conditions, strict=True) if found == under]
        values = [[*factors, *(each for each in factors_of(part) if each not in under)] for part in own]
        whole = [_with_whole(value, divisors) for value in values]
        if None in whole:
            divided.append(mul(*under, reduce(Rescaled, divisors, add(*(mul(*value) for value in values)))))
        else:
            divided.append(mul(*under, add(*(value for value in whole if value is not None))))
    return add(*divided)


def _with_whole(factors: Sequence[Term], divisors: Sequence[Term]) -> Term | None:
    """A product that is divided by 1/s, of which x/s is a factor: x stands there instead, an element and no larger.

    So a product that is summed up needs no array of all of its terms, to be divided one by one.
    """
    divisor = divisors[0] if len(divisors) == 1 else None
    for n, factor in enumerate(factors):
        if isinstance(factor, Rescaled) and divisor == function("power", factor.scale, Number(-1)):
            return mul(*factors[:n], factor.body, *factors[n + 1 :])
    return None


def _plain(term: Term) -> Term:
    """z of what is as large as z: |z|, its real part, its conjugate."""
    while isinstance(term, Conj) or (isinstance(term, Primitive) and term.name in LINEAR):
        term = term.children[0]
    return term


def _is_scaled_by_name(term: Term) -> bool:
    """Whether a term that is no element is as large, or as small, as what it is made of: a sum, tanh, an odd power."""
    return isinstance(term, Add | Mul | Sum) or parity(term) < 0


def _access(element: Apply, summed: frozenset[Var]) -> Access:
    assert isinstance(element.function, Var)
    return element.function, element.arguments, summed


def _is_element(term: Term) -> TypeGuard[Apply]:
    """Whether a term is an element of a tensor of real or complex numbers, at indices that are variables."""
    return (
        isinstance(term, Apply)
        and isinstance(term.function, Var)
        and isinstance(term.function.type, Space)
        and term.function.type.dtype is not int
        and all(isinstance(argument, Var) for argument in term.arguments)
    )
