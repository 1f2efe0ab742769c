"""The changes of summation indices that their domains allow, one for each way to make the sum plain.

    Σ_k u[k + 2] v[k − 1]    k := k − 2  →  Σ_k u[k] v[k − 3]        k := k + 1  →  Σ_k u[k + 3] v[k]
                             and the two with k := −k
    Σ_i x[n − 1 − i] y[n − 1 − i]                    i := n − 1 − i  →  Σ_i x[i] y[i]

A Symmetric index may be negated, and one that counts from 0 on may count down. Indices that count modulo one cycle
may be changed by any unimodular integer matrix and any shift. So the forms that read axes of that cycle can be made
plain, as many at once as are independent: bare indices where their matrix is unimodular, otherwise its Hermite normal
form, as in Σ_k u[2k] v[2k + 1]. Every choice of such forms gives one changed sum; of these the plainest are given.
Indices that no form holds together, as those of three cells of a mesh, are changed each on its own.

Invariant: sums that are equal up to such changes give equal sets of changed sums, up to names, where there are not
too many to be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice, permutations, product
from math import comb, factorial, prod

from combdiff.ir import (
    Affine,
    Apply,
    Coordinate,
    Cyclic,
    Delta,
    Indicator,
    Range,
    Space,
    Sum,
    Symmetric,
    Term,
    Unequal,
    Var,
    affine,
    affine_parts,
    counts_modulo,
    from_the_end,
    remembered,
    substitute,
    subterms,
    type_of,
)
from combdiff.polyhedra import hermite, smith

MOST_MOVES = 128  # changed sums that are given for one Σ
MOST_CHANGES = 1024  # that are compared

Change = dict[Var, Term]


def moves(term: Sum) -> Iterator[Sum]:
    """The plainest of the sums that a change of summation indices makes of one; itself where there is no change."""
    plainest = [_plainest(term.body, linked) for linked in _linked(term)]
    if prod(map(len, plainest)) > MOST_CHANGES:
        plainest = [changes[:1] for changes in plainest]
    for changes in islice(product(*plainest), MOST_MOVES):
        together = {index: form for change in changes for index, form in change.items()}
        yield Sum(term.indices, substitute(term.body, together))


def _linked(term: Sum) -> list[list[Var]]:
    """The indices that may be changed, together where a form holds several: only together are they plain or not."""
    free = [
        index
        for index in term.indices
        if _may_count_down(index, term.body) or (isinstance(index.type, Cyclic) and counts_modulo(index, term.body))
    ]
    linked = [[index] for index in free]
    for node in subterms(term.body):
        if isinstance(node, Affine | Delta):
            held = [group for group in linked if not node.free.isdisjoint(group)]
            if len(held) > 1:
                linked = [group for group in linked if group not in held] + [[i for group in held for i in group]]
    return linked


def _plainest(body: Term, indices: list[Var]) -> list[Change]:
    """The changes of linked indices that make a sum plainest: some are counted down, and each cycle then changed."""
    cycles: dict[Cyclic, list[Var]] = {}
    for index in indices:
        if isinstance(index.type, Cyclic):
            cycles.setdefault(index.type, []).append(index)
    found = list(_reflections([index for index in indices if not isinstance(index.type, Cyclic)]))
    for cycle, around in cycles.items():
        most = MOST_CHANGES // len(found)
        found = [change | more for change in found for more in _changes(substitute(body, change), cycle, around, most)]
    weights = [_weight(substitute(body, change)) for change in found]
    least = min(weights)
    return [change for change, weight in zip(found, weights, strict=True) if weight == least]


def _may_count_down(index: Var, body: Term) -> bool:
    """Whether a sum may become plainer, or be another's equal, with an index counted from the last to the first."""
    if not isinstance(index.type, Range):
        return isinstance(index.type, Symmetric)
    is_bare = all(index not in node.children for node in subterms(body) if isinstance(node, Affine))
    return not is_bare and _weight(substitute(body, {index: _reflected(index)})) <= _weight(body)


def _reflected(index: Var) -> Term:
    """The index counted from the last to the first of its domain."""
    return from_the_end(index) if isinstance(index.type, Range) else affine([(index, -1)])


def _reflections(indices: list[Var]) -> Iterator[Change]:
    """Every choice of indices that are counted from the last to the first; none of them where there are too many."""
    turned = indices if 2 ** len(indices) <= MOST_CHANGES else []
    for signs in product((1, -1), repeat=len(turned)):
        yield {index: _reflected(index) for index, sign in zip(turned, signs, strict=True) if sign < 0}


def _changes(body: Term, cycle: Cyclic, indices: list[Var], most: int) -> Iterator[Change]:
    """For each choice of independent forms, with either sign, the change that makes them triangular.

    Only choices that come nearest to bare indices count: those of the least determinant, which no change alters.
    Where it is 1 the order of the forms does not matter, since names do not; otherwise every order counts. Where there
    are more than `most` nothing is changed: Σ_{r,k,l,…} of z[2k − r, k] z[2l − r, l] … has them in millions.
    """
    forms = {form: _coefficients(form, indices) for form in _forms(body, cycle, indices)}
    rank = smith(list(forms.values()), len(indices)).rank
    if comb(len(forms), rank) > most:
        yield {}
        return
    dets = {choice: _determinant([forms[form] for form in choice]) for choice in combinations(forms, rank)}
    least = min(det for det in dets.values() if det)
    choices = [choice for choice, det in dets.items() if det == least]
    if len(choices) * 2**rank * (factorial(rank) if least > 1 else 1) > most:
        yield {}
        return
    for choice in choices:
        for order in permutations(choice) if least > 1 else [choice]:
            for signs in product((1, -1), repeat=rank):
                yield _triangular([affine([(form, s)]) for form, s in zip(order, signs, strict=True)], indices)


def _triangular(forms: list[Term], indices: list[Var]) -> Change:
    """The change k = V (k' + s) that takes forms A k + c to the normal form H k' of A·V, and c to its remainders."""
    normal, transform = hermite([_coefficients(form, indices) for form in forms], len(indices))
    shifted: list[Term] = [*indices]
    for t, (form, row) in enumerate(zip(forms, normal, strict=True)):
        rest = affine([(form, 1), *((k, -c) for k, c in zip(indices, _coefficients(form, indices), strict=True))])
        parts, offset = affine_parts(affine([(rest, 1), *zip(shifted[:t], row[:t], strict=True)]))
        less = [(v, -(c // row[t])) for v, c in parts if v not in indices]
        shifted[t] = affine([(indices[t], 1), *less], -(offset // row[t]))
    return {index: affine(list(zip(shifted, row, strict=True))) for index, row in zip(indices, transform, strict=True)}


def _determinant(rows: list[tuple[int, ...]]) -> int:
    """The product of the diagonal of the Smith normal form: 0 for rows that depend on each other."""
    form = smith(rows, 0) if not rows else smith(rows)
    return prod(form.S[t][t] for t in range(len(rows)))


def _forms(body: Term, cycle: Cyclic, indices: list[Var]) -> list[Term]:
    """The index forms that read axes of a cycle and mention the indices, one of each and its negative.

    Not those with an index that is bound in the body: it means nothing outside of its sum.
    """
    found: dict[Term, None] = {}
    for node in subterms(body):
        read: list[Term] = []  # an index read from a tensor is none of these forms
        if isinstance(node, Apply) and isinstance(space := type_of(node.function), Space):
            axes = zip(node.arguments, space.axes, strict=True)
            read = [a for a, axis in axes if axis == cycle and isinstance(a, Var | Affine)]
        elif isinstance(node, Delta) and node.domain == cycle and not node.lookup:
            read = [affine([(node.left, 1), (node.right, -1)])]
        elif isinstance(node, Unequal) and node.domain == cycle:
            read = [node.form]
        for form in read:
            inside = form.free <= body.free
            if inside and not form.free.isdisjoint(indices) and affine([(form, -1)]) not in found:
                found[form] = None
    return list(found)


def _coefficients(form: Term, indices: list[Var]) -> tuple[int, ...]:
    coefficients = dict(affine_parts(form)[0])
    return tuple(int(coefficients.get(index, 0)) for index in indices)


@remembered
def _weight(term: Term) -> int:
    """How much there is in the index forms of a term, each as often as it is written: symmetries do not change it."""
    forms = term.arguments if isinstance(term, Apply) else ()
    forms = term.children if isinstance(term, Coordinate | Delta | Indicator | Unequal) else forms
    own = sum(_size(form) for form in forms if isinstance(form, Affine))
    return own + sum(_weight(child) for child in term.children if not isinstance(child, Affine))


def _size(form: Affine) -> int:
    """0 for a bare index and its negative, which symmetries may exchange; a number counts by its digits."""
    parts, offset = affine_parts(form)
    return sum(abs(int(c)) for _, c in parts) - 1 + (len(str(abs(offset))) if offset else 0)
