"""Linear forms in named integers: the solutions of equations between them, and the elimination of variables; exactly.

An access `x[Aα + c]` reaches the element β from the indices (Urban & van der Smagt 2017, eq. 39 to 47)

    Γ(β) = { α integer, in range, Aα + c = β }
         = { I(β - c) + K z : Ck (β - c) = 0, I(β - c) integral, z in bounds }

where the pseudo-inverse I, the kernel K and the cokernel Ck come from the Smith normal form of A, the bounds
of each z from Fourier-Motzkin elimination.

Invariant: the closed form has exactly the integer points of the definition, each once, for every β and every
size that meets the assumptions. All arithmetic is exact (int, Fraction).
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from combdiff.ir import size_parts
from combdiff.polyhedra.diophantine import Rational, solve
from combdiff.records import dataclass


@dataclass(frozen=True)
class Linear:
    """An exact affine form over named integers; the names are sorted and no coefficient is zero."""

    coefficients: tuple[tuple[str, Rational], ...] = ()
    constant: Rational = 0

    def __post_init__(self) -> None:
        total: dict[str, Rational] = {}
        for name, value in self.coefficients:
            total[name] = total.get(name, 0) + value
        terms = tuple((name, _plain(total[name])) for name in sorted(total) if total[name])
        object.__setattr__(self, "coefficients", terms)
        object.__setattr__(self, "constant", _plain(self.constant))

    @staticmethod
    def symbol(name: str) -> "Linear":
        """The form that is just the symbol."""
        return Linear(((name, 1),))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names that occur."""
        return tuple(name for name, _ in self.coefficients)

    def coefficient(self, name: str) -> Rational:
        """The coefficient of a name, 0 where it does not occur."""
        return dict(self.coefficients).get(name, 0)

    def __add__(self, other: "Linear | Rational") -> "Linear":
        form = as_linear(other)
        return Linear(self.coefficients + form.coefficients, self.constant + form.constant)

    def __sub__(self, other: "Linear | Rational") -> "Linear":
        return self + as_linear(other).scale(-1)

    def scale(self, factor: Rational) -> "Linear":
        """The form times a number."""
        return Linear(tuple((name, factor * value) for name, value in self.coefficients), factor * self.constant)

    def substitute(self, forms: "Mapping[str, Linear]") -> "Linear":
        """Replace names by forms, all at once."""
        parts = [forms.get(name, Linear.symbol(name)).scale(value) for name, value in self.coefficients]
        return _sum([Linear((), self.constant), *parts])

    def evaluate(self, values: Mapping[str, Rational]) -> Rational:
        """The value at numbers for all names."""
        return _plain(self.constant + sum(value * values[name] for name, value in self.coefficients))

    def __str__(self) -> str:
        terms = [(value, name if abs(value) == 1 else f"{abs(value)}*{name}") for name, value in self.coefficients]
        if self.constant or not terms:
            terms.append((self.constant, str(abs(self.constant))))
        terms.sort(key=lambda term: term[0] < 0)
        text = "".join((" - " if value < 0 else " + ") + term for value, term in terms)
        return text[3:] if text.startswith(" + ") else "-" + text[3:]


def as_linear(value: "Linear | Rational | str") -> Linear:
    """A number or the name of a size as a form."""
    if isinstance(value, Linear):
        return value
    if not isinstance(value, str):
        return Linear((), value)
    names, offset = size_parts(value)
    return Linear(tuple(names.items()), offset)


def _plain(value: Rational) -> Rational:
    return value.numerator if value.denominator == 1 else value


def _sum(forms: Sequence[Linear]) -> Linear:
    return Linear(tuple(term for form in forms for term in form.coefficients), sum(form.constant for form in forms))


def tighten(constraint: Linear) -> Linear:
    """`constraint >= 0` with coprime integer coefficients and a floored constant: the same integer points."""
    scale = lcm(*(value.denominator for _, value in constraint.coefficients))
    divisor = gcd(*(int(value * scale) for _, value in constraint.coefficients)) or 1
    scaled = constraint.scale(Fraction(scale, divisor))
    return Linear(scaled.coefficients, floor(scaled.constant))


def prune(constraints: Iterable[Linear], assume: Iterable[Linear] = ()) -> tuple[Linear, ...]:
    """The constraints, tightened, without those that the others and `assume` imply over the rationals."""
    strongest: dict[tuple[tuple[str, Rational], ...], Linear] = {}
    for constraint in map(tighten, constraints):
        known = strongest.setdefault(constraint.coefficients, constraint)
        if constraint.constant < known.constant:
            strongest[constraint.coefficients] = constraint
    premises = [tighten(form) for form in assume]
    kept: list[Linear] = []
    # Short ones come first: of two that imply each other the plainer is kept, and most tests are small.
    for constraint in sorted(strongest.values(), key=lambda form: len(form.coefficients)):
        if not implied(constraint, [*kept, *premises]):
            kept.append(constraint)
    for constraint in reversed(kept):
        others = [other for other in kept if other != constraint]
        if implied(constraint, [*others, *premises]):
            kept = others
    return tuple(kept)


def contradictory(constraints: Iterable[Linear]) -> bool:
    """Whether no rational point meets them all."""
    return implied(NEVER, [tighten(form) for form in constraints])


def implied(constraint: Linear, by: list[Linear]) -> bool:
    """Farkas' lemma: is it a non-negative combination of `by` and `1 >= 0` (Schrijver 1986, cor. 7.1h)?

    A system without solutions also implies what is no such combination; that is kept. So removing what is
    implied never unbounds a variable.
    """
    names = sorted({name for form in (constraint, *by) for name in form.symbols})
    rows = [_whole_row(form, names) for form in (constraint, *by)]
    return _in_cone([*rows[1:], [*[0] * len(names), 1]], rows[0])


def _whole_row(form: Linear, names: Sequence[str]) -> list[int]:
    """The coefficients and the constant of the least multiple of a form for which they are whole."""
    row = [*map(form.coefficient, names), form.constant]
    scale = lcm(*(value.denominator for value in row))
    return [int(value * scale) for value in row]


def _in_cone(generators: list[list[int]], target: list[int]) -> bool:
    """Is the target a non-negative combination? Phase one of the simplex method (Schrijver 1986, ch. 11).

    Bland's rule makes it end. The tableau is integral: each pivot divides by the one before it, exactly.
    """
    count = len(generators)
    rows = [[generator[r] for generator in generators] + [value] for r, value in enumerate(target)]
    rows = [[-x for x in row] if row[-1] < 0 else row for row in rows]
    excess = [sum(column) for column in zip(*rows, strict=True)]
    basis = [count + r for r in range(len(rows))]  # artificial: they leave and never return
    previous = 1
    while excess[-1]:
        entering = next((j for j in range(count) if excess[j] > 0), None)
        if entering is None:
            return False
        ratios = [(Fraction(row[-1], row[entering]), basis[r], r) for r, row in enumerate(rows) if row[entering] > 0]
        leaving = min(ratios)[2]
        source = rows[leaving]
        pivot = source[entering]
        rows = [row if row is source else _pivoted(row, source, entering, previous) for row in rows]
        excess = _pivoted(excess, source, entering, previous)
        basis[leaving] = entering
        previous = pivot
    return True


def _pivoted(row: list[int], source: list[int], column: int, previous: int) -> list[int]:
    pivot, factor = source[column], row[column]
    return [(pivot * x - factor * y) // previous for x, y in zip(row, source, strict=True)]


Bound = tuple[Linear, int]


@dataclass(frozen=True)
class Bounds:
    """`ceil(L / d) <= name` for each (L, d) of `lower`, `name <= floor(L / d)` for each of `upper`; d > 0."""

    name: str
    lower: tuple[Bound, ...]
    upper: tuple[Bound, ...]

    def range(self, values: Mapping[str, int]) -> range:
        """The values of the variable, given those that enclose it."""
        low = max(ceil(Fraction(form.evaluate(values), divisor)) for form, divisor in self.lower)
        high = min(floor(Fraction(form.evaluate(values), divisor)) for form, divisor in self.upper)
        return range(low, high + 1)

    def __str__(self) -> str:
        return f"{_side(self.lower, 'max', 'ceil')} <= {self.name} <= {_side(self.upper, 'min', 'floor')}"


def _side(bounds: tuple[Bound, ...], fold: str, rounding: str) -> str:
    texts = [str(form) if divisor == 1 else f"{rounding}(({form})/{divisor})" for form, divisor in bounds]
    return texts[0] if len(texts) == 1 else f"{fold}({', '.join(texts)})"


@dataclass(frozen=True)
class Elimination:
    """Bounds in the order of elimination, so the innermost loop first, and the constraints that are left."""

    bounds: tuple[Bounds, ...]
    feasible: tuple[Linear, ...]


NEVER = Linear((), -1)


def eliminate(constraints: Iterable[Linear], variables: Iterable[str], assume: Iterable[Linear] = ()) -> Elimination:
    """Fourier-Motzkin elimination over the integers (Schrijver 1986, sec. 12.2).

    A lower bound `P + a·z >= 0` and an upper `Q - b·z >= 0` leave `b·P + a·Q >= 0`. This is the shadow over
    the rationals: where it holds the integer range of z may still be empty; no point is lost and none added.
    """
    premises = tuple(assume)
    remaining = prune(constraints, premises)
    bounds = []
    for name in variables:
        lower, upper, rest = [], [], []
        for form in remaining:
            factor = int(form.coefficient(name))
            bound = form - Linear(((name, factor),))
            if factor > 0:
                lower.append((bound.scale(-1), factor))
            elif factor < 0:
                upper.append((bound, -factor))
            else:
                rest.append(form)
        bounds.append(Bounds(name, _ordered(lower), _ordered(upper)))
        shadow = [above.scale(a) - below.scale(b) for below, a in lower for above, b in upper]
        remaining = prune(rest + shadow, premises)
    if contradictory([*remaining, *premises]):
        remaining = (NEVER,)
    return Elimination(tuple(bounds), remaining)


def _ordered(bounds: list[Bound]) -> tuple[Bound, ...]:
    return tuple(sorted(bounds, key=lambda bound: (len(bound[0].coefficients), bound[1], str(bound[0]))))


# Integer solutions


@dataclass(frozen=True)
class Points:
    """All integer α with `matrix·α = β`: `alpha` in β and the `loops`, where the conditions on β alone hold.

    A loop that equals an index has its name; `loops` that do not are new names.
    """

    equalities: tuple[Linear, ...]
    congruences: tuple[tuple[Linear, int], ...]
    loops: tuple[str, ...]
    alpha: tuple[Linear, ...]


def integer_points(
    matrix: Sequence[Sequence[int]], beta: Sequence[Linear], indices: Sequence[str], taken: Iterable[str] = ()
) -> Points:
    """The integer α with `matrix·α = beta` (Urban & van der Smagt 2017, eq. 41 to 43).

    `indices` names α; no name of `taken` or of `beta` is given to a new loop. Later indices are preferred as loops.
    """
    solution = solve(matrix, len(indices))
    used = {*indices, *taken, *(name for form in beta for name in form.symbols)}
    fresh = (name for number in range(len(used) + len(indices)) if (name := f"z{number}") not in used)
    loops = tuple(next(fresh) if r is None else indices[r] for r in solution.kept)
    known = (*beta, *(Linear.symbol(name) for name in loops))
    rows = [inverse + kernel for inverse, kernel in zip(solution.inverse, solution.kernel, strict=True)]
    return Points(
        equalities=tuple(_weighted(row, beta) for row in solution.cokernel),
        congruences=tuple((_modulo(_weighted(row, beta), m), m) for row, m in solution.congruences),
        loops=loops,
        alpha=tuple(_weighted(row, known) for row in rows),
    )


def _weighted(weights: Sequence[Rational], forms: Sequence[Linear]) -> Linear:
    return _sum([form.scale(weight) for weight, form in zip(weights, forms, strict=True)])


def _modulo(form: Linear, modulus: int) -> Linear:
    return Linear(form.coefficients, form.constant % modulus)
