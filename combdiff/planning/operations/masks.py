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
        row = many // max(1, at.shape_of(0)[self.axis])
        places = prod(at.shape[self.axis : self.axis + len(self.steps)]) * ITEM_BYTES[int]
        before = (2 * (many + row) - at.elements) * at.item + places, (many + row - at.elements) * at.item + 3 * places
        return max(*before, (many + row) * at.item + 2 * places)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """A helper, given the bounds."""
        labels = step.axes[self.axis : self.axis + len(self.steps)]
        bound = words.grid(self.steps, self.start, labels, full=True)
        return f"_running({operands[0]}, {self.axis}, {self.sign}, {bound})"


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
        if (holds := _triangle(words, self.conditions, step.axes)) and words.dialect.boxes != "chunk":
            return f"{words.dialect.np}.where({holds}, {operands[0]}, 0)"
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
        """The product of a box of half of the labels, or of a masked one with its conditions and what is kept of it."""
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
        half = at.elements // (2 if _bound(self.conditions) & set(self.out) else 1)
        return max(BOX_BYTES * masked, 2 * masked + copied) + half * at.item + _objects(at)

    def write(self, words: Words, step: Step, operands: Sequence[str]) -> str:
        """The product of slices where these are enough, else box by box."""
        if not words.dialect.mixes_kinds:
            pairs = zip(step.operands, operands, strict=True)
            operands = [words.as_kind(m, text, step.kind) for m, text in pairs]
        contract = _simple(self)
        if text := _sliced_product(words, self, contract, operands, step):
            return text
        boxes = words.dialect.boxes
        if boxes != "chunk" and (text := _triangular_product(words, self, contract, operands, step)):
            return text
        product = contract.write(words, step, ("a", "b")) if contract and boxes == "product" else None
        np = "np" if boxes == "chunk" else words.dialect.np
        function = f'"{_subscripts(self)}"' if boxes == "text" else _box_function(words, self, np, product)
        return _box_product(words, self, operands, function, step)


def _sliced(words: Words, conditions: Sequence[IndexCondition], count: int) -> list[str] | None:
    """Slices along so many labels, where each condition is one bound of one label; None for others."""
    found = [":"] * count
    for condition in conditions:
        used = [label for label, size in enumerate(condition.steps) if size]
        if condition.test != ">= 0" or len(used) != 1 or found[used[0]] != ":":
            return None
        found[used[0]] = _slice(words, condition.steps[used[0]], condition.start)
    return found


def _slice(words: Words, step: int, start: Linear) -> str:
    """The positions t with `step·t + start ≥ 0` as a slice."""
    if abs(step) == 1:
        edge = start.scale(-1) if step > 0 else start + 1
        text = f"max(0, {words.form(edge)})" if edge.symbols else str(max(0, edge.constant))
    elif step > 0:
        text = f"max(0, -(({words.form(start)}) // {step}))"
    else:
        text = f"max(0, ({words.form(start)}) // {-step} + 1)"
    return f"{text}:" if step > 0 else f":{text}"


def _call(text: str) -> str:
    """A slice as a value."""
    low, _, high = text.partition(":")
    return f"slice({low or None}, {high or None})"


def _sliced_product(
    words: Words, op: MaskedContract, contract: Contract | None, operands: Sequence[str], step: Step
) -> str | None:
    """A sum over parts of its labels, written with slices; None where conditions are others."""
    slices = _sliced(words, op.conditions, 1 + max(label for pattern in op.patterns for label in pattern))
    if slices is None or any(slices[label] != ":" for label in op.out) or not (contract or len(operands) == 1):
        return None
    cut = [
        f"{text}[{', '.join(slices[label] for label in pattern)}]" if pattern else text
        for text, pattern in zip(operands, op.patterns, strict=True)
    ]
    if contract:
        return contract.write(words, step, cut)
    return _total(words, op, cut[0])


def _triangle(words: Words, conditions: Sequence[IndexCondition], axes: Sequence[Domain]) -> str | None:
    """One bound `i − j + c ≥ 0` of two axes of one small size, as a mask; None for others.

    About half of the positions meet it at every size: to leave the others out is worth no boxes while it is small.
    """
    (condition, *others) = conditions
    used = [label for label, size in enumerate(condition.steps) if size]
    steps = sorted(condition.steps[label] for label in used)
    if others or condition.test != ">= 0" or steps != [-1, 1] or condition.start.symbols:
        return None
    form, *more = {extent_form(axes[label]) for label in used}
    if more or not words.planned.keys() >= set(form.symbols) or form.evaluate(words.planned) ** 2 > BOX_ELEMENTS:
        return None
    above, below = (tuple(max(0, sign * size) for size in condition.steps) for sign in (1, -1))
    return f"{words.grid(above, condition.start, axes)} >= {words.grid(below, Linear(), axes)}"


def _triangular_product(
    words: Words, op: MaskedContract, contract: Contract | None, operands: Sequence[str], step: Step
) -> str | None:
    """A product of which an operand, or the result, is a triangle; None for others."""
    (host, *others) = op.hosts
    patterns = (*op.patterns, op.out)
    labels = {label for condition in op.conditions for label, size in enumerate(condition.steps) if size}
    if others or not labels <= set(patterns[host]):
        return None
    condition = replace(op.conditions[0], steps=tuple(op.conditions[0].steps[label] for label in patterns[host]))
    axes = step.axes if host == len(op.patterns) else words.axes[step.operands[host]]
    holds = _triangle(words, [condition], axes)
    if holds is None:
        return None
    np, product = words.dialect.np, contract.write(words, step, operands) if contract else None
    if len(operands) == 1:
        if len(op.patterns[0]) == len(op.out):
            return None
        if host == 0:
            return _total(words, op, f"{np}.where({holds}, {operands[0]}, 0)")
        return f"{np}.where({holds}, {_total(words, op, operands[0])}, 0)"
    if host == len(operands):
        return f"{np}.where({holds}, {product}, 0)" if product else None
    function = _box_function(words, op, np, contract.write(words, step, ("a", "b")) if contract else None)
    masks = tuple_text([holds if n == host else "None" for n in range(len(operands))])
    return f"_masked_product({function}, {tuple_text(operands)}, {masks})"


def _box_product(words: Words, op: MaskedContract, operands: Sequence[str], function: str, step: Step) -> str:
    """The expression of a product within conditions, of which `function` is the one of a box."""
    domains = {
        label: domain
        for pattern, m in zip(op.patterns, step.operands, strict=True)
        for label, domain in zip(pattern, words.axes[m], strict=True)
    }
    sizes = tuple_text([words.extent(domains[label]) for label in sorted(domains)])
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


def _box_function(words: Words, op: MaskedContract, np: str, product: str | None) -> str:
    """The product of one box as a function: `product`, where it is given, or one in einsum's notation."""
    if len(op.patterns) == 1:
        return f"lambda a: {_total(words, op, 'a')}"
    if product:
        return f"lambda a, b: {product}"
    contract = Contract(op.patterns[0], op.patterns[1], op.out)
    optimal = ", optimize=True" if np == "np" and contract.left_only and contract.right_only else ""
    return f'lambda a, b: {np}.einsum("{_subscripts(op)}", a, b{optimal})'


def _subscripts(op: MaskedContract) -> str:
    """The product in einsum's notation."""
    *inputs, out = ("".join(LETTERS[label] for label in pattern) for pattern in (*op.patterns, op.out))
    return f"{','.join(inputs)}->{out}"


def _simple(op: MaskedContract) -> Contract | None:
    """The product as one that is written for blocks of every size, without reshapes; None for others."""
    if len(op.patterns) != 2:
        return None
    contract = Contract(*op.patterns, op.out)
    whole = all(label in (*op.patterns[0], *op.out) for label in op.patterns[1])
    groups = (contract.batch, contract.left_only, contract.right_only, contract.summed)
    return contract if whole and max(map(len, groups[1:])) < 2 and contract.kernel != "einsum" else None


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
