"""Definitions that a reader does without: a binding is written where it is used if the program then is shorter.

    let t = tanh(z) in 1 − t²                     →   1 − tanh(z)²
    let u[i] = Σ_j Q[i,j] y[j] in Σ_i B[i,d] u[i]   →   Σ_{i,j} B[i,d] Q[i,j] y[j]
    let t = exp(z) in t/(1 + t)                   →   1/(1 + exp(−z)), by a law, in classes that see through names
    let u[i] = Σ_j H[i,j]* z[j]* in u[d]* + …       →   let u[i] = Σ_j H[i,j] z[j] in u[d] + …
    let u[i] = a − y[i]/t[i] in x t[d] u[d], t[d] u[d]  →  let u[i] = a t[i] − y[i] in x u[d], u[d]

Sharing binds what occurs twice in the graph of a program; less is printed twice, since a square is written once.
The length is that of the print: a definition counts its name, its indices and the sign =, where it stands.

Invariant: the value is unchanged, the work, with equal parts computed once, is no more, and the length is less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol

from combdiff.ir import (
    ONE,
    Add,
    Apply,
    Conj,
    Implicit,
    Lambda,
    Mul,
    Names,
    Primitive,
    Rewriter,
    Term,
    Tuple,
    Var,
    add,
    apply,
    bind_heavy,
    conj,
    dtype_of,
    factors_of,
    free_indices,
    function,
    inline_single_uses,
    is_call,
    is_field,
    items_of,
    joined,
    lambda_,
    let,
    matrices_in,
    mul,
    put_back,
    split,
    substitute,
    subterms,
    values_of,
    whole_power,
)
from combdiff.polyhedra import doubtful_accesses
from combdiff.simplification.egraph.extraction import program_cost
from combdiff.simplification.normal_form.angles import is_angle
from combdiff.simplification.normal_form.common_factors import factored, in_front, one_network
from combdiff.simplification.normal_form.common_subnetworks import bind_repeated, read_bound
from combdiff.simplification.normal_form.denominators import (
    JoiningLogarithms,
    with_roots_squared,
    without_fractions_below,
)
from combdiff.simplification.normal_form.joined_networks import joined_networks, with_transposes_joined
from combdiff.simplification.normal_form.lengths import length
from combdiff.simplification.normal_form.repeated_parts import with_repeated_named
from combdiff.simplification.normal_form.shares import with_averages_apart, with_named_shares

MOST_NAMES = 6  # of a program whose values are saturated together
LONGEST_IN_CLASSES = 160  # symbols of such a program
MOST_FACTORS = 70  # of a product in it, definitions written out: powers of powers are products in a great many ways
MOST_BINDINGS = 12  # of a program whose definitions are weighed one by one
LONGEST = 400  # symbols of such a program


class LetForms(Protocol):
    """The forms of a let program."""

    def without(self, left_out: frozenset[Var]) -> Term | None:
        """The cheapest form without some of its definitions, None if there is none."""


def with_repeated_defined(body: Term) -> Term:
    """A let program with what its values hold several times as definitions, where that is less work or as much.

    It is shorter then, or no longer where there are definitions: a formula in one line stays one.
    """
    if _is_long(body):
        return body
    before = _price(body)
    longest = before[1] if split(body)[0] else before[1] - 1
    for candidate in chain(bind_repeated(body), with_repeated_named(body)):
        shortest = min((candidate, _with_values(candidate, factored)), key=length)
        if length(shortest) <= longest and _price(shortest) < before:
            return with_repeated_defined(shortest)
    return body


def without_short_definitions(body: Term, classes: Callable[[Term], LetForms]) -> Term:
    """A let program without the bindings that make it longer to read and spare no work, its shares by names if shorter.

    `classes` gives all forms of the program that the laws lead to, its definitions left out or not.
    """
    body = with_repeated_defined(body)
    shared = [] if _is_long(body) else list(with_named_shares(body))
    before = _price(body) if shared else (0.0, 0)
    for candidate in shared:
        if length(candidate) < before[1] and _price(candidate) < before:
            return without_short_definitions(candidate, classes)
    found = _without_short_definitions(body, classes)
    others = () if _is_long(body) else (*with_factors_taken_in(body), *_with_angles_written_out(body))
    for candidate in (*shared, *others):  # of which some become shorter once short definitions are written out
        other = _without_short_definitions(candidate, classes)
        if length(other) <= length(found) and _price(other) < _price(found):
            found = other
    for candidate in list(with_averages_apart(found)):
        if length(candidate) < length(found) and _price(candidate) < _price(found):
            found = candidate
    if found is body:
        return body
    again = _with_values(found, factored)  # what was written out has factors in common with what it stands beside
    found = again if length(again) < length(found) and _price(again) < _price(found) else found
    return with_repeated_defined(found)  # two definitions, one of the other, may be longer than one of both together


def _is_long(body: Term) -> bool:
    """Whether a program's definitions are too many to be weighed one by one."""
    return len(split(body)[0]) > MOST_BINDINGS or length(body) > LONGEST


def _without_short_definitions(body: Term, classes: Callable[[Term], LetForms]) -> Term:
    """A let program without the bindings that make it longer to read and spare no work."""
    bindings, result = split(body)
    if not bindings or _is_long(body):
        return body
    several = isinstance(result, Tuple)  # results share what has a name, but for what is less work without it
    in_classes = len(bindings) <= MOST_NAMES and length(body) <= LONGEST_IN_CLASSES and _degree(body) <= MOST_FACTORS
    whole = classes(body) if in_classes else None
    price = _price(body)
    left_out: frozenset[Var] = frozenset()

    def readings(without: frozenset[Var]) -> Iterator[Term]:
        found = whole and whole.without(without)
        if found:
            yield found
            yield _with_values(found, factored)

    def better(candidates: Iterable[Term]) -> bool:
        nonlocal body, price
        before = body
        for candidate in candidates:
            if length(candidate) < price[1] and (new := _price(candidate)) < price:
                if several and new[0] == price[0]:
                    continue
                body, price = candidate, new
        return body is not before

    better(readings(left_out))
    before = None
    while before is not body:  # without one definition another may be short
        before = body
        for var, value in reversed(split(body)[0]):
            if var in matrices_in(body) or is_call(value) or is_field(value) or _is_in_an_equation(var, body):
                continue
            better(_conjugated(body, var))
            if var not in dict(split(body)[0]) or better(
                (*_without(body, var), *readings(left_out | {var}), *_in_front_without(body, var))
            ):
                left_out |= {var}
    return inline_single_uses(body) if several else body  # all other uses may have gone


def _price(body: Term) -> tuple[float, int]:
    """The work of a program with equal parts computed once, and its length."""
    return program_cost(bind_heavy(body)), length(body)


def _degree(body: Term) -> int:
    """How many factors the longest product has with definitions that are products written out: 63 of t³, t = x²¹."""
    factors: dict[Term, int] = {}
    bindings, result = split(body)
    for var, value in (*bindings, *((None, item) for item in items_of(result))):
        for part in subterms(value):  # children first
            if isinstance(part, Mul):
                factors[part] = sum(factors.get(factor, 1) for factor in part.factors)
            elif isinstance(part, Apply) and part.function in factors:
                factors[part] = factors[part.function]
        if var is not None:
            factors[var] = factors.get(value.body if isinstance(value, Lambda) else value, 1)
    return max(factors.values(), default=1)


def _without(body: Term, var: Var) -> Iterator[Term]:
    """The program with the value of a binding where it is used: as it stands, and in the networks that read it."""
    bindings, result = split(body)
    replacement = {var: dict(bindings)[var]}

    def put(value: Term) -> Term:
        if var not in value.free:
            return value
        return without_fractions_below(with_roots_squared(put_back(value, replacement)), {})

    kept = [(bound, put(value)) for bound, value in bindings if bound is not var]
    written = let(kept, joined(result, map(put, items_of(result))))
    before = {*values_of(body)}
    yield written
    yield _with_values(written, lambda value: value if value in before else with_transposes_joined(value))
    taken_out = _with_values(written, lambda value: value if value in before else factored(one_network(value)))
    yield taken_out
    read = read_bound(taken_out)  # what stood in the definition beside others may have a name alone
    if read is not taken_out:
        yield _with_values(read, factored)


def _in_front_without(body: Term, var: Var) -> Iterator[Term]:
    """The program with the value of a binding in front of the terms of each sum that are multiples of it.

    2/x − 2 x/t − b/t with t = x² + b x + c is 2/x − (2 x + b)/(x² + b x + c), and B w c − k (A c + B s) − A w s with
    the names of a sine and a cosine is (B w − A k) cos(w t) − (A w + B k) sin(w t).
    """
    value = dict(split(body)[0])[var]
    collecting = _Collecting(var, isinstance(value.body if isinstance(value, Lambda) else value, Primitive))
    found = _with_values(body, collecting.run)
    if collecting.collected:
        yield from islice(_without(found, var), 1)


class _Collecting(Rewriter):
    """Takes a power of a definition in front of the terms of a sum that have it, a function out of sums in these."""

    def __init__(self, var: Var, is_function: bool) -> None:
        super().__init__()
        self.var, self.is_function, self.collected = var, is_function, False

    def node(self, term: Term) -> Term:
        """The term with its sums collected."""
        new = self.inside(term) if self.var in term.free else term
        if not isinstance(new, Add):
            return new
        groups: dict[Term, list[Term]] = {}
        for part in chain.from_iterable(map(self._multiplied_out, new.terms)):
            own = (factor for factor in factors_of(part) if self._is_power(factor))
            groups.setdefault(next(own, ONE), []).append(part)
        self.collected |= any(len(parts) > 1 for factor, parts in groups.items() if factor is not ONE)
        rest = joined_networks(add(*groups.pop(ONE, [])))
        return add(rest, *(in_front(parts) for parts in groups.values()))

    def _multiplied_out(self, part: Term) -> Sequence[Term]:
        """The terms of a product with one sum that has a function by its name: of k (a t + b), a k t and b k."""
        sums = [factor for factor in factors_of(part) if isinstance(factor, Add) and self.var in factor.free]
        if len(sums) != 1 or not isinstance(part, Mul) or not self.is_function:
            return (part,)
        others = [factor for factor in part.factors if factor is not sums[0]]
        return [mul(*others, term) for term in sums[0].terms]

    def _is_power(self, factor: Term) -> bool:
        base = factor.arguments[0] if isinstance(factor, Primitive) and factor.name == "power" else factor
        return base is self.var or (isinstance(base, Apply) and base.function is self.var)


def _with_angles_written_out(body: Term) -> Iterator[Term]:
    """The program with its definitions of sines and cosines written where they are read, which may be of one angle."""
    bindings, result = split(body)
    angles, held = dict[Var, Term](), matrices_in(body)
    for var, value in bindings:
        if is_angle(value.body if isinstance(value, Lambda) else value) and var not in held:
            angles[var] = put_back(value, angles)  # of an angle, perhaps, that is a sine itself
    if len(angles) > 1:
        kept = [(var, put_back(value, angles)) for var, value in bindings if var not in angles]
        items = [put_back(item, angles) for item in items_of(result)]
        yield _with_values(let(kept, joined(result, items)), factored)


def with_factors_taken_in(body: Term) -> Iterator[Term]:
    """The program with a definition multiplied by what stands beside it wherever it is read, and divides in it."""
    bindings, result = split(body)
    for var, value in bindings:
        if not isinstance(value, Lambda) or is_call(value.body):
            continue
        divisors = {base for base, power in map(whole_power, subterms(value.body)) if power < 0}
        if not divisors:
            continue
        reading = _FactorsBeside(var, value.parameters)
        for other in values_of(body):
            reading.run(other)
        factors = tuple(factor for factor in reading.beside or () if factor in divisors)
        if not factors or dtype_of(mul(*factors)) is complex:
            continue
        taking = _FactorsBeside(var, value.parameters, Names(body).fresh(Var("t", var.type)), factors)
        taken = lambda_(value.parameters, mul(*factors, value.body))
        if doubtful_accesses(taken):
            continue
        changed = [(taking.new, taken) if bound is var else (bound, taking.run(other)) for bound, other in bindings]
        whole = let(changed, joined(result, map(taking.run, items_of(result))))
        if var not in whole.free:  # it is read nowhere else
            yield whole


class _FactorsBeside(Rewriter):
    """Finds the factors beside a definition, at its own indices, in all products that read it; reads `new` for some."""

    def __init__(
        self, var: Var, parameters: Sequence[Var], new: Var | None = None, factors: tuple[Term, ...] = ()
    ) -> None:
        super().__init__()
        self.var, self.parameters, self.new, self.factors = var, parameters, new or var, factors
        self.beside: tuple[Term, ...] | None = None

    def node(self, term: Term) -> Term:
        """The term, with `new` in place of the definition and the factors."""
        inside = self.inside(term) if self.var in term.free else term
        read = next((factor for factor in factors_of(inside) if self._is_read(factor)), None)
        if not isinstance(inside, Mul) or not isinstance(read, Apply):
            return inside
        others = list(inside.factors)
        others.remove(read)
        places = {a: p for a, p in zip(read.arguments, self.parameters, strict=True) if isinstance(a, Var)}
        own = {substitute(f, places): f for f in others if places.keys() >= set(free_indices(f))}
        self.beside = tuple(own) if self.beside is None else tuple(factor for factor in self.beside if factor in own)
        for factor in self.factors:
            others.remove(own[factor])
        return mul(Apply(self.new, read.arguments), *others)

    def _is_read(self, factor: Term) -> bool:
        """Whether a factor is an element of the definition at indices that are all there and each once."""
        if not isinstance(factor, Apply) or factor.function is not self.var:
            return False
        return len(set(factor.arguments)) == len(factor.arguments) and all(isinstance(a, Var) for a in factor.arguments)


def _conjugated(body: Term, var: Var) -> Iterator[Term]:
    """The program with the conjugate of a complex definition, by a name of its own; Re z for Re z* where shorter."""
    bindings, result = split(body)
    value = dict(bindings).get(var, ONE)  # an earlier choice may have done without it
    parameters, inside = (value.parameters, value.body) if isinstance(value, Lambda) else ((), value)
    if dtype_of(inside) is not complex:
        return
    other = Names(body).fresh(Var("t", var.type))
    replacement = {var: lambda_(parameters, conj(apply(other, parameters)))}
    plainly = _PlainReal(other)

    def used(term: Term) -> Term:
        return plainly.run(put_back(term, replacement)) if var in term.free else term

    conjugate = one_network(lambda_(parameters, conj(inside)))
    changed = [(other, conjugate) if bound is var else (bound, used(value)) for bound, value in bindings]
    yield let(changed, joined(result, map(used, items_of(result))))


class _PlainReal(Rewriter):
    """Writes Re z for Re z* where that is shorter, or has the conjugate of a name less."""

    def __init__(self, var: Var) -> None:
        super().__init__()
        self.var = var

    def node(self, term: Term) -> Term:
        """The term with its real parts those that are easier to read."""
        new = self.inside(term)
        if isinstance(new, Primitive) and new.name == "real":
            return min((new, function("real", one_network(conj(new.arguments[0])))), key=self._price)
        return new

    def _price(self, term: Term) -> tuple[int, int]:
        starred = [part for part in subterms(term) if isinstance(part, Conj) and self.var in part.free]
        return length(term), len(starred)


def _with_values(body: Term, changed: Callable[[Term], Term]) -> Term:
    """The program with its values changed, but those that are calls."""
    bindings, result = split(body)

    def value_of(value: Term) -> Term:
        return value if isinstance(value, Implicit) or is_call(value) else changed(value)

    return let([(bound, value_of(value)) for bound, value in bindings], joined(result, map(value_of, items_of(result))))


def with_logarithms_joined(body: Term) -> Term:
    """A let program with log(x/y) for log x − log y of data, where that is safe and shorter."""
    joining = JoiningLogarithms(frozenset(var for var, _ in split(body)[0]))
    return _with_values(body, joining.run)


def _is_in_an_equation(var: Var, body: Term) -> bool:
    """Whether an equation reads a variable: solving it would compute the value again and again."""
    parts = (part for value in values_of(body) if var in value.free for part in subterms(value))
    return any(isinstance(part, Implicit) and var in part.free for part in parts)
