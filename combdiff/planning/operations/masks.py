"""Conditions on indices: as arrays, and as bounds within which arrays are kept, summed and multiplied.

    Σ_{j ≤ i} x[j]              PrefixSum of x: np.cumsum(x), read at i
    [i ≥ 1]·x[i]                Mask of x: zeros, and x[1:] written among them
    Σ_{j ≤ i} A[i, j]·x[j]      MaskedContract: products of blocks of A and of x

Invariant: an expression has the value of its step for arrays of every size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.dialects import LETTERS, parenthesised, tuple_text
from combdiff.ir import Domain
from combdiff.planning.extents import extent_form
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.operation import BUFFER, ITEM_BYTES, IndexArray, Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

BOX_ELEMENTS = 1 << 14  # in a box that is masked, as long as there are few boxes
BOX_BYTES = 11  # for each of them while its mask is made: a form, and truth values
BOXES, BOX_OBJECT = 64, 512  # boxes that are kept for later calls, at most, and bytes of the interpreter's for each


@dataclass(frozen=True)
class IndexCondition(IndexArray):
    """1 where `form = steps · t + start` is ≥ 0, = 0, ≠ 0, or divisible by `modulus` or not; 0 elsewhere.

    As an array these are numbers or, where `logical`, truth values.
    """

    steps: tuple[int, ...]
    start: Linear
    test: str  # ">= 0", "== 0", "!= 0", "divisible" or "indivisible"
    modulus: Linear
    logical: bool = False

    @property
    def takes_type(self) -> bool:
        """Where it makes numbers."""
        return not self.logical

    @property
    def is_truth(self) -> bool:
        """Whether truth values are what is asked for."""
        return self.logical

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A comparison of index arrays, or an eye."""
        rank, plain = len(step.axes), self.test == "== 0" and self.start == Linear()
        if plain and self.steps in ((1, -1), (-1, 1)) and not self.logical:
            return words.dialect.eye(words.extent(step.axes[0]), words.extent(step.axes[1]), words.dtype(int))
        form = words.grid(self.steps, self.start, step.axes, full=True)
        modulus = parenthesised(words.form(self.modulus)) if self.test.endswith("divisible") else ""
        test = {"divisible": "== 0", "indivisible": "!= 0"}.get(self.test, self.test)
        condition = f"({form}) % {modulus} {test}" if modulus else f"{form} {test}"
        if self.logical and rank:
            return condition
        cast = words.dialect.cast if rank else words.dialect.scalar
        return cast(f"({condition})" if rank else condition, words.dtype(int))


@dataclass(frozen=True)
class PrefixSum(Operation):
    """Sums along `axis` over its positions l with `sign·l + steps · t + start ≥ 0`; the labels t stand in its place."""

    axis: int
    sign: int
    steps: tuple[int, ...]
    start: Linear

    def labels(self, step: Step) -> Labels:
        """Those beside the bound's, which needs all elements."""
        bound = range(self.axis, self.axis + len(self.steps))
        labels = range(len(step.axes) - len(self.steps) + 1)
        operand = (None if n == self.axis else n + (len(bound) - 1) * (n > self.axis) for n in labels)
        return Labels((tuple(operand),), tuple(range(len(step.axes))), frozenset(bound))

    def workspace(self, at: Occurrence) -> int:
        """The sums, with 0 before them, made of those without; the bound, and the places that it makes."""
        (many,) = at.given
        if self._takes_all_beside(at.step, at.operands[0].axes):
            return 0
        row = many // max(1, at.shape_of(0)[self.axis])
        places = prod(at.shape[self.axis : self.axis + len(self.steps)]) * ITEM_BYTES[int]
        before = (2 * (many + row) - at.elements) * at.item + places, (many + row - at.elements) * at.item + 3 * places
        return max(*before, (many + row) * at.item + 2 * places)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The library's running sum, where each position takes all up to its own, or from its own on; else a helper."""
        if self._takes_all_beside(step, words.axes[step.operands[0]]):
            np, axes = words.dialect.np, f"({self.axis},)"
            if self.sign < 0:
                return f"{np}.cumsum({operands[0]}, {self.axis})"
            return f"{np}.flip({np}.cumsum({np}.flip({operands[0]}, {axes}), {self.axis}), {axes})"
        labels = step.axes[self.axis : self.axis + len(self.steps)]
        bound = words.grid(self.steps, self.start, labels, full=True)
        return f"_running({operands[0]}, {self.axis}, {self.sign}, {bound})"

    def _takes_all_beside(self, step: Step, summed: Sequence[Domain]) -> bool:
        """Whether each position takes all of as many positions up to its own, or all from its own on."""
        same = extent_form(step.axes[self.axis]) == extent_form(summed[self.axis]) if self.steps else False
        return same and self.steps == (-self.sign,) and self.start == Linear()


@dataclass(frozen=True)
class Mask(Operation):
    """The operand where all conditions on the positions along its axes hold, 0 elsewhere."""

    conditions: tuple[IndexCondition, ...]

    def labels(self, step: Step) -> Labels:
        """Those of the axes."""
        return Labels.of_elements(step)

    def workspace(self, at: Occurrence) -> int:
        """The conditions of a box, then what is kept of it."""
        masked, whole = _box(self.conditions, dict(enumerate(at.shape)))
        return max(BOX_BYTES * masked, masked + (whole + 2 * min(BUFFER, whole)) * at.item) + _objects(at)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """Zeros with a slice written among them, or with boxes in which the conditions hold."""
        if slices := _sliced(words, self.conditions, len(step.axes)):
            return f"_part({operands[0]}, {tuple_text(map(_call, slices))})"
        if len(self.conditions) == 1 and _is_triangle(words, self.conditions[0], step.axes):
            return _in_triangle(words, self.conditions[0], step.axes, operands[0])
        return f"_keep({operands[0]}, {_conditions(words, self.conditions)[0]})"


@dataclass(frozen=True)
class MaskedContract(Operation):
    """The product of the operands, summed over labels, of the positions alone at which conditions on the labels hold.

    `patterns` are the labels along the axes of one or two operands, `out` those of the result. Each condition is one of
    labels that all are in an operand, its host, or in the result, whose number as a host comes after the operands'.
    """

    patterns: tuple[Pattern, ...]
    out: Pattern
    conditions: tuple[IndexCondition, ...]
    hosts: tuple[int, ...]

    def labels(self, step: Step) -> Labels:
        """Its own."""
        return Labels(self.patterns, self.out)

    def flops(self, at: Occurrence) -> int:
        """As many as were there no conditions."""
        return at.products(self.patterns)

    def workspace(self, at: Occurrence) -> int:
        """The product of a slice or of half of all, or of a masked box with its conditions and what is kept of it."""
        sizes = {
            label: size
            for n, pattern in enumerate(self.patterns)
            for label, size in zip(pattern, at.shape_of(n), strict=True)
        }
        masked, _ = _box(self.conditions, sizes)
        patterns, elements = (*self.patterns, self.out), (*at.given, at.elements)
        kept = [
            min(elements[n], masked * prod(sizes[label] for label in set(patterns[n]) - _bound(self.conditions)))
            for n in set(self.hosts)
        ]
        copied = (sum(kept) + 2 * min(BUFFER, sum(kept))) * at.item
        is_halved = any(
            len(label) > 1 and label & set(self.out) for label in (_bound([one]) for one in self.conditions)
        )
        part = at.elements // (2 if is_halved else 1)
        return max(BOX_BYTES * masked, 2 * masked + copied) + part * at.item + _objects(at)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The product of slices where these are enough, else box by box."""
        if not words.dialect.mixes_kinds:
            pairs = zip(step.operands, operands, strict=True)
            operands = [words.as_kind(m, text, step.kind) for m, text in pairs]
        if text := _sliced_product(words, self, operands, step) or _triangular_product(words, self, operands, step):
            return text
        return _box_product(words, self, operands, step)


def _sliced(words: Words, conditions: Sequence[IndexCondition], count: int) -> list[str] | None:
    """Slices along so many labels, where each condition is of one label, a bound or one place; None for others."""
    lows: list[list[Linear | str]] = [[] for _ in range(count)]
    highs: list[list[Linear | str]] = [[] for _ in range(count)]
    for condition in dict.fromkeys(conditions):
        (label, *others) = [label for label, size in enumerate(condition.steps) if size] or (0, 0)
        step, start = condition.steps[label], condition.start
        if others or condition.test not in (">= 0", "== 0") or (condition.test == "== 0" and abs(step) != 1):
            return None
        if condition.test == "== 0":
            place = start.scale(-step)
            lows[label].append(place)
            highs[label].append(place + 1)
        elif step > 0:
            lows[label].append(start.scale(-1) if step == 1 else _floor(words, start, step, sign=-1))
        else:
            highs[label].append(start + 1 if step == -1 else _floor(words, start, -step, sign=1))
    return [f"{_first(words, low)}:{_last(words, high)}" for low, high in zip(lows, highs, strict=True)]


def _floor(words: Words, start: Linear, divisor: int, *, sign: int) -> Linear | str:
    """The first position t with `divisor·t + start ≥ 0`; the one after the last with `−divisor·t + start ≥ 0`."""
    if not start.symbols:
        return Linear() + (sign * (start.constant // divisor) + (sign > 0))
    return f"({words.form(start)}) // {divisor} + 1" if sign > 0 else f"-(({words.form(start)}) // {divisor})"


def _first(words: Words, edges: Sequence[Linear | str]) -> str:
    """Where a slice begins: at the last of some positions, and not before 0; nothing at 0."""
    texts = _positions(words, edges)
    return "" if set(texts) <= {"0"} else _most(texts, any(map(_is_natural, edges)))


def _last(words: Words, edges: Sequence[Linear | str]) -> str:
    """Where a slice ends: before the first of some positions, and not before 0; nothing where there are none."""
    texts = _positions(words, edges)
    first = f"min({', '.join(texts)})" if len(texts) > 1 else "".join(texts)
    return _most([first], all(map(_is_natural, edges)))


def _positions(words: Words, edges: Sequence[Linear | str]) -> list[str]:
    """Positions as texts; numbers before 0 are 0."""
    numbers = [edge if isinstance(edge, str) or edge.symbols else Linear() + max(0, edge.constant) for edge in edges]
    return list(dict.fromkeys(edge if isinstance(edge, str) else words.form(edge) for edge in numbers))


def _most(texts: Sequence[str], natural: bool) -> str:
    """The last of some positions, and not before 0, which `natural` ones are not."""
    parts = [*texts] if natural else ["0", *texts]
    return parts[0] if len(parts) == 1 else f"max({', '.join(parts)})"


def _is_natural(edge: Linear | str) -> bool:
    """Whether a position is not before 0, whatever the sizes, or is a number."""
    if isinstance(edge, str):
        return False
    return not edge.symbols or (edge.constant >= 0 and all(factor > 0 for _, factor in edge.coefficients))


def _call(text: str) -> str:
    """A slice as a value."""
    low, _, high = text.partition(":")
    return f"slice({low or None}, {high or None})"


def _sliced_product(words: Words, op: MaskedContract, operands: Sequence[str], step: Step) -> str | None:
    """A product of slices, with zeros beside them; None where conditions are others."""
    slices = _sliced(words, op.conditions, 1 + max(label for pattern in op.patterns for label in pattern))
    if slices is None:
        return None
    is_part = any(slices[label] != ":" for label in op.out)
    if words.dialect.boxes == "chunk" and (is_part or (len(operands) == 2 and not _simple(op))):
        return None
    cut = [
        f"{text}[{', '.join(slices[label] for label in pattern)}]" if {slices[n] for n in pattern} - {":"} else text
        for text, pattern in zip(operands, op.patterns, strict=True)
    ]
    product = _product(words, op, step, cut)
    if not is_part:
        return product
    places = tuple_text([_call(slices[label]) for label in op.out])
    return f"_placed({product}, {places}, {words.shape(step.axes)})"


def _is_triangle(words: Words, condition: IndexCondition, axes: Sequence[Domain]) -> bool:
    """Whether a condition is one bound `i − j + c ≥ 0` of two axes of one small size.

    About half of the positions meet it at every size: to leave the others out is worth no boxes while it is small.
    """
    used = [label for label, size in enumerate(condition.steps) if size]
    steps = sorted(condition.steps[label] for label in used)
    if condition.test != ">= 0" or steps != [-1, 1] or condition.start.symbols or words.dialect.boxes == "chunk":
        return False
    form, *more = {extent_form(axes[label]) for label in used}
    return not more and words.planned.keys() >= set(form.symbols) and form.evaluate(words.planned) ** 2 <= BOX_ELEMENTS


def _in_triangle(words: Words, condition: IndexCondition, axes: Sequence[Domain], text: str) -> str:
    """An array where such a bound of its axes holds, 0 elsewhere."""
    np, edge = words.dialect.np, condition.start.constant
    if condition.steps[-2:] == (1, -1):
        return f"{np}.tril({text}{f', {edge}' * bool(edge)})"
    if condition.steps[-2:] == (-1, 1):
        return f"{np}.triu({text}{f', {-edge}' * bool(edge)})"
    return f"{np}.where({_triangle(words, condition, axes)}, {text}, 0)"


def _triangle(words: Words, condition: IndexCondition, axes: Sequence[Domain]) -> str:
    """Such a bound as an array of truth values."""
    above, below = (tuple(max(0, sign * size) for size in condition.steps) for sign in (1, -1))
    return f"{words.grid(above, condition.start, axes)} >= {words.grid(below, Linear(), axes)}"


def _triangular_product(words: Words, op: MaskedContract, operands: Sequence[str], step: Step) -> str | None:
    """A product of which operands, or the result, are triangles; None for others."""
    patterns, axes = (*op.patterns, op.out), (*(words.axes[m] for m in step.operands), step.axes)
    domains = _domains(words, op, step)
    told = [
        (condition, host)
        for condition, host in zip(op.conditions, op.hosts, strict=True)
        if not any(_follows(condition, other, domains) for other in op.conditions)
    ]
    bounds = {host: replace(c, steps=tuple(c.steps[label] for label in patterns[host])) for c, host in told}
    if len(bounds) < len(told) or not all(_is_triangle(words, bound, axes[host]) for host, bound in bounds.items()):
        return None
    of_result = bounds.pop(len(operands), None)
    alike = {tuple(c for c, at in told if at == host) for host in range(len(operands))}
    if len(alike) == 1 and bounds and of_result is None and _bound(op.conditions) <= set(op.out):
        (bound,) = next(iter(alike))
        of_result, bounds = replace(bound, steps=tuple(bound.steps[label] for label in op.out)), {}
    if len(alike) == 1:
        kept = [
            _in_triangle(words, bounds[n], axes[n], text) if n in bounds else text for n, text in enumerate(operands)
        ]
        product = _product(words, op, step, kept)  # of what is zero at the same places
    else:
        masks = [_triangle(words, bounds[n], axes[n]) if n in bounds else "None" for n in range(len(operands))]
        product = f"_masked_product({_box_function(words, op, step)}, {tuple_text(operands)}, {tuple_text(masks)})"
    return _in_triangle(words, of_result, step.axes, product) if of_result else product


def _follows(bound: IndexCondition, other: IndexCondition, domains: Mapping[int, Domain]) -> bool:
    """Whether a bound of one label is what another leaves of that label's range: `i ≥ 1` where `j < i`."""
    (label, *more) = [label for label, size in enumerate(bound.steps) if size] or (0, 0)
    if more or {bound.test, other.test} != {">= 0"} or other.steps[label] != bound.steps[label]:
        return False
    rest = [(size, extent_form(domains[n]) - 1) for n, size in enumerate(other.steps) if size and n != label]
    spare = bound.start - other.start
    for size, last in rest:
        spare -= last.scale(max(0, size))
    return bool(rest) and not spare.symbols and spare.constant >= 0


def _domains(words: Words, op: MaskedContract, step: Step) -> dict[int, Domain]:
    """The domain of each label, by number."""
    pairs = [
        pair
        for pattern, m in zip(op.patterns, step.operands, strict=True)
        for pair in zip(pattern, words.axes[m], strict=True)
    ]
    return dict(sorted(pairs, key=lambda pair: pair[0]))


def _box_product(words: Words, op: MaskedContract, operands: Sequence[str], step: Step) -> str:
    """A product within conditions, box by box."""
    function = f'"{_subscripts(op)}"' if words.dialect.boxes == "text" else _box_function(words, op, step)
    sizes = tuple_text([words.extent(domain) for domain in _domains(words, op, step).values()])
    texts, counts = _conditions(words, op.conditions)
    hosts = [str(host) for host, count in zip(op.hosts, counts, strict=True) for _ in range(count)]
    patterns = tuple_text([tuple_text(map(str, pattern)) for pattern in op.patterns])
    arrays, out = tuple_text(operands), tuple_text(map(str, op.out))
    return f"_within({function}, {arrays}, {patterns}, {out}, {sizes}, {texts}, {tuple_text(hosts)})"


def _total(words: Words, op: MaskedContract, text: str) -> str:
    """One operand summed over the labels that the result has not, its axes in the result's order."""
    (pattern,) = op.patterns
    axes = [str(n) for n, label in enumerate(pattern) if label not in op.out]
    whole = f"{text}.sum({'' if len(axes) == len(pattern) else tuple_text(axes)})" if axes else text
    left = [label for label in pattern if label in op.out]
    return words.dialect.transposed(whole, [left.index(label) for label in op.out])


def _box_function(words: Words, op: MaskedContract, step: Step) -> str:
    """The product of one box as a function."""
    names = ("a", "b")[: len(op.patterns)]
    chunks = words.dialect.boxes == "chunk" and len(names) == 2
    return f"lambda {', '.join(names)}: {_einsum('np', op, names) if chunks else _product(words, op, step, names)}"


def _product(words: Words, op: MaskedContract, step: Step, operands: Sequence[str]) -> str:
    """The product of operands of whatever lengths, summed: a simple one, or one in einsum's notation."""
    if len(op.patterns) == 1:
        return _total(words, op, operands[0])
    simple = _simple(op)
    return simple.write(words, step, operands) if simple else _einsum(words.dialect.np, op, operands)


def _einsum(np: str, op: MaskedContract, operands: Sequence[str]) -> str:
    """The product in einsum's notation."""
    contract = Contract(op.patterns[0], op.patterns[1], op.out)
    optimal = ", optimize=True" if np == "np" and contract.left_only and contract.right_only else ""
    return f'{np}.einsum("{_subscripts(op)}", {", ".join(operands)}{optimal})'


def _subscripts(op: MaskedContract) -> str:
    """The product in einsum's notation."""
    *inputs, out = ("".join(LETTERS[label] for label in pattern) for pattern in (*op.patterns, op.out))
    return f"{','.join(inputs)}->{out}"


def _simple(op: MaskedContract) -> Contract | None:
    """The product as one that is written for blocks of every size, without reshapes; None for others."""
    if len(op.patterns) != 2:
        return None
    contract = Contract(*op.patterns, op.out)
    groups = (contract.left_only, contract.right_only, contract.summed)
    left, right = (set(pattern) - set(op.out) for pattern in op.patterns)
    reshapes = bool(left) and max(map(len, groups)) > 1
    return None if left != right or reshapes or contract.kernel == "einsum" else contract


def _modulus(words: Words, condition: IndexCondition) -> str:
    """What a form is divided by, with a minus where it is to leave a rest; 0 for a bound, None for ≠ 0."""
    sign = -1 if condition.test == "indivisible" else 1
    return "None" if condition.test == "!= 0" else words.form(condition.modulus.scale(sign))


def _conditions(words: Words, conditions: Sequence[IndexCondition]) -> tuple[str, list[int]]:
    """Conditions as `(steps, start, modulus)`, and as how many each is told: an equation is two bounds."""
    texts, counts = [], []
    for condition in conditions:
        equation = condition.test == "== 0"
        for sign in (1, -1)[: 1 + equation]:
            steps = tuple_text([str(sign * step) for step in condition.steps])
            texts.append(f"({steps}, {words.form(condition.start.scale(sign))}, {_modulus(words, condition)})")
        counts.append(1 + equation)
    return tuple_text(texts), counts


def _bound(conditions: Sequence[IndexCondition]) -> set[int]:
    """The labels that conditions are about."""
    return {label for one in conditions for label, size in enumerate(one.steps) if size}


def _box(conditions: Sequence[IndexCondition], sizes: Mapping[int, int]) -> tuple[int, int]:
    """The most positions of a masked box, of the labels that conditions are about, and of all."""
    bound = _bound(conditions)
    whole = prod(sizes[label] for label in bound)
    masked = min(whole, max(BOX_ELEMENTS, 2 * whole // BOXES))
    return masked, masked * prod(size for label, size in sizes.items() if label not in bound)


def _objects(at: Occurrence) -> int:
    """Bytes of the boxes that a loop over blocks leaves behind: each block has its own."""
    return BOX_OBJECT * min(BOXES, at.rounds) * (at.rounds > 1)
