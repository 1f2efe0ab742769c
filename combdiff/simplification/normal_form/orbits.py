"""Projections read term by term: the average over a group of a sum needs but one of the terms of each orbit.

    P (x[d] y[e] + x[e] y[d])  =  x[d] y[e] + x[e] y[d]              P (x[d] y[e] − x[e] y[d])  =  0
    P (v[d] v[e] + Σ_k B[d,k] C[k,e] + …)  =  v[d] v[e] + ½ (t[d,e] + t[e,d]),   t[d,e] = Σ_k B[d,k] C[k,e] + …

A term whose images under the group are all itself, by the canonical forms, stays; of terms that are images of one
another one is left, with the sum of their coefficients. Where two terms are left of the average they are written out.
Otherwise the terms that the same symmetries leave fixed make one tensor, which is bound, and its images are added.

Invariant: the value is the average of the tensor over the group.
"""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

from combdiff.ir import (
    MINUS_ONE,
    ONE,
    ZERO,
    Action,
    Lambda,
    Names,
    Number,
    Primitive,
    Space,
    Sum,
    SymmetryGroup,
    Term,
    Var,
    add,
    apply,
    average,
    factors_of,
    free_indices,
    holds_delta,
    image_under,
    is_call,
    lambda_,
    mean_of,
    mul,
    number,
    representatives,
    type_of,
)
from combdiff.records import dataclass
from combdiff.simplification.normal_form.canonical import canonical, form_key
from combdiff.simplification.normal_form.common_factors import factored
from combdiff.simplification.normal_form.contraction import normalise
from combdiff.simplification.normal_form.expansion import coefficient_of, weighted

Bindings = list[tuple[Var, Term]]
WRITTEN_OUT = 2  # terms of an average that are written one by one


def projected_by_terms(tensor: Term, group: SymmetryGroup, name: str, names: Names, bindings: Bindings) -> Term:
    """The average of a simplified tensor over a group; new bindings are added to those given."""
    space = type_of(tensor)
    assert isinstance(space, Space)
    if is_call(tensor):
        return average(tensor, group, name, names, bindings)
    indices = _plain_indices(tensor, space, names)
    found = _Orbits(group, indices, names)
    for coefficient, term in weighted(apply(tensor, indices)):
        found.take(coefficient, term)
    return lambda_(indices, found.sum(name, bindings))


def _plain_indices(tensor: Term, space: Space, names: Names) -> tuple[Var, ...]:
    """The indices of a tensor, without names of canonical forms."""
    if isinstance(tensor, Lambda) and not any(p.name.startswith("@") for p in tensor.parameters):
        return tensor.parameters
    return names.indices(space.axes)


@dataclass
class _Orbit:
    """A multiple of a term, the images of the term with their signs, and the symmetries that leave it as it is."""

    coefficient: Term
    term: Term
    images: dict[Term, int]
    stabiliser: frozenset[Action]

    @property
    def heavy(self) -> bool:
        """Whether a factor of the term is worth an array over as many indices as the term has."""
        wanted = free_indices(self.term)
        parts = (f for f in factors_of(self.term) if isinstance(f, Sum | Primitive))
        return len(self.images) > 1 and any(len(free_indices(f)) == len(wanted) for f in parts)

    @property
    def average(self) -> Term:
        """The images of the term, with their share of the coefficient."""
        if len(self.images) == 1:
            return mul(self.coefficient, self.term)
        share = number(Fraction(1, len(self.images)))
        return mul(self.coefficient, share, add(*(mul(Number(sign), form) for form, sign in self.images.items())))


@dataclass
class _Orbits:
    """Terms at some indices, one for each orbit of a group."""

    group: SymmetryGroup
    indices: tuple[Var, ...]
    names: Names
    orbits: list[_Orbit] = field(default_factory=list)
    _forms: dict[object, int] = field(default_factory=dict)

    def take(self, coefficient: Number, term: Term) -> None:
        """Add a multiple of a term, to the orbit of which it is a member if there is one."""
        multiple, form = self._form(term)
        for orbit in self.orbits:
            if form in orbit.images:
                more = mul(coefficient, multiple, Number(orbit.images[form]))
                orbit.coefficient = add(orbit.coefficient, more)
                return
        images = self._images(form)
        if len(images) == 1 and multiple in (ONE, MINUS_ONE):  # as it was written
            self.orbits.append(_Orbit(coefficient, term, {form: int(multiple.real)}, frozenset(self.group)))
        elif images:
            first, *_ = ordered = sorted(images, key=form_key)
            signs = {other: images[other] * images[first] for other in ordered}
            tensor = lambda_(self.indices, first)
            fixed = (action for action in self.group if self._image(tensor, action)[1] is first)
            share = mul(coefficient, multiple, Number(images[first]))
            self.orbits.append(_Orbit(share, first, signs, frozenset(fixed)))

    def _images(self, form: Term) -> dict[Term, int]:
        """The images of a canonical form with their signs; none where it is its own negative on the Space."""
        tensor = lambda_(self.indices, form)
        images: dict[Term, int] = {}
        for sign, other in (self._image(tensor, action) for action in self.group):
            if images.setdefault(other, sign) != sign:
                return {}
        return images

    def _image(self, tensor: Term, action: Action) -> tuple[int, Term]:
        factor, form = self._form(image_under(tensor, self.indices, action))
        return (-1, form) if factor is MINUS_ONE else (1, mul(factor, form))

    def _form(self, term: Term) -> tuple[Number, Term]:
        return coefficient_of(canonical(normalise(term, self.names), self._forms))

    def sum(self, name: str, bindings: Bindings) -> Term:
        """The average of all, with tensors bound of which several images are to be added."""
        left = [orbit for orbit in self.orbits if orbit.coefficient is not ZERO]
        few = sum(len(orbit.images) for orbit in left) <= WRITTEN_OUT
        written = [o for o in left if (few and not o.heavy) or len(o.images) == 1 or holds_delta(o.term)]
        alike: dict[frozenset[Action], list[Term]] = {}
        for orbit in left:
            if orbit not in written:
                alike.setdefault(orbit.stabiliser, []).append(mul(orbit.coefficient, orbit.term))
        bound = [self._bound(add(*terms), fixed, name, bindings) for fixed, terms in alike.items()]
        whole = factored(lambda_(self.indices, add(*(orbit.average for orbit in written))))
        return add(apply(whole, self.indices), *bound)

    def _bound(self, inner: Term, stabiliser: frozenset[Action], name: str, bindings: Bindings) -> Term:
        """The average of a term that some of the symmetries leave fixed over the others."""
        tensor = lambda_(self.indices, inner)
        space = type_of(tensor)
        assert isinstance(space, Space)
        var = self.names.fresh(Var(name, Space(*space.axes, dtype=space.dtype)))
        bindings.append((var, factored(tensor)))
        return mean_of([image_under(var, self.indices, action) for action in representatives(self.group, stabiliser)])
