"""Conditions on indices: as arrays, and as bounds within which arrays are kept, summed and multiplied.

    [i ≥ 1]·x[i]                Mask of x: zeros, and x[1:] written among them
    Σ_{j ≤ i} A[i, j]·x[j]      MaskedContract: products of blocks of A and of x

Invariant: an expression has the value of its step for arrays of every size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from combdiff.dialects import LETTERS, parenthesised, tuple_text
from combdiff.ir import Domain
from combdiff.planning.extents import at_most, extent_form
from combdiff.planning.operations.contraction import Contract
from combdiff.planning.operations.operation import BUFFER, IndexArray, Labels, Occurrence, Operation, Step
from combdiff.planning.operations.words import Pattern, Words
from combdiff.polyhedra import Linear
from combdiff.records import dataclass

BOX_ELEMENTS = 1 << 14  # in a box that is masked, as long as there are few boxes
BOX_BYTES = 11  # for each of them while its mask is made: a form, and truth values
REST_BYTES = 20  # for a form and what it leaves when it is divided
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
class Mask(Operation):
    """The operand where all conditions on the positions along its axes hold, 0 elsewhere."""

    conditions: tuple[IndexCondition, ...]

    def labels(self, step: Step) -> Labels:
        """Those of the axes."""
        return Labels.of_elements(step)

    def workspace(self, at: Occurrence) -> int:
        """The conditions of a box, then what is kept of it; the conditions alone where truth values choose."""
        masked, whole = _box(self.conditions, dict(enumerate(at.shape)))
        if len(self.conditions) == 1 and _is_triangle(self.conditions[0]):
            return max(prod(at.shape[-2:]), BOX_BYTES * masked) + min(BUFFER, at.elements) * at.item
        told = _truth_bytes(self.conditions, masked) * masked
        if at.rounds == 1 and _is_chosen(self.conditions, dict(enumerate(at.shape))):  # blocks are cut into boxes
            return told
        return max(told, masked + (whole + 2 * min(BUFFER, whole)) * at.item) + _objects(at)

    def statements(self, words: Words, step: Step, operands: Sequence[str], name: str) -> Sequence[str]:
        """Zeros, and a slice written among them."""
        slices = _sliced(words, self.conditions, step.axes) if words.dialect.in_place else None
        if not slices:
            return ()
        place = ", ".join(slices)
        return f"{name} = {words.dialect.np}.zeros_like({operands[0]})", f"{name}[{place}] = {operands[0]}[{place}]"

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A choice by truth values, or boxes in which the conditions hold."""
        if words.dialect.boxes == "chunk" and (slices := _sliced(words, self.conditions, step.axes)):
            return f"_part({operands[0]}, {tuple_text(map(_call, slices))})"
        if self._is_triangle(words) or _is_plain(words, self.conditions, step.axes):
            return _kept(words, self.conditions, step.axes, operands[0])
        return f"_keep({operands[0]}, {_conditions(words, self.conditions)[0]})"

    def _is_triangle(self, words: Words) -> bool:
        """Whether it is a triangle of matrices, which libraries cut as quickly as boxes do."""
        return len(self.conditions) == 1 and _is_triangle(self.conditions[0]) and words.dialect.boxes != "chunk"


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
        few = _is_chosen(self.conditions, sizes)
        is_chosen = few and at.rounds == 1 and _bound(self.conditions) <= set(self.out)  # of the product alone
        kept = [
            min(elements[n], masked * prod(sizes[label] for label in set(patterns[n]) - _bound(self.conditions)))
            for n in (() if is_chosen else set(self.hosts))
        ]
        copied = (sum(kept) + 2 * min(BUFFER, sum(kept))) * at.item
        if is_chosen and any(map(_is_triangle, _on_axes(self.conditions, self.out))):
            copied = min(BUFFER, at.elements) * at.item
        is_halved = not few and any(
            len(label) > 1 and label & set(self.out) for label in (_bound([one]) for one in self.conditions)
        )
        part = at.elements // (2 if is_halved else 1)
        if few and max(at.given) <= BOX_ELEMENTS:  # all products before they are summed
            part += max(at.given)
        told = _truth_bytes(self.conditions, masked) * masked
        truths = 2 * len(kept) * masked  # where bounds hold, and where what is kept there is infinite
        return max(told, truths + copied) + part * at.item + _objects(at)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The product of slices where these are enough, else box by box.

        Where nothing is summed XLA fuses the question whether an index has one value with what reads the product.
        """
        if not words.dialect.mixes_kinds:
            pairs = zip(step.operands, operands, strict=True)
            operands = [words.as_kind(m, text, step.kind) for m, text in pairs]
        ways = [_sliced_product, _plain_product, _box_product]
        at_one_place = all(condition.test == "== 0" for condition in self.conditions)
        if words.dialect.boxes == "text" and at_one_place and set().union(*self.patterns) <= set(self.out):
            ways = [_plain_product, _sliced_product, _box_product]
        return next(text for way in ways if (text := way(words, self, operands, step)))


def _sliced(words: Words, conditions: Sequence[IndexCondition], domains: Sequence[Domain]) -> list[str] | None:
    """Slices along labels, where each condition is of one label, a bound or one place; None for others."""
    lows: list[list[Linear | str]] = [[] for _ in domains]
    highs: list[list[Linear | str]] = [[] for _ in domains]
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
    return [
        f"{_first(words, low)}:{_last(words, high, extent_form(domain))}"
        for low, high, domain in zip(lows, highs, domains, strict=True)
    ]


def _floor(words: Words, start: Linear, divisor: int, *, sign: int) -> Linear | str:
    """The first position t with `divisor·t + start ≥ 0`; the one after the last with `−divisor·t + start ≥ 0`."""
    if not start.symbols:
        return Linear() + (sign * (start.constant // divisor) + (sign > 0))
    return f"({words.form(start)}) // {divisor} + 1" if sign > 0 else f"-(({words.form(start)}) // {divisor})"


def _first(words: Words, edges: Sequence[Linear | str]) -> str:
    """Where a slice begins: at the last of some positions, and not before 0; nothing at 0."""
    texts = _positions(words, edges)
    return "" if set(texts) <= {"0"} else _most(texts, any(map(_is_natural, edges)))


def _last(words: Words, edges: Sequence[Linear | str], length: Linear) -> str:
    """Where a slice ends: before the first of some positions, and not before 0; nothing where there are none.

    What is as far from the end at all sizes is counted from there.
    """
    if len(edges) == 1 and not isinstance(edges[0], str) and edges[0].symbols and not (length - edges[0]).symbols:
        return str(min(0, (edges[0] - length).constant) or "")
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
    slices = _sliced(words, op.conditions, list(_domains(words, op, step).values()))
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


def _is_plain(words: Words, conditions: Sequence[IndexCondition], axes: Sequence[Domain]) -> bool:
    """Whether conditions are written as truth values of all positions: where these are few, or they nearly all hold.

    The others are cut into boxes, so that no work is done beside them.
    """
    return words.dialect.boxes != "chunk" and _tells_all(conditions, axes, words.planned)


def _tells_all(conditions: Sequence[IndexCondition], axes: Sequence[Domain], sizes: Mapping[str, int]) -> bool:
    """Whether conditions are each of some axes, and of few positions at those sizes, or all of the kind i ≠ j."""
    if not all(any(condition.steps) for condition in conditions):
        return False
    return _hold_nearly(conditions) or _are_few([axes[label] for label in _bound(conditions)], sizes)


def _are_few(axes: Iterable[Domain], sizes: Mapping[str, int]) -> bool:
    """Whether an array of those axes is small."""
    return at_most(BOX_ELEMENTS, map(extent_form, axes), sizes)


def _hold_nearly(conditions: Sequence[IndexCondition]) -> bool:
    """Whether conditions fail at so few positions that no work is spared beside them."""
    return all(condition.test == "!= 0" for condition in conditions)


def _kept(words: Words, conditions: Sequence[IndexCondition], axes: Sequence[Domain], text: str) -> str:
    """An array where conditions on its axes hold, 0 elsewhere."""
    rest = [condition for condition in conditions if not _is_triangle(condition)]
    for condition in conditions:
        text = _triangle(words, condition, text) if _is_triangle(condition) else text
    return f"{words.dialect.np}.where({_truth(words, rest, axes)}, {text}, 0)" if rest else text


def _is_triangle(condition: IndexCondition) -> bool:
    """Whether a condition is a bound `i − j + c ≥ 0` of the last two axes."""
    *others, row, column = (0, 0, *condition.steps)
    return condition.test == ">= 0" and not any(others) and (row, column) in ((1, -1), (-1, 1))


def _triangle(words: Words, condition: IndexCondition, text: str) -> str:
    """The lower or upper triangles of the last two axes."""
    lower = condition.steps[-2] == 1
    edge = words.form(condition.start.scale(1 if lower else -1))
    return f"{words.dialect.np}.{'tril' if lower else 'triu'}({text}{f', {edge}' if edge != '0' else ''})"


def _truth(words: Words, conditions: Sequence[IndexCondition], axes: Sequence[Domain]) -> str:
    """Where conditions on axes hold, as truth values that have those lengths, or 1."""
    texts = [_comparison(words, condition, axes) for condition in conditions]
    return texts[0] if len(texts) == 1 else " & ".join(f"({text})" for text in texts)


def _comparison(words: Words, condition: IndexCondition, axes: Sequence[Domain]) -> str:
    """One condition: i + c ≥ j, i ≠ j, or (i + j) % m == 0."""
    if condition.test in ("divisible", "indivisible"):
        form, modulus = words.grid(condition.steps, condition.start, axes), words.form(condition.modulus)
        return f"({form}) % {parenthesised(modulus)} {'==' if condition.test == 'divisible' else '!='} 0"
    left, right = (tuple(max(0, sign * size) for size in condition.steps) for sign in (1, -1))
    start, zero = condition.start, Linear()
    on_left = any(right) and not (any(left) and not start.symbols and start.constant < 0)
    above = words.grid(left, start if on_left else zero, axes)
    below = words.grid(right, zero if on_left else start.scale(-1), axes)
    return f"{above} {condition.test.split()[0]} {below}"


def _plain_product(words: Words, op: MaskedContract, operands: Sequence[str], step: Step) -> str | None:
    """A product under conditions that are told as truth values; None where these would be too many.

    Those on labels of the result are told of that. What others forbid is never multiplied by 0, as it may be infinite.
    """
    domains = _domains(words, op, step)
    told = [
        (condition, host)
        for condition, host in zip(op.conditions, op.hosts, strict=True)
        if not any(_follows(condition, other, domains) for other in op.conditions)
    ]
    every = [condition for condition, _ in told]
    if not _is_plain(words, every, [domains[label] for label in range(len(op.conditions[0].steps))]):
        return None
    last = [condition for condition in every if _bound([condition]) <= set(op.out)]
    inner = [pair for pair in told if pair[0] not in last]
    product = (
        _product_within(words, op, operands, step, domains, inner) if inner else _product(words, op, step, operands)
    )
    return _kept(words, _on_axes(last, op.out), step.axes, product) if last else product


def _product_within(
    words: Words,
    op: MaskedContract,
    operands: Sequence[str],
    step: Step,
    domains: Mapping[int, Domain],
    told: Sequence[tuple[IndexCondition, int]],
) -> str:
    """A product summed where conditions of operands hold: of all its elements, where these are few."""
    whole = max(op.patterns, key=len)
    axes, conditions = [domains[label] for label in whole], [condition for condition, _ in told]
    if set(whole) == domains.keys() and (len(operands) == 1 or _are_few(axes, words.planned)):
        patterns = [tuple(map(whole.index, pattern)) for pattern in op.patterns]
        elements = " * ".join(words.aligned(operands, patterns, len(whole)))
        kept = _kept(words, _on_axes(conditions, whole), axes, elements)
        return _total(words, replace(op, patterns=(whole,)), kept)
    own = [[condition for condition, host in told if host == n] for n in range(len(op.patterns))]
    masks = [
        _truth(words, _on_axes(mine, pattern), [domains[label] for label in pattern]) if mine else "None"
        for mine, pattern in zip(own, op.patterns, strict=True)
    ]
    given = [_box_function(words, op, step), tuple_text(operands), tuple_text(masks)]
    largest = max(range(len(operands)), key=lambda n: len(op.patterns[n]))
    if own[largest] and any({*own[largest]} <= {*others} for n, others in enumerate(own) if n != largest):
        given.append(str(largest))
    return f"_masked_product({', '.join(given)})"


def _on_axes(conditions: Sequence[IndexCondition], pattern: Pattern) -> list[IndexCondition]:
    """Conditions on labels as ones on the axes that lie along a pattern, each once."""
    moved = [replace(condition, steps=tuple(condition.steps[label] for label in pattern)) for condition in conditions]
    return list(dict.fromkeys(moved))


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
    whole = f"{text}.sum({'' if len(axes) == len(pattern) else tuple_text(axes, single=False)})" if axes else text
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
    masked = whole if _hold_nearly(conditions) else min(whole, max(BOX_ELEMENTS, 2 * whole // BOXES))
    return masked, masked * prod(size for label, size in sizes.items() if label not in bound)


def _is_chosen(conditions: Sequence[IndexCondition], sizes: Mapping[int, int]) -> bool:
    """Whether truth values of all positions tell what is kept, without boxes."""
    return prod(sizes[label] for label in _bound(conditions)) <= BOX_ELEMENTS or _hold_nearly(conditions)


def _truth_bytes(conditions: Sequence[IndexCondition], masked: int) -> int:
    """Bytes for each position while so many truth values are made: a comparison of positions takes no form of them."""
    if masked <= BOX_ELEMENTS and any(condition.test.endswith("divisible") for condition in conditions):
        return REST_BYTES
    apart = all(sorted(map(abs, one.steps))[-3:] in ([1], [1, 1], [0, 1, 1], [0, 0, 1]) for one in conditions)
    return min(3, len(conditions)) if apart and all(sum(one.steps) == 0 for one in conditions) else BOX_BYTES


def _objects(at: Occurrence) -> int:
    """Bytes of the boxes that a loop over blocks leaves behind: each block has its own."""
    return BOX_OBJECT * min(BOXES, at.rounds) * (at.rounds > 1)
