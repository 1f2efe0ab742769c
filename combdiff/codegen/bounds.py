"""Bounds without masks: running sums, arrays and products kept where conditions hold.

    Σ_{j ≤ i} x[j]              Running on x: np.cumsum(x), read at i
    [i ≥ 1]·x[i]                Keep on x: zeros, and x[1:] written among them
    Σ_{j ≤ i} A[i, j]·x[j]      Within: products of blocks of A and of x

Invariant: an expression has the value of its step for arrays of every size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from combdiff.codegen.fragments import LETTERS, tuple_text
from combdiff.codegen.index_arrays import Words, grid
from combdiff.planning import Contract, IndexCondition, Mask, MaskedContract, PrefixSum, Step
from combdiff.polyhedra import Linear


def bounded(writer: Words, operation: PrefixSum | Mask, operand: str, step: Step) -> str:
    """The expression of a step that sums up to a bound, or keeps what meets conditions."""
    if isinstance(operation, PrefixSum):
        labels = step.axes[operation.axis : operation.axis + len(operation.steps)]
        bound = grid(writer, operation.steps, operation.start, labels, full=True)
        return f"_running({operand}, {operation.axis}, {operation.sign}, {bound})"
    if slices := sliced(writer, operation.conditions, len(step.axes)):
        return f"_part({operand}, {tuple_text(map(_call, slices))})"
    return f"_keep({operand}, {_conditions(writer, operation.conditions)[0]})"


def sliced(writer: Words, conditions: Sequence[IndexCondition], count: int) -> list[str] | None:
    """Slices along so many labels, where each condition is one bound of one label; None for others."""
    found = [":"] * count
    for condition in conditions:
        used = [label for label, size in enumerate(condition.steps) if size]
        if condition.test != ">= 0" or len(used) != 1 or found[used[0]] != ":":
            return None
        found[used[0]] = _slice(writer, condition.steps[used[0]], condition.start)
    return found


def _slice(writer: Words, step: int, start: Linear) -> str:
    """The positions t with `step·t + start ≥ 0` as a slice."""
    if abs(step) == 1:
        edge = start.scale(-1) if step > 0 else start + 1
        text = f"max(0, {writer.form(edge)})" if edge.symbols else str(max(0, edge.constant))
    elif step > 0:
        text = f"max(0, -(({writer.form(start)}) // {step}))"
    else:
        text = f"max(0, ({writer.form(start)}) // {-step} + 1)"
    return f"{text}:" if step > 0 else f":{text}"


def _call(text: str) -> str:
    """A slice as a value."""
    low, _, high = text.partition(":")
    return f"slice({low or None}, {high or None})"


class ProductWords(Words, Protocol):
    """What is asked of the writer of products."""

    def contract(self, op: Contract, operands: Sequence[str], step: Step) -> str:
        """The expression of a product of two arrays."""

    def as_kind(self, n: int, text: str, kind: type) -> str:
        """An operand with the element type of the result."""


def within_text(writer: ProductWords, op: MaskedContract, operands: Sequence[str], step: Step) -> str:
    """The expression of a product within conditions: of slices where these are enough, else box by box."""
    if not writer.dialect.mixes_kinds:
        pairs = zip(step.operands, operands, strict=True)
        operands = [writer.as_kind(m, text, step.kind) for m, text in pairs]
    contract = simple(op)
    if text := _sliced_product(writer, op, contract, operands, step):
        return text
    boxes = writer.dialect.boxes
    product = writer.contract(contract, ("a", "b"), step) if contract and boxes == "product" else None
    np = "np" if boxes == "chunk" else writer.dialect.np
    function = f'"{subscripts(op)}"' if boxes == "text" else box_function(op, np, product)
    return _box_product(writer, op, operands, function, step)


def _sliced_product(
    writer: ProductWords, op: MaskedContract, contract: Contract | None, operands: Sequence[str], step: Step
) -> str | None:
    """A sum over parts of its labels, written with slices; None where conditions are others."""
    slices = sliced(writer, op.conditions, 1 + max(label for pattern in op.patterns for label in pattern))
    if slices is None or any(slices[label] != ":" for label in op.out) or not (contract or len(operands) == 1):
        return None
    cut = [
        f"{text}[{', '.join(slices[label] for label in pattern)}]" if pattern else text
        for text, pattern in zip(operands, op.patterns, strict=True)
    ]
    if contract:
        return writer.contract(contract, cut, step)
    axes = [str(n) for n, label in enumerate(op.patterns[0]) if label not in op.out]
    return f"{cut[0]}.sum({'' if len(axes) == len(op.patterns[0]) else tuple_text(axes)})"


def _box_product(writer: Words, op: MaskedContract, operands: Sequence[str], function: str, step: Step) -> str:
    """The expression of a product within conditions, of which `function` is the one of a box."""
    domains = {
        label: domain
        for pattern, m in zip(op.patterns, step.operands, strict=True)
        for label, domain in zip(pattern, writer.plan.steps[m].axes, strict=True)
    }
    sizes = tuple_text([writer.extent(domains[label]) for label in sorted(domains)])
    texts, counts = _conditions(writer, op.conditions)
    hosts = [str(host) for host, count in zip(op.hosts, counts, strict=True) for _ in range(count)]
    patterns = tuple_text([tuple_text(map(str, pattern)) for pattern in op.patterns])
    arrays, out = tuple_text(operands), tuple_text(map(str, op.out))
    return f"_within({function}, {arrays}, {patterns}, {out}, {sizes}, {texts}, {tuple_text(hosts)})"


def box_function(op: MaskedContract, np: str, product: str | None) -> str:
    """The product of one box as a function: `product`, where it is given, or one in einsum's notation."""
    if len(op.patterns) == 1:
        axes = [str(n) for n, label in enumerate(op.patterns[0]) if label not in op.out]
        return f"lambda a: a.sum({tuple_text(axes)})" if axes else "lambda a: a"
    if product:
        return f"lambda a, b: {product}"
    contract = Contract(op.patterns[0], op.patterns[1], op.out)
    optimal = ", optimize=True" if np == "np" and contract.left_only and contract.right_only else ""
    return f'lambda a, b: {np}.einsum("{subscripts(op)}", a, b{optimal})'


def subscripts(op: MaskedContract) -> str:
    """The product in einsum's notation."""
    *inputs, out = ("".join(LETTERS[label] for label in pattern) for pattern in (*op.patterns, op.out))
    return f"{','.join(inputs)}->{out}"


def simple(op: MaskedContract) -> Contract | None:
    """The product as one that is written for blocks of every size, without reshapes; None for others."""
    if len(op.patterns) != 2:
        return None
    contract = Contract(*op.patterns, op.out)
    whole = all(label in (*op.patterns[0], *op.out) for label in op.patterns[1])
    groups = (contract.batch, contract.left_only, contract.right_only, contract.summed)
    return contract if whole and max(map(len, groups[1:])) < 2 and contract.kernel != "einsum" else None


def _modulus(writer: Words, condition: IndexCondition) -> str:
    """What a form is divided by, with a minus where it is to leave a rest; 0 for a bound, None for ≠ 0."""
    sign = -1 if condition.test == "indivisible" else 1
    return "None" if condition.test == "!= 0" else writer.form(condition.modulus.scale(sign))


def _conditions(writer: Words, conditions: Sequence[IndexCondition]) -> tuple[str, list[int]]:
    """Conditions as `(steps, start, modulus)`, and as how many each is told: an equation is two bounds."""
    texts, counts = [], []
    for condition in conditions:
        equation = condition.test == "== 0"
        for sign in (1, -1)[: 1 + equation]:
            steps = tuple_text([str(sign * step) for step in condition.steps])
            texts.append(f"({steps}, {writer.form(condition.start.scale(sign))}, {_modulus(writer, condition)})")
        counts.append(1 + equation)
    return tuple_text(texts), counts
