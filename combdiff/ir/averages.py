"""Projections onto Spaces with symmetries: the average of a tensor over the symmetries.

    P t = 1/|G| Σ_g g t        (d, e) ↦ ½ (t[d,e] + t[e,d])        t[d,e] = x[d] y[e]

P is the pullback of the inclusion of the Space into all tensors: it is applied where a cotangent arrives at a parameter
(theory, section 7). The tensor is bound, so that it is there once and its transposes are added.

Invariant: a projection of what lies in the Space already is itself; `averaged` finds what `average` made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from combdiff.ir.domains import Action, Space
from combdiff.ir.indices import Affine, affine
from combdiff.ir.substitution import Names, apply
from combdiff.ir.terms import MINUS_ONE, Add, Apply, Conj, Lambda, Mul, Term, Var, add, conj, lambda_, mul, number
from combdiff.ir.types import type_of

SymmetryGroup = tuple[Action, ...]
Bindings = list[tuple[Var, Term]]


def average(tensor: Term, group: SymmetryGroup, name: str, names: Names, bindings: Bindings) -> Term:
    """The average of a tensor over a group of symmetries of its axes; the tensor is bound under the name."""
    if len(group) == 1:
        return tensor
    space = type_of(tensor)
    assert isinstance(space, Space)
    indices = names.indices(space.axes)
    var = names.fresh(Var(name, Space(*space.axes, dtype=space.dtype)))
    bindings.append((var, tensor))
    return lambda_(indices, mean_of([image_under(var, indices, action) for action in group]))


def mean_of(terms: Sequence[Term]) -> Term:
    """The sum of terms over their number."""
    return mul(number(Fraction(1, len(terms))), add(*terms))


def image_under(tensor: Term, indices: Sequence[Var], action: Action) -> Term:
    """What an action makes of a tensor, at indices: sign · conj?(tensor[±indices in another order])."""
    value = apply(tensor, moved_indices(indices, action))
    value = conj(value) if action.conjugate else value
    return value if action.sign > 0 else mul(MINUS_ONE, value)


def moved_indices(indices: Sequence[Var], action: Action) -> tuple[Term, ...]:
    """The indices in the order, and with the signs, in which an action reads them."""
    pairs = zip(action.axes, action.negated, strict=True)
    return tuple(affine([(indices[a], -1)]) if negative else indices[a] for a, negative in pairs)


def on_axes(action: Action, before: int, after: int = 0) -> Action:
    """An action on some axes of a tensor that has more axes before and after them."""
    shifted = tuple(before + a for a in action.axes)
    behind = range(before + len(shifted), before + len(shifted) + after)
    negated = ((False,) * before, action.negated, (False,) * after)
    return Action((*range(before), *shifted, *behind), sum(negated, ()), action.sign, action.conjugate)


def plain_subgroup(group: Iterable[Action]) -> SymmetryGroup:
    """The symmetries that do not conjugate, a subgroup."""
    return tuple(action for action in group if not action.conjugate)


def conjugating_action(group: Iterable[Action]) -> Action | None:
    """A symmetry that conjugates, if there is one: the group is then the plain ones, and these after it."""
    return next((action for action in group if action.conjugate), None)


# --- reading averages -----------------------------------------------------------------------------------------------


def averaged(item: Term, definitions: Mapping[Var, Term]) -> tuple[Term, SymmetryGroup] | None:
    """The tensor that an item of a result is the average of, and the group; None for what is no average.

    The item may also be an access to a binding that is one, as a block that mirrors another is.
    """
    indices = item.parameters if isinstance(item, Lambda) else ()
    body = item.body if isinstance(item, Lambda) else item
    if isinstance(item, Var) and item in definitions:
        return averaged(definitions[item], definitions)
    if (whole := whole_read(body, indices)) and whole[0] in definitions:
        var, action = whole
        found = averaged(definitions[var], definitions)
        if found is None:
            return None
        tensor, group = found
        turned = tuple(action.then(g).then(action.inverse) for g in group)
        return lambda_(indices, image_under(tensor, indices, action)), turned
    reads = _reads(body, indices)
    tensors, group = {var for var, _ in reads}, tuple(action for _, action in reads)
    if len(tensors) != 1 or not tensors <= definitions.keys() or not _is_group(group):
        return None
    return lambda_(indices, apply(tensors.pop(), indices)), group


def _reads(body: Term, indices: Sequence[Var]) -> list[tuple[Var, Action]]:
    """The terms of a mean as accesses at all of the indices; none for what is no mean of such."""
    if not isinstance(body, Mul) or len(body.factors) != 2 or not isinstance(body.factors[1], Add):
        return []
    factor, sum_ = body.factors
    reads = [read for term in sum_.children if (read := whole_read(term, indices))]
    complete = len(reads) == len(sum_.children) and factor == number(Fraction(1, len(reads)))
    return reads if complete else []


def _is_group(actions: SymmetryGroup) -> bool:
    members = frozenset(actions)
    return len(members) == len(actions) and all(a.then(b) in members for a in actions for b in actions)


def whole_read(term: Term, indices: Sequence[Var]) -> tuple[Var, Action] | None:
    """The tensor and the action, where a term is an access, with a sign or conjugated, at all of the indices."""
    sign = 1
    if isinstance(term, Mul) and len(term.factors) == 2 and term.factors[0] is MINUS_ONE:
        sign, term = -1, term.factors[1]
    starred = isinstance(term, Conj)
    term = term.body if isinstance(term, Conj) else term
    tensor, arguments = (term.function, term.arguments) if isinstance(term, Apply) else (term, ())
    places = [_place(argument, indices) for argument in arguments]
    axes = [place for place, _ in places]
    if not isinstance(tensor, Var) or sorted(axes) != list(range(len(indices))):
        return None
    return tensor, Action(tuple(axes), tuple(negative for _, negative in places), sign, starred)


def _place(argument: Term, indices: Sequence[Var]) -> tuple[int, bool]:
    """The position of an index, or of its negative, among some; −1 where there is none."""
    if argument in indices:
        return list(indices).index(argument), False  # type: ignore[arg-type]
    if isinstance(argument, Affine) and len(argument.coefficients) == 1 and not argument.offset:
        ((var, coefficient),) = argument.coefficients
        if coefficient == -1 and var in indices:
            return list(indices).index(var), True
    return -1, False
