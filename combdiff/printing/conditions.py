"""Index expressions and conditions on indices, as they are written.

    1·b + 1·k (b symmetric)       k + b
    d − k ≥ 0                     [d ≥ k]
    d − k ≥ 0 and 4 − d + k ≥ 0   [0 ≤ d - k ≤ 4]
    d − i + 1 ≡ 0 (mod 2)         [(d - i) mod 2 = 1]
    d − i ≠ 0                     [d ≠ i]
    d − i ≢ 0 (mod 3)             [d ≠ i], where an index is on that cycle; else [(d - i) mod 3 ≠ 0]
    δ(4, 1) around a cycle        [3 mod n = 0], as no index is on it
    δ(a[i], 1) around a cycle     [(a[i] - 1) mod n = 0], as 1 does not tell the cycle

Within an index expression positive parts come before negative ones; among each, indices in the order of the names
shown (those of symmetric domains last, since they are steps from another index), then sizes. The constant is last,
unless it saves a leading minus.

Invariant: a condition is written with whole numbers and the same truth value; nothing is rounded or dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from combdiff.ir import (
    Cyclic,
    Delta,
    Indicator,
    Real,
    Size,
    Symmetric,
    Term,
    Unequal,
    Var,
    Whole,
    add,
    affine_parts,
    as_integer,
    delta,
    negate,
    opposite,
    unequal,
)
from combdiff.printing.documents import Comparison, Doc, Literal, Modulo, Name, Scaled, Signed
from combdiff.printing.naming import Scope

Rational = int | Fraction
Form = tuple[dict[Var, Rational], Rational]  # coefficients and offset


def form_of(term: Term) -> Form:
    """An index term as coefficients and an offset."""
    parts, offset = affine_parts(term)
    return dict(parts), offset


def write_form(form: Form, scope: Scope) -> Doc:
    """An index expression as a document."""
    coefficients, offset = form
    ordered = sorted(coefficients, key=lambda v: (isinstance(v.type, Whole), isinstance(v.type, Symmetric), scope[v]))
    parts: list[tuple[bool, Doc]] = [(coefficients[v] < 0, _scaled(coefficients[v], Name(scope[v]))) for v in ordered]
    parts.sort(key=lambda part: part[0])
    if offset or not parts:
        first = offset > 0 and bool(parts) and parts[0][0]  # 4 - i, but i - 4 and 2i - j + 1
        parts.insert(0 if first else len(parts), (offset < 0, Literal(_magnitude(offset))))
    return parts[0][1] if len(parts) == 1 and not parts[0][0] else Signed(tuple(parts))


def _scaled(coefficient: Rational, name: Name) -> Doc:
    return name if coefficient in (1, -1) else Scaled(_magnitude(coefficient), name)


def _magnitude(value: Rational) -> Rational:
    return -value if value < 0 else value


def write_conditions(conditions: Iterable[Indicator | Unequal], scope: Scope) -> tuple[Comparison, ...]:
    """Conditions that all hold, each once; a lower and an upper bound of the same expression become one."""
    distinct = tuple(dict.fromkeys(conditions))
    indicators = [c for c in distinct if isinstance(c, Indicator)]
    apart = [c for c in distinct if isinstance(c, Unequal)]
    bounds = [form_of(c.form) for c in indicators if not c.modulus]
    written: list[Comparison] = []
    while bounds:
        first = bounds.pop(0)
        partner = next((other for other in bounds if _opposite(first, other)), None)
        if partner is None:
            written.append(_one_sided(first, scope))
        else:
            bounds.remove(partner)
            written.append(_between(first, partner, scope))
    written += [_one_sided(form_of(c.form), scope, ("≠", "≠")) for c in apart if tells_its_cycle(c)]
    written += [_around_cycle(c, "≠", scope) for c in apart if not tells_its_cycle(c)]
    return (*written, *(_congruence(c, scope) for c in indicators if c.modulus))


def _congruence(condition: Indicator, scope: Scope) -> Comparison:
    coefficients, offset = form_of(condition.form)
    rest = Modulo(write_form((coefficients, 0), scope), Literal(condition.modulus))
    return Comparison((rest, Literal(-offset % condition.modulus)), ("=",))


def tells_its_cycle(condition: Unequal) -> bool:
    """Whether the indices of `form ≠ 0` tell whether it is meant on a cycle."""
    return not isinstance(condition.domain, Cyclic) or unequal(condition.form) == condition


def congruence(equal: Delta, scope: Scope) -> Comparison | None:
    """A δ around a cycle whose indices do not tell the cycle, as a condition; None for others."""
    apart = opposite(equal) if isinstance(equal.domain, Cyclic) else None
    return None if not isinstance(apart, Unequal) or tells_its_cycle(apart) else _around_cycle(apart, "=", scope)


def around_cycle_unsaid(equal: Delta) -> tuple[Term, Size] | None:
    """What is 0 around a cycle where a δ holds of what an array holds and an index that does not tell the cycle."""
    if equal.lookup is None or not isinstance(equal.domain, Cyclic) or delta(equal.left, equal.right) == equal:
        return None
    index, value = equal.lookup
    return add(value, negate(as_integer(index))), equal.domain.size


def _around_cycle(condition: Unequal, sign: str, scope: Scope) -> Comparison:
    """Whether a form is 0 around the cycle on which the condition says that it is not."""
    assert isinstance(condition.domain, Cyclic)
    (coefficients, offset), size = form_of(condition.form), condition.domain.size
    offset = _magnitude(offset) if not coefficients else offset
    if isinstance(size, int):
        rest = Modulo(write_form((coefficients, 0), scope), Literal(size))
        return Comparison((rest, Literal(-offset % size)), (sign,))
    return zero_around(write_form((coefficients, offset), scope), size, sign)


def zero_around(form: Doc, size: Size, sign: str = "=") -> Comparison:
    """Whether what is written is 0 around a cycle of that size, or is not."""
    return Comparison((Modulo(form, Literal(size) if isinstance(size, int) else Name(size)), Literal(0)), (sign,))


def _split(form: Form) -> tuple[dict[Var, Rational], Form]:
    """The indices of a form, and its sizes with its offset."""
    coefficients, offset = form
    indices = {v: c for v, c in coefficients.items() if not isinstance(v.type, Whole)}
    return indices, ({v: c for v, c in coefficients.items() if v not in indices}, offset)


def _negated(form: Form) -> Form:
    return {v: -c for v, c in form[0].items()}, -form[1]


def _opposite(one: Form, other: Form) -> bool:
    """Whether two forms bound the same combination of indices from both sides."""
    indices = _split(one)[0]
    return bool(indices) and _split(_negated(other))[0] == indices


def _leads(indices: Iterable[Var], coefficients: dict[Var, Rational], scope: Scope) -> bool:
    """Whether the variable shown first has a positive coefficient."""
    return coefficients[min(indices, key=lambda v: scope[v])] > 0


def _between(one: Form, other: Form, scope: Scope) -> Comparison:
    """`lower ≤ indices ≤ upper` from `indices + a ≥ 0` and `b − indices ≥ 0`."""
    if not _leads(_split(one)[0], one[0], scope):
        one, other = other, one
    indices, below = _split(one)
    sizes, offset = _split(other)[1]
    strict = bool(sizes) and offset == -1 and _whole(indices)  # `≤ N − 1` is written `< N`
    upper = (sizes, 0 if strict else offset)
    sides = (write_form(_negated(below), scope), write_form((indices, 0), scope), write_form(upper, scope))
    return Comparison(sides, ("≤", "<" if strict else "≤"))


def _one_sided(form: Form, scope: Scope, signs: tuple[str, str] = ("≥", "≤")) -> Comparison:
    """A form compared with 0, the variable shown first on the left, and a lone constant on the right."""
    coefficients, offset = form
    positive = {v: c for v, c in coefficients.items() if c > 0}
    negative = {v: -c for v, c in coefficients.items() if c < 0}
    sign, turned = signs
    if not positive or (negative and not _leads(_indices_or_all(coefficients), coefficients, scope)):
        positive, negative, offset, sign = negative, positive, -offset, turned
    whole = sign != "≠" and _whole(coefficients)
    left, right, sign = _balanced(positive, negative, offset, sign, whole)
    return Comparison((write_form(left, scope), write_form(right, scope)), (sign,))


def _whole(variables: Iterable[Var]) -> bool:
    """Whether none of the variables lies on the real line, so that `> 0` means `≥ 1`."""
    return not any(isinstance(v.type, Real) for v in variables)


def _indices_or_all(coefficients: dict[Var, Rational]) -> Sequence[Var]:
    indices = [v for v in coefficients if not isinstance(v.type, Whole)]
    return indices or list(coefficients)


def _balanced(
    left: dict[Var, Rational], right: dict[Var, Rational], offset: Rational, sign: str, whole: bool
) -> tuple[Form, Form, str]:
    """`left + offset (≥ or ≤) right` with the offset where it is positive, `i - 1 ≥ j` as `i > j`."""
    if not right:
        return (left, 0), ({}, -offset), sign
    closes = -1 if sign == "≥" else 1
    if whole and offset == closes:
        return (left, 0), (right, 0), {"≥": ">", "≤": "<"}[sign]
    if offset > 0:
        return (left, offset), (right, 0), sign
    return (left, 0), (right, -offset), sign
