"""Values that read tensors at sums of indices alone: they are values at those sums, of which there are fewer.

    exp(x[i + k])                t[m] = exp(x[m])          read at i + k
    sin(b[j, i − 3 j] / y[j])    t[j,m] = sin(b[j,m] / y[j])    read at j and i − 3 j

What is read beyond an axis, where a condition around the value guards it, is not computed then. Where conditions stand
within the value, only forms are taken that lie inside of their axes.

Invariant: at every index the value is what it was, but where conditions around it make it 0; no more are computed.
"""

from __future__ import annotations

from math import prod

from combdiff.ir.domains import Cyclic, Domain, Range, Space
from combdiff.ir.indices import Affine, Delta, Indicator, Unequal, affine, affine_parts
from combdiff.ir.inlining import free_indices
from combdiff.ir.sizes import Size, size_parts, size_sum
from combdiff.ir.substitution import substitute, subterms
from combdiff.ir.terms import Apply, Term, Var
from combdiff.ir.types import is_domain, type_of


def at_read_forms(term: Term) -> tuple[Term, tuple[Var, ...], dict[Var, Term]]:
    """A value with indices for the forms at which it reads tensors, those indices, and where they stand in the term.

    Of a value that reads nothing so, or of which there would be no fewer, it is the value with its own indices.
    """
    own = free_indices(term)
    forms: dict[Var, Term] = {index: index for index in own}
    indices = own
    while found := _by_a_form(term, indices):
        term, index, form = found
        indices = free_indices(term)
        forms |= {index: substitute(form, forms)}
    return term, indices, {index: forms[index] for index in indices}


def _by_a_form(term: Term, indices: tuple[Var, ...]) -> tuple[Term, Var, Term] | None:
    """A value with an index for one form, that index, and the form; None where there is no form that helps."""
    if len(indices) < 2:
        return None
    guarded = {v for node in subterms(term) if isinstance(node, Delta | Indicator | Unequal) for v in node.free}
    for axis, form in _reads(term):
        parts, offset = affine_parts(form)
        used = [v for v, _ in parts if is_domain(v.type)]
        if len(used) < 2 or not {*used} <= {*indices}:  # of others, some are summed over inside
            continue
        for old, coefficient in parts:
            if old not in used or coefficient not in (1, -1):
                continue
            if not _covers(form, axis, old, inside=not guarded.isdisjoint(used)):
                continue
            new = Var(old.name, axis)  # in its place, so that no other name is taken
            others = [(v, -c * coefficient) for v, c in parts if v is not old]
            changed = substitute(term, {old: affine([(new, coefficient), *others], -offset * coefficient)})
            if _are_fewer(free_indices(changed), indices, whole=all(c in (1, -1) for _, c in parts)):
                return changed, new, form
    return None


def _reads(term: Term) -> dict[tuple[Domain, Affine], None]:
    """The forms at which tensors are read, and along which axes."""
    found: dict[tuple[Domain, Affine], None] = {}
    for node in subterms(term):
        space = type_of(node.function) if isinstance(node, Apply) else None
        if isinstance(node, Apply) and isinstance(space, Space):
            for axis, argument in zip(space.axes, node.arguments, strict=True):
                if isinstance(argument, Affine):
                    found[axis, argument] = None
    return found


def _covers(form: Affine, axis: Domain, old: Var, *, inside: bool) -> bool:
    """Whether a form takes all values along an axis, so that none is computed in vain; `inside`, no others, too."""
    if isinstance(axis, Cyclic):
        return old.type == axis
    parts = [(v.type, c) for v, c in form.coefficients if is_domain(v.type)]
    if not isinstance(axis, Range) or not all(isinstance(t, Range) for t, _ in parts) or len(parts) < len(form.free):
        return False
    last = [(size_sum((t.size, 1), (1, -1)), int(c)) for t, c in parts if isinstance(t, Range)]
    least = size_sum((int(form.offset), 1), *((size, c) for size, c in last if c < 0))
    beyond = size_sum((int(form.offset), 1), *((size, c) for size, c in last if c > 0), (axis.size, -1), (1, 1))
    if inside:
        return least == 0 and beyond == 0
    return _is_nonnegative(size_sum((least, -1))) and _is_nonnegative(beyond)


def _is_nonnegative(number: Size) -> bool:
    """Whether a number that is a sum of sizes, each one or more, is not negative."""
    names, offset = size_parts(number)
    return all(c >= 0 for c in names.values()) and offset + sum(names.values()) >= 0


def _are_fewer(indices: tuple[Var, ...], before: tuple[Var, ...], *, whole: bool) -> bool:
    """Whether there are fewer values at some indices than at those before; of named sizes, where forms are `whole`."""
    sizes, old = ([getattr(v.type, "size", "") for v in each] for each in (indices, before))
    if all(isinstance(size, int) for size in (*sizes, *old)):
        return prod(map(int, sizes)) < prod(map(int, old))
    return whole and len(sizes) < len(old)
