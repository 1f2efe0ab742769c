"""When two programs are the same: they compute equal parts of equal parts, whatever is bound to a name.

    x ↦ let t = i ↦ Σ_j A[i,j] x[j] in Σ_i t[i]²     and     x ↦ Σ_i (Σ_j A[i,j] x[j])²     are the same

A Σ or function may stand where it is used or have a line of its own: printing, reading and simplification each choose
by their own measure. So every such part is bound, named after what it is, and the result printed in these names.

Numbers are multiplied out of sums, so that 2 (a - b) and -2 (b - a) are one, and decimals count as fractions. A Σ of a
Σ that has a name is one Σ, what has a name is on a diagonal what it is made of there, and an axis of length 1 is read
at 0.

Invariant: programs of the same parameters and signature have the same value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from itertools import groupby, permutations, product
from math import factorial, inf, prod

from combdiff.ir import (
    AFTER,
    BEFORE,
    LAST,
    MINUS_ONE,
    ONE,
    Action,
    Add,
    Affine,
    Apply,
    Conj,
    Coordinate,
    Delta,
    Implicit,
    IndexGuard,
    Indicator,
    Lambda,
    Let,
    Mul,
    Names,
    Number,
    Primitive,
    Range,
    Relation,
    Rewriter,
    Scalar,
    Scan,
    Space,
    Sum,
    Term,
    Tuple,
    Unequal,
    Var,
    Whole,
    add,
    affine,
    affine_parts,
    apply,
    at_step,
    axes_of,
    bind_heavy,
    canonical_names,
    composed,
    conj,
    dtype_of,
    element,
    exact,
    factors_of,
    free_indices,
    inline_all,
    lambda_,
    let,
    mul,
    number_and_rest,
    opened,
    put_back,
    size_form,
    solves,
    split,
    substitute,
    subterms,
    tidy,
    total,
    type_of,
    with_moduli,
)
from combdiff.printing import read_directly, text
from combdiff.simplification import order_key, plain_conditions, symbols

DIGITS = 16  # of a hash, for a name
ROUNDS = 2  # in which indices are told apart by how those beside them occur
MOST_ORDERS = 24  # of indices that occur alike, of which each is tried
MOST_ADDED, MOST_OPENED = 32, 600  # members, and symbols, of a sum that is opened where it stands in another
MOST_WRITTEN = 48  # elements in what is written where it is used
LEAST_EXACT = 1e-30  # of floats that are counted as fractions
SINGLE = Range(1)


def signature(term: Lambda) -> str:
    """What programs of the same parameters have in common where they are the same: the result in names of its parts."""
    return text(_normal(Lambda(term.parameters, _in_parts(_after_steps(term.body), 0, {}))))


def _after_steps(body: Term) -> Term:
    """What can be said of steps in two ways, in one."""
    return _AfterSteps(body).run(body)


class _AfterSteps(Rewriter):
    """Reads of what steps begin with, where some step surely comes before, by what that step gives: x[t + 1] is either.

    What steps without states give is a function of the step, and so is what steps with states give beside them, where
    it is read at a number.
    """

    def __init__(self, body: Term) -> None:
        super().__init__()
        self.scans = {
            var: value
            for node in subterms(body)
            if isinstance(node, Let)
            for var, value in node.bindings
            if isinstance(value, Scan)
        }

    def node(self, term: Term) -> Term:
        new = self.inside(term)
        if isinstance(new, Scan) and new.kind == AFTER and not new.states:
            return _of_the_step(new)
        if not isinstance(new, Apply):
            return new
        scan = self.scans.get(new.function, new.function) if isinstance(new.function, Var) else new.function
        if not isinstance(scan, Scan):
            return new
        if scan.kind == AFTER and scan.component < len(scan.states) and new.arguments[0] == _last_step(scan):
            return apply(self.run(scan.result(LAST, scan.component)), new.arguments[1:])
        if not _follows(new.arguments[0], scan):
            return new
        if scan.kind == AFTER and scan.component >= len(scan.states) and not affine_parts(new.arguments[0])[0]:
            return self.run(apply(_given_at_steps(scan), new.arguments))
        if scan.kind != BEFORE:
            return new
        place = affine([(new.arguments[0], 1)], 1 if scan.reverse else -1)
        return self.run(Apply(scan.result(AFTER, scan.component), (place, *new.arguments[1:])))


def _last_step(scan: Scan) -> Term:
    """The number of the step after which there is none."""
    return affine([]) if scan.reverse else affine([(size_form(scan.steps.size), 1)], -1)


def _given_at_steps(scan: Scan, stack: Callable[[Term], Term] = lambda term: term) -> Lambda:
    """What the steps give as a function of the step, from all states that steps begin with, which `stack` writes."""
    names = Names(scan)
    step = opened(scan, names)
    output = inline_all(let(step.bindings, step.outputs[scan.component]))
    own = names.indices(axes_of(output))
    known = {x: at_step(stack(scan.result(BEFORE, n)), step.index, x, names) for n, x in enumerate(step.states)}
    return Lambda((step.index, *own), apply(put_back(output, known), own))


def _of_the_step(scan: Scan) -> Term:
    """What steps without states give is a function of the step, but where they solve equations in loops again."""
    return scan if any(_solves_again(node) for node in subterms(scan.body)) else _given_at_steps(scan)


def _follows(place: Term, scan: Scan) -> bool:
    """Whether the number of a step is surely not that of the first: 1 or more, or below n - 1 where steps go back."""
    parts, offset = affine_parts(place)
    if any(factor < 0 or not isinstance(var.type, Range) for var, factor in parts):
        return False
    if not scan.reverse:
        return offset >= 1
    sizes = [var.type.size for var, _ in parts if isinstance(var.type, Range)]
    count = scan.steps.size
    if not isinstance(count, int) or not all(isinstance(size, int) for size in sizes):
        return False
    most = sum(factor * (size - 1) for (_, factor), size in zip(parts, sizes, strict=True) if isinstance(size, int))
    return offset + most < count - 1


def _in_parts(body: Term, depth: int, made: dict[Var, Term]) -> Term:
    """The result of a program in names of its parts; the program is the step or equation of so many others.

    `made` tells what names stand for.
    """
    within = _Within(depth, made)
    bindings, result = split(bind_heavy(_with_powers(body)))
    names: dict[Var, Term] = {}
    for var, value in bindings:
        names[var] = within.named(put_back(value, names))
    return _normal(within.run(put_back(result, names)))


class _Within(Rewriter):
    """Steps of scans and equations in names of their parts, as programs of their own are; their variables by depth.

    A solution under indices has a name, too: it may stand where it is used, or have a line of its own. What the
    steps of a scan give is computed from the states of all of them.
    """

    def __init__(self, depth: int, made: dict[Var, Term]) -> None:
        super().__init__()
        self.depth = depth
        self.made = made

    def named(self, value: Term) -> Term:
        """A value in names of its parts, with a name of its own."""
        return self._own(self.run(value))

    def _own(self, value: Term) -> Term:
        return _named(_normal(value), self.made)

    def node(self, term: Term) -> Term:
        match term:
            case Sum():
                return self._joined(total(term.indices, self.run(term.body)))
            case Scan(kind=kind):
                return self._given(term) if kind == AFTER else self._states(term)
            case Implicit():
                return self._solution(Implicit(term.kind, self._program(term.map), self.run(term.given)))
        new = self.inside(term)
        return self._element(new) if isinstance(new, Apply) else new

    def _element(self, read: Apply) -> Term:
        """An element; of a tensor that has a name and is read on a diagonal, or elsewhere, what has a name there."""
        if isinstance(read.function, Lambda):
            return self.run(apply(read.function, read.arguments))
        inner = self.made.get(read.function) if isinstance(read.function, Var) else None
        is_plain = len(set(read.arguments)) == len(read.arguments) and all(isinstance(at, Var) for at in read.arguments)
        if inner is None or is_plain or not all(isinstance(at, Var | Affine) for at in read.arguments):
            return apply(read.function, read.arguments)
        indices = free_indices(read)
        return apply(self._own(lambda_(indices, self.run(apply(inner, read.arguments)))), indices)

    def _joined(self, term: Term) -> Term:
        """A Σ of the elements of a Σ that has a name is one, where conditions on indices alone stand beside these."""
        if not isinstance(term, Sum):
            return term
        beside = [factor for factor in factors_of(term.body) if isinstance(factor, Number | IndexGuard)]
        rest = [factor for factor in factors_of(term.body) if factor not in beside]
        number, others = number_and_rest(self._open(rest[0])) if len(rest) == 1 else (ONE, ONE)
        if not isinstance(others, Sum):
            return term
        guards = [each for each in beside if isinstance(each, IndexGuard)]
        whole = total((*term.indices, *others.indices), mul(*guards, others.body))
        return mul(number, *(each for each in beside if each not in guards), self._joined(whole))

    def _open(self, term: Term) -> Term:
        """What an element is of that has a name."""
        match term:
            case Apply(function=Var() as name) if name in self.made:
                return apply(self.made[name], term.arguments)
            case Var():
                return self.made.get(term, term)
        return term

    def _program(self, step: Term) -> Lambda:
        assert isinstance(step, Lambda)
        own = tuple(Var(f"°{self.depth}.{n}", var.type) for n, var in enumerate(step.parameters))
        body = substitute(step.body, dict(zip(step.parameters, own, strict=True)))
        return Lambda(own, _in_parts(body, self.depth + 1, self.made))

    def _solution(self, term: Implicit) -> Term:
        outer = free_indices(term)
        if not outer:
            return term
        own = Names(term).indices(axes_of(term))
        return lambda_(own, apply(self._own(Lambda((*outer, *own), apply(term, own))), (*outer, *own)))

    def _states(self, scan: Scan) -> Term:
        """The states that the steps begin with, or the last, of a scan that gives nothing else."""
        step, count = opened(scan, Names(scan)), len(scan.states)
        states = Lambda((step.index, *step.states), let(step.bindings, Tuple(step.outputs[:count])))
        starts = tuple(map(self.run, scan.starts))
        return self._own(replace(scan, step=self._program(states), starts=starts))

    def _given(self, scan: Scan) -> Term:
        if not scan.states and any(_solves_again(node) for node in subterms(scan.body)):
            return self._each(scan)
        return _in_parts(_given_at_steps(scan, self.run), self.depth, self.made)

    def _each(self, scan: Scan) -> Term:
        """A value for each step, which a symbol stands for: under an index a scan that solves is one of steps again."""
        assert isinstance(scan.step, Lambda)
        symbol = Var(f"°{self.depth}.t", Whole())
        outputs = inline_all(substitute(scan.step.body, {scan.index: symbol}))
        assert isinstance(outputs, Tuple)
        value = _in_parts(outputs.items[scan.component], self.depth + 1, self.made)
        own = Names(scan).indices(axes_of(value))
        return Lambda((scan.index, *own), substitute(apply(value, own), {symbol: scan.index}))


def _solves_again(term: Term) -> bool:
    """Whether it is a scan whose steps solve equations."""
    return isinstance(term, Scan) and solves(term)


def _named(value: Term, made: dict[Var, Term]) -> Term:
    """A value, its number before a name that equal ones share; sums and products of elements stay as they are.

    A quotient or product that has a name in one print may stand in the sum that reads it in another.
    """
    value = read_directly(value)
    given, body = (value.parameters, value.body) if isinstance(value, Lambda) else ((), value)
    own = tuple(var for var in given if var.type != SINGLE)
    number, rest = _number_and_rest(body)
    if _elements(rest) <= MOST_WRITTEN:
        return value
    if isinstance(rest, Add) and len(rest.terms) <= MOST_ADDED and symbols(rest) <= MOST_OPENED:
        return value
    factor, own, bare, equations = _in_best_order(own, rest)
    space = type_of(bare)
    assert isinstance(space, Space)
    name = Var(f"h{_code(text(bare))}", Space(*space.axes, dtype=space.dtype, symmetry=equations))
    if isinstance(bare, Lambda | Sum):
        made[name] = bare
    named = mul(number, factor, element(name, own))
    return lambda_(given, named) if isinstance(value, Lambda) else named


@composed
def _elements(term: Term) -> float:
    """How many elements a sum or product of powers of elements reads; infinite for what else there is."""
    match term:
        case Var() | Number() | Delta() | Indicator() | Unequal() | Coordinate():
            return 1
        case Apply():
            return 1 if isinstance(term.function, Var | Primitive) else inf
        case Conj(body=body) | Primitive(name="power", arguments=(body, Number())):
            return _elements(body)
        case Relation(arguments=parts):
            return sum(map(_elements, parts))
        case Mul(factors=parts) | Add(terms=parts):
            return sum(map(_elements, parts))
    return inf


def _in_best_order(own: tuple[Var, ...], body: Term) -> tuple[Number, tuple[Var, ...], Term, list[str]]:
    """The axes of a tensor in the order in which it comes first: its number, they, what it is then, its symmetries.

    It is symmetric, or antisymmetric, where several orders make the same tensor.
    """
    orders = _orders(own, body)
    found = [_tensor_and_number(_normal(lambda_(order, body))) for order in orders]
    shown = [text(tensor) for tensor, _ in found]
    best = shown.index(min(shown))
    (tensor, number), first = found[best], orders[best]
    signs = {number: "", mul(MINUS_ONE, number): "-"}
    places = {var: f"i{n}" for n, var in enumerate(first)}
    here, *others = (",".join(places[var] for var in order) for order in (first, *orders))
    equations = [
        f"h[{here}] = {signs[each]}h[{there}]"
        for n, (there, (other, each)) in enumerate(zip(others, found, strict=True))
        if n != best and shown[n] == shown[best] and each in signs and type_of(other) == type_of(tensor)
    ]
    return number, first, tensor, equations


def _number_and_sum(term: Sum) -> tuple[Number, Term]:
    number, rest = _number_and_rest(term.body)
    return number, total(term.indices, rest)


def _sum_in_best_order(number: Number, term: Term) -> Term:
    """A number times a Σ with its indices in the order in which it comes first."""
    if not isinstance(term, Sum) or len(term.indices) < 2:
        return mul(number, term)
    orders = _orders(term.indices, term.body)
    found = [(ONE, term) if order == term.indices else _number_and_sum(_reordered(term, order)) for order in orders]
    sign, best = min(found, key=lambda each: text(each[1])) if len(found) > 1 else found[0]
    return mul(number, sign, best)


def _reordered(term: Sum, order: tuple[Var, ...]) -> Sum:
    """A Σ over its indices in another order, named by their places as `canonical_names` does."""
    new = tuple(Var(old.name, var.type) for old, var in zip(term.indices, order, strict=True))
    return Sum(new, _all_settled(substitute(term.body, dict(zip(order, new, strict=True)))))


def _orders(variables: tuple[Var, ...], body: Term) -> list[tuple[Var, ...]]:
    """Orders of variables that no name decides: by how they occur, those that occur alike in every order.

    Σ_{i,j} A[i,j] x[j]   →   (i, j)          Σ_{i,j} x[i] x[j] A[i,j] A[j,i]   →   (i, j), (j, i)
    """
    if len(variables) < 2:
        return [variables]
    inner = (var for node in subterms(body) for var in node.bound)
    seen = {var: repr(var.type) for var in (*variables, *inner)}
    for _ in range(ROUNDS):
        seen = {var: _occurrence(body, {**seen, var: f"*{seen[var]}"}) for var in seen}
    alike = [list(group) for _, group in groupby(sorted(variables, key=seen.__getitem__), key=seen.__getitem__)]
    if prod(factorial(len(group)) for group in alike) > MOST_ORDERS:
        return [tuple(var for group in alike for var in group)]
    every = product(*(permutations(group) for group in alike))
    return [tuple(var for group in groups for var in group) for groups in every]


def _occurrence(body: Term, shown: dict[Var, str]) -> str:
    """What a term is but for the order of factors and members, the names of some variables, and exact factors."""
    found: dict[Term, str] = {}
    for node in subterms(body):
        match node:
            case Var():
                found[node] = shown.get(node, node.name)
            case Number():
                found[node] = "number" if node.exact else f"{node.real} {node.imag}"
            case Affine():
                terms = sorted(f"{factor} {shown.get(var, var.name)}" for var, factor in node.coefficients)
                found[node] = _code(*terms, str(node.offset))
            case Mul():
                factors = sorted(found[part] for part in node.factors if not (isinstance(part, Number) and part.exact))
                found[node] = _code("Mul", *factors) if len(factors) > 1 else "".join(factors)
            case Primitive(name="power", arguments=(base, Number() as exponent)):
                found[node] = _code("power", found[base], f"{exponent.real} {exponent.imag}")
            case _:
                name = str(getattr(node, "name", ""))
                found[node] = _code(
                    type(node).__name__, name, *_in_first_order(node, [found[c] for c in node.children])
                )
    return found[body]


def _in_first_order(node: Term, parts: list[str]) -> Iterable[str]:
    """The parts of a node in an order that no name decides: members, the indices of a symmetric tensor."""
    match node:
        case Add() | Delta():
            return sorted(parts)
        case Apply(function=Var(type=Space() as space)) if space.group:
            function, *at = parts
            return function, *min(tuple(at[n] for n in action.axes) for action in _plain(space))
    return parts


def _code(*parts: str) -> str:
    return sha256(" ".join(parts).encode()).hexdigest()[:DIGITS]


def _tensor_and_number(tensor: Term) -> tuple[Term, Number]:
    """A tensor without the number before its elements, and that."""
    own, body = (tensor.parameters, tensor.body) if isinstance(tensor, Lambda) else ((), tensor)
    number, rest = _number_and_rest(body)
    return lambda_(own, rest), number


def _with_powers(term: Term) -> Term:
    """A term with what it multiplies by itself as powers, and the index of an axis of length 1 as 0."""
    done: dict[Term, Term] = {}
    for node in subterms(term):
        new = _taken_out(_at_zero(node.with_children(tuple(done[child] for child in node.children))))
        done[node] = _powers(new) if isinstance(new, Mul) else _power(new)
    return done[term]


def _at_zero(term: Term) -> Term:
    """A Σ or function whose indices of one value are 0; a function still takes them."""
    if not isinstance(term, Sum | Lambda):
        return term
    single = {var: affine([], 0) for var in term.bound if var.type == SINGLE}
    if not single:
        return term
    body = substitute(term.body, single)
    return (
        total((v for v in term.indices if v not in single), body)
        if isinstance(term, Sum)
        else Lambda(term.parameters, body)
    )


def _taken_out(term: Term) -> Term:
    """A Σ whose δ's of other indices with numbers stand before it, as lines of elements do."""
    if not isinstance(term, Sum) or not isinstance(term.body, Mul):
        return term
    outer = [
        f for f in term.body.factors if isinstance(f, Delta) and len(f.free) == 1 and f.free.isdisjoint(term.bound)
    ]
    return mul(*outer, total(term.indices, mul(*(f for f in term.body.factors if f not in outer)))) if outer else term


def _power(term: Term) -> Term:
    """`|z|²` for `Re(z* z)`, and `1 / a · 1 / b` for `1 / (a b)`."""
    match term:
        case Primitive(name="power", arguments=(Mul(factors=factors), Number(int() as exponent, 0))):
            found = mul(*(_raised(factor, exponent) for factor in factors))
            return _powers(found) if isinstance(found, Mul) else found
        case Primitive(name="power", arguments=(Delta() | Relation() as base, Number(int() as exponent, 0))):
            return _raised(base, exponent)
        case Primitive(name="real", arguments=(argument,)) if dtype_of(argument) is not complex:
            return argument
    return term


def _raised(base: Term, exponent: int) -> Term:
    """A whole power of a factor; of a power, one power."""
    match base:
        case Delta() | Relation() if exponent > 0:
            return base
        case Number(real, 0) if base.exact and real:
            return Number(tidy(Fraction(real) ** exponent))
        case Primitive(name="power", arguments=(inner, Number(int() as other, 0))):
            return Primitive("power", (inner, Number(other * exponent)))
    return Primitive("power", (base, Number(exponent)))


def _powers(term: Mul) -> Term:
    """A product in which each base stands once above and once below the bar; z* z is |z|²."""
    above, below = Counter[Term](), Counter[Term]()
    for factor in term.factors:
        match factor:
            case Primitive(name="power", arguments=(base, Number(int() as exponent, 0))):
                (below if exponent < 0 else above)[base] += abs(exponent)
            case _:
                above[factor] += 1
    sides = with_moduli(above), with_moduli(below)
    if sides == (above, below) and len(above) + len(below) == len(term.factors):
        return term
    powers = [(base, sign * n) for side, sign in zip(sides, (1, -1), strict=True) for base, n in side.items()]
    return mul(*(base if n == 1 else _raised(base, n) for base, n in powers))


def _normal(term: Term) -> Term:
    """A term with canonical names and orders, exact numbers before products and sums."""
    return _all_settled(canonical_names(term))


def _all_settled(term: Term) -> Term:
    done: dict[Term, Term] = {}
    for node in subterms(term):
        done[node] = _settled(node.with_children(tuple(done[child] for child in node.children)))
    return done[term]


def _settled(term: Term) -> Term:
    match term:
        case Apply(function=Var(type=Space() as space)) if space.group:
            return _read_first(term, space)
        case Lambda(body=Apply(function=Var() as tensor, arguments=at)) if at == term.parameters:
            return tensor if axes_of(tensor) == tuple(var.type for var in term.parameters) else term
        case Delta():
            left, right = sorted((term.left, term.right), key=order_key)
            return Delta(left, right, term.domain)
        case Relation(name="not_less" | "not_less_equal", arguments=(left, right)):  # as it is shown: ≥, or >
            return Relation("less_equal" if term.name == "not_less" else "less", (right, left))
        case Conj():
            number, rest = _number_and_rest(term.body)
            return mul(conj(number), _settled(Conj(rest))) if number is not ONE and rest is not ONE else term
        case Number():
            return Number(_as_fraction(term.real), _as_fraction(term.imag))
        case Coordinate(Affine() as form):
            members = [mul(Number(factor), Coordinate(var, term.dtype)) for var, factor in form.coefficients]
            return add(*members, Number(form.offset))
        case Primitive(name="power", arguments=(Mul(factors=factors), Number(int() as exponent, 0))):
            return _settled(mul(*(_settled(_raised(factor, exponent)) for factor in factors)))
        case Primitive(name="power", arguments=(Primitive(name="power") as base, Number(int() as exponent, 0))):
            return _raised(base, exponent)
        case Sum():
            return _sum_in_best_order(*_number_and_sum(term))
        case Primitive(name="power", arguments=(base, Number(int() as exponent, 0))):
            number, rest = _number_and_rest(base)
            if number is MINUS_ONE:
                return mul(MINUS_ONE if exponent % 2 else ONE, Primitive("power", (rest, term.arguments[1])))
        case Mul():
            parts = [_number_and_rest(factor) for factor in plain_conditions(term.factors)]
            found = mul(*(rest for _, rest in parts if rest is not ONE))
            found = _powers(found) if isinstance(found, Mul) else found
            rests = sorted(found.factors if isinstance(found, Mul) else (found,), key=order_key)
            return mul(*(factor for factor, _ in parts), *rests)
        case Add():
            return _sum(term)
    return term


def _as_fraction(part: Scalar) -> Scalar:
    """A part of a number as the fraction that its decimal digits say; a very large or very small float as it is."""
    found = exact(part)
    is_usual = isinstance(found, float) and LEAST_EXACT < abs(found) < 1 / LEAST_EXACT
    return tidy(Fraction(repr(found))) if is_usual else found


def _read_first(read: Apply, space: Space) -> Term:
    """An element of a symmetric tensor where it stands first."""
    images = [(tuple(read.arguments[n] for n in action.axes), action.sign) for action in _plain(space)]
    arguments, sign = min(images, key=lambda image: (*map(order_key, image[0]), -image[1]))
    return mul(Number(sign), Apply(read.function, arguments))


def _plain(space: Space) -> list[Action]:
    """The exchanges of axes that leave a tensor as it is, but for its sign."""
    return [action for action in space.group if not action.conjugate and not any(action.negated)]


def _sum(term: Add) -> Term:
    """A number and a sum in which no sum is multiplied by a number, and the first member has the factor 1."""
    opened = [_multiplied(factor, rest) for factor, rest in map(_number_and_rest, term.terms)]
    found = add(*(member for part in opened for member in part))
    if not isinstance(found, Add):
        return found
    members = sorted(found.terms, key=lambda member: order_key(_number_and_rest(member)[1]))
    first, _ = _number_and_rest(members[0])
    real, imag = Fraction(first.real), Fraction(first.imag)
    size = real**2 + imag**2
    inverse = Number(tidy(real / size), tidy(-imag / size))
    return mul(first, Add(tuple(mul(inverse, member) for member in members)))


def _multiplied(number: Number, term: Term) -> list[Term]:
    """The members of a number of times a sum, or of a term."""
    return [mul(number, member) for member in (term.terms if isinstance(term, Add) else (term,))]


def _number_and_rest(term: Term) -> tuple[Number, Term]:
    """An exact number and what it multiplies."""
    if isinstance(term, Number) and term.exact:
        return term, ONE
    factors = term.factors if isinstance(term, Mul) else (term,)
    exact = [f for f in factors if isinstance(f, Number) and f.exact]
    number = mul(*exact) if exact else ONE
    assert isinstance(number, Number)
    rest = tuple(f for f in factors if f not in exact)
    return number, (Mul(rest) if len(rest) > 1 else rest[0] if rest else ONE)
