"""The structure of a derivative: δ's split off, unconnected factors apart, and what is left as cores.

    H = (a, b, d, e) ↦ 2 δ(a, d) Σ_j V[j,b] V[j,e]           # before: n·k·n·k elements
    H[i,j,k,l] = core[j,l] δ[i,k],  core = 2 Σ_i V[i,j] V[i,k]   # after: k·k elements

A derivative is a sum of parts, each a product of δ's that pair an axis of a row with one of a column, and of cores,
summed over the labels that only cores have (a low-rank part). Which labels stay between cores is decided by what needs
least room at typical sizes, except beside a part with more δ's: there a Σ stays open, so that a system can be solved
by the δ's first. (Laue, Mitterreiter and Giesen, section 3: compressing derivatives.)

Invariant: the parts multiplied out are the derivative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import combinations
from typing import Any

from combdiff.ir import (
    ONE,
    Add,
    Apply,
    Conj,
    Cyclic,
    Delta,
    Domain,
    Guard,
    Indicator,
    Lambda,
    Names,
    Number,
    Relation,
    Space,
    Sum,
    SummedProduct,
    Term,
    Tuple,
    Unequal,
    Var,
    add,
    affine,
    affine_parts,
    canonical_names,
    connected,
    delta,
    factors_of,
    holds_delta,
    lambda_,
    mul,
    put_back,
    reduced_index,
    substitute,
    type_of,
)
from combdiff.records import dataclass
from combdiff.simplification import (
    Addend,
    addends,
    common_factors,
    index_variables,
    volume,
    with_shares,
)

MATRIX = 2  # axes up to which a core is small enough to be left whole
MOST_OPEN = 2  # labels that may stay between the cores of a part
AXES, RANKS = "ijklmnpq", "rstuvw"


Coefficients = tuple[tuple[int, int], ...]  # of axes, by number
Offsets = tuple[tuple[str, int], ...]  # of size names


@dataclass(frozen=True)
class AxisCondition:
    """`Σ coefficient·axis + Σ coefficient·size + offset` ≥ 0, or = 0 or ≠ 0 (perhaps modulo a size).

    `text` is its factor, a δ or a bracket, and `claim` what that says of the indices.
    """

    axes: Coefficients
    sizes: Offsets
    offset: int
    relation: str
    modulus: int | str | None
    text: str
    claim: str

    def holds(self, grid: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        """Where it holds, for the values of the indices along each axis."""
        value = self.offset + sum(c * sizes[name] for name, c in self.sizes) + sum(c * grid[a] for a, c in self.axes)
        if self.relation == "≥":
            return value >= 0
        if self.modulus is not None:
            value = value % (sizes[self.modulus] if isinstance(self.modulus, str) else self.modulus)
        return value == 0 if self.relation == "=" else value != 0


@dataclass(frozen=True)
class CoreProduct:
    """Π δ · Σ Π cores: for each core its number and the labels of its axes.

    Labels 0, 1, … are the axes of the derivative, those from `order` on are summed. An axis that a δ sets equal to an
    earlier one does not occur in the cores; `pairs` holds these. `conditions` are the δ's and conditions on axes that
    are no such pair, as text.
    """

    pairs: tuple[tuple[int, int], ...]
    cores: tuple[tuple[int, tuple[int, ...]], ...]
    conditions: tuple[AxisCondition, ...] = ()


@dataclass(frozen=True)
class Structure:
    """The parts of a derivative whose axes are `axes`; no parts, where it is zero."""

    axes: tuple[Domain, ...]
    parts: tuple[CoreProduct, ...]
    name: str = "H"
    cores: int = 1

    @property
    def letters(self) -> tuple[str, ...]:
        """A name for each axis."""
        return tuple(AXES[n] if n < len(AXES) else f"i{n}" for n in range(len(self.axes)))

    @property
    def compresses(self) -> bool:
        """Whether the structure says more than the array itself, and the cores and δ's between axes say all."""
        plain = not any(part.conditions for part in self.parts)
        return plain and not (len(self.parts) == 1 and not self.parts[0].pairs and len(self.parts[0].cores) == 1)

    def __str__(self) -> str:
        left = f"{self.name}[{','.join(self.letters)}]" if self.axes else self.name
        return f"{left} = {' + '.join(map(self._part_text, self.parts)) or '0'}"

    def _part_text(self, part: CoreProduct) -> str:
        ranks = sorted({label for _, labels in part.cores for label in labels if label >= len(self.axes)})
        names = {**dict(enumerate(self.letters)), **{label: RANKS[n % len(RANKS)] for n, label in enumerate(ranks)}}
        cores = [self._core_text(core, [names[label] for label in labels]) for core, labels in part.cores]
        deltas = [f"δ[{names[a]},{names[b]}]" for a, b in part.pairs]
        summed = [f"Σ_{{{','.join(names[label] for label in ranks)}}}"] if ranks else []
        return " ".join([*summed, *cores, *(c.text for c in part.conditions), *deltas])

    def _core_text(self, core: int, labels: Sequence[str]) -> str:
        name = "core" if self.cores == 1 else f"core{core + 1}"
        return f"{name}[{','.join(labels)}]" if labels else name


def _indices(product: SummedProduct) -> frozenset[Var]:
    """The indices that are not summed."""
    return frozenset(i for piece in product.factors for i in index_variables(piece)) - frozenset(product.indices)


def _together(one: SummedProduct, other: SummedProduct) -> SummedProduct | None:
    """The sum of two: in the one factor where they differ, or in the first if a factor of it has all indices."""
    covered = any(index_variables(piece) == _indices(one) for piece in one.factors)
    if covered and not one.indices and _indices(other) <= _indices(one):
        return SummedProduct((), (add(one.term, other.term),))
    if [r.type for r in one.indices] != [r.type for r in other.indices]:
        return None
    renamed = dict(zip(other.indices, one.indices, strict=True))
    theirs = tuple(substitute(piece, renamed) for piece in other.factors)
    common, (mine, more) = common_factors((one.factors, theirs))
    wanted = index_variables(mul(*mine))
    whole = any(index_variables(piece) == wanted for piece in (*mine, *more))
    if not common or not whole or index_variables(mul(*more)) != wanted:
        return None
    return SummedProduct(one.indices, (*common, add(mul(one.number, *mine), mul(other.number, *more))))


@dataclass
class Compressing:
    """Collects the cores of one or more derivatives of a program."""

    names: Names
    definitions: Mapping[Var, Term] = field(default_factory=dict)
    cores: list[Term] = field(default_factory=list)
    _known: dict[Term, int] = field(default_factory=dict)

    def core(self, value: Term, labels: Sequence[Var]) -> int:
        """The number of the core that is a value over these labels; equal values are one core."""
        tensor = lambda_(labels, value)
        form = canonical_names(tensor)
        if form not in self._known:
            self._known[form] = len(self.cores)
            self.cores.append(tensor)
        return self._known[form]

    def parts(self, value: Term) -> Iterator[CoreProduct]:
        """The parts of a derivative (a tensor or a number)."""
        indices = value.parameters if isinstance(value, Lambda) else ()
        body = value.body if isinstance(value, Lambda) else value
        groups: dict[frozenset[tuple[int, int]], dict[frozenset[Term], list[Addend]]] = {}
        for addend in addends(body, self.names):
            pairs, rest = _paired(tuple(map(_on_cycle, addend)), indices)
            conditions = [f for f in rest if isinstance(f, Guard) and not _looks_up(f)]
            others = with_shares((f for f in rest if f not in conditions), self.definitions)
            groups.setdefault(pairs, {}).setdefault(frozenset(conditions), []).append(others)
        most = max(map(len, groups), default=0)
        for pairs in sorted(groups, key=lambda pairs: (-len(pairs), sorted(pairs))):
            for found, members in groups[pairs].items():
                texts = tuple(sorted((_condition(c, indices) for c in found), key=lambda c: c.text))
                for pieces in self._merged([self._pieces(m, indices, len(pairs) < most, bool(pairs)) for m in members]):
                    yield self._part(pairs, texts, pieces, indices)

    def _pieces(self, factors: Addend, indices: Sequence[Var], beside: bool, paired: bool) -> SummedProduct:
        """A product as factors that have labels in common only where that needs least room."""
        numbers = mul(*(f for f in factors if not index_variables(f)))
        rest = [f for f in factors if index_variables(f)]
        best = self._arranged(rest, indices, beside, paired)
        pieces = best
        ranks = dict.fromkeys(i for piece in pieces for i in _ordered(piece) if i not in indices)
        return SummedProduct(tuple(ranks), tuple(pieces), numbers)

    def _merged(self, found: Iterable[SummedProduct]) -> list[SummedProduct]:
        """The products with those joined that differ in one factor, or of which one is no smaller than the sum."""
        kept: list[SummedProduct] = []
        for pieces in found:
            for n, other in enumerate(kept):
                if together := _together(other, pieces) or _together(pieces, other):
                    kept[n] = together
                    break
            else:
                kept.append(pieces)
        return kept

    def _part(
        self,
        pairs: frozenset[tuple[int, int]],
        conditions: tuple[AxisCondition, ...],
        found: SummedProduct,
        indices: tuple[Var, ...],
    ) -> CoreProduct:
        pieces = _absorbed(found.factors)
        if found.number is not ONE or not pieces:
            pieces = [mul(found.number, *pieces[:1]), *pieces[1:]]
        label = {i: n for n, i in enumerate((*indices, *found.indices))}
        cores = []
        for piece in pieces:
            labels = sorted(index_variables(piece), key=label.__getitem__)
            cores.append((self.core(piece, labels), tuple(label[i] for i in labels)))
        cores.sort(key=lambda core: (-len(core[1]), core[1]))
        return CoreProduct(tuple(sorted(pairs)), tuple(cores), conditions)

    def _arranged(self, factors: list[Term], indices: Sequence[Var], beside: bool, paired: bool) -> list[Term]:
        """The factors with every Σ closed or, where that is of use, with as few labels open as make pieces smaller."""
        large = any(len(index_variables(f)) > MATRIX for f in factors)
        if not beside and (paired or not large):
            return factors
        room = partial(_room, frozenset(indices) if beside else None)
        opened: list[Var] = []
        inside: list[Term] = []
        for factor in factors:
            if isinstance(factor, Sum):
                renamed = {i: self.names.fresh(i) for i in factor.indices}
                opened += renamed.values()
                inside += [part for f in factors_of(substitute(factor.body, renamed)) for part in _factored(f)]
            else:
                inside.append(factor)
        inside = list(with_shares(inside, self.definitions))
        for count in range(1, MOST_OPEN + 1):
            found = [_closed(inside, [i for i in opened if i not in kept]) for kept in combinations(opened, count)]
            smallest = min(found, key=room, default=factors)
            if room(smallest)[0] < room(factors)[0]:
                return smallest
        return factors


def _closed(factors: list[Term], summed: list[Var]) -> list[Term]:
    return [part.term for part in connected(summed, factors)]


def _room(counted: frozenset[Var] | None, pieces: Sequence[Term]) -> tuple[int, int]:
    """The most indices of one piece (of those counted, if any), and how many elements all have at typical sizes."""
    found = [index_variables(piece) for piece in _absorbed(pieces)]
    orders = [len(indices if counted is None else indices & counted) for indices in found]
    return max(orders, default=0), sum(map(volume, found))


def _factored(term: Term) -> Addend:
    """The factors of a term, those common to all addends of a sum among them."""
    if not isinstance(term, Add):
        return (term,)
    common, rests = common_factors([factors_of(part) for part in term.terms])
    return (*common, add(*(mul(*rest) for rest in rests)))


def _paired(addend: Addend, indices: tuple[Var, ...]) -> tuple[frozenset[tuple[int, int]], Addend]:
    """The axes that δ's set equal, earlier axis first, and the other factors with the earlier axis in place."""
    pairs: set[tuple[int, int]] = set()
    factors = addend
    while delta := next((f for f in factors if _pairs(f, indices)), None):
        assert isinstance(delta, Delta)
        first, second = sorted((delta.left, delta.right), key=indices.index)
        pairs.add((indices.index(first), indices.index(second)))
        rest = list(factors)
        rest.remove(delta)
        factors = factors_of(substitute(mul(*rest), {second: first}))  # type: ignore[dict-item]
    return frozenset(pairs), factors


def _pairs(factor: Term, indices: tuple[Var, ...]) -> bool:
    return isinstance(factor, Delta) and factor.left in indices and factor.right in indices


def _on_cycle(factor: Term) -> Term:
    """δ(i, (j − 1) mod n) of two indices as the δ on a cycle of n elements that it is."""
    found = reduced_index(factor) if isinstance(factor, Delta) else None
    return delta(found[0], found[1], Cyclic(found[2])) if found else factor


def _looks_up(factor: Term) -> bool:
    """Whether a condition asks what arrays hold: a factor like others, not known before there is data."""
    return isinstance(factor, Relation) or (isinstance(factor, Delta) and factor.lookup is not None)


def _absorbed(pieces: Sequence[Term]) -> list[Term]:
    """The pieces with those multiplied into another that have only its indices."""
    kept: list[Term] = []
    for piece in sorted(pieces, key=lambda f: -len(index_variables(f))):
        for n, other in enumerate(kept):
            if index_variables(piece) <= index_variables(other):
                kept[n] = mul(other, piece)
                break
        else:
            kept.append(piece)
    return kept


def _ordered(term: Term) -> list[Var]:
    return sorted(index_variables(term), key=lambda var: var.name)


def _condition(term: Term, indices: Sequence[Var]) -> AxisCondition:
    letters = _letters(indices)
    if isinstance(term, Delta):
        form = affine([(term.left, 1), (term.right, -1)])
        size = term.domain.size if isinstance(term.domain, Cyclic) else None
        left, right = (_form_text(side, letters) for side in (term.left, term.right))
        claim = f"{left} = {right}" if size is None else f"{left} ≡ {right} (mod {size})"
        return AxisCondition(*_linear(form, indices), "=", size, f"δ[{left},{right}]", claim)
    assert isinstance(term, Indicator | Unequal)
    (left, right), linear = _sides(term.form, letters), _linear(term.form, indices)
    if isinstance(term, Unequal):
        relation, size = "≠", term.cycle.size if term.cycle else None
        claim = f"{left} ≢ {right} (mod {size})" if size else f"{left} ≠ {right}"
    elif term.modulus:
        relation, size, claim = "=", term.modulus, f"{left} ≡ {right} (mod {term.modulus})"
    else:
        relation, size, claim = "≥", None, f"{left} ≥ {right}"
    return AxisCondition(*linear, relation, size, f"[{claim}]", claim)


def _linear(form: Term, indices: Sequence[Var]) -> tuple[Coefficients, Offsets, int]:
    parts, offset = affine_parts(form)
    axes = tuple((indices.index(v), int(c)) for v, c in parts if v in indices)
    return axes, tuple((v.name, int(c)) for v, c in parts if v not in indices), int(offset)


def _letters(indices: Sequence[Var]) -> dict[Var, str]:
    return {i: AXES[n] if n < len(AXES) else f"i{n}" for n, i in enumerate(indices)}


def _sides(form: Term, letters: Mapping[Var, str]) -> tuple[str, str]:
    """What is added in a form, and what is subtracted."""
    parts, offset = affine_parts(form)
    added = affine([(v, c) for v, c in parts if c > 0], max(offset, 0))
    subtracted = affine([(v, -c) for v, c in parts if c < 0], max(-offset, 0))
    return _form_text(added, letters), _form_text(subtracted, letters)


def _form_text(form: Term, letters: Mapping[Var, str]) -> str:
    parts, offset = affine_parts(form)
    terms = [f"{'' if c == 1 else '-' if c == -1 else c}{letters.get(v, v.name)}" for v, c in parts]
    if offset or not terms:
        terms.append(str(offset))
    return " + ".join(terms).replace("+ -", "- ")


def opened(bindings: Iterable[tuple[Var, Term]], named: Sequence[tuple[str, Term]]) -> list[tuple[str, Term]]:
    """Derivatives by name, with every binding put back that hides δ's or is one of them but for the order of axes."""
    whole = {var for _, value in named for var in _read_as_a_whole(value)}
    hiding: dict[Var, Term] = {}
    for var, value in bindings:
        if var in whole or holds_delta(value):
            hiding[var] = put_back(value, hiding, {})
    return [(name, put_back(value, hiding, {})) for name, value in named]


def _read_as_a_whole(value: Term) -> Iterator[Var]:
    """The variables with all axes of a derivative among the factors of its addends."""
    body = value.body if isinstance(value, Lambda) else value
    for factor in (f for addend in (body.terms if isinstance(body, Add) else (body,)) for f in factors_of(addend)):
        bare = factor.body if isinstance(factor, Conj) else factor
        tensor = bare.function if isinstance(bare, Apply) else bare
        if isinstance(tensor, Var) and Counter(getattr(tensor.type, "axes", ())) == Counter(_axes(value)):
            yield tensor


def compress(
    names: Names, bindings: Sequence[tuple[Var, Term]], named: Sequence[tuple[str, Term]]
) -> tuple[Term, tuple[Structure, ...]]:
    """The cores of some derivatives, each a name and a tensor that mentions bindings, and the structure of each.

    The first result is the core, or the tuple of the cores; it is to stand under the lets of the derivatives.
    """

    compressing = Compressing(names, dict(bindings))
    found = [(name, value, tuple(compressing.parts(value))) for name, value in opened(bindings, named)]
    structures = tuple(Structure(_axes(value), parts, name, len(compressing.cores)) for name, value, parts in found)
    cores = compressing.cores or [Number(0)]
    return cores[0] if len(cores) == 1 else Tuple(tuple(cores)), structures


def _axes(value: Term) -> tuple[Domain, ...]:
    found = type_of(value)
    assert isinstance(found, Space)
    return found.axes
