"""Dense derivatives of tensors: forward, reverse or cross-country.

    reverse        pullbacks of the unit cotangents (i ↦ δ(i, o)), from the result to the variables
    forward        pushforwards of the unit tangents (j ↦ δ(j, d)), from the variables to the result
    cross-country  products of the derivatives of single bindings, the cheapest first (see `elimination`)

    f = (A, x) ↦ i ↦ Σ_j A[i,j] sin(x[j])            # before
    ∂f/∂x = (A, x) ↦ (a, d) ↦ A[a,d] cos(x[d])       # after

Invariant: a block's axes are those of the result, then those of the variable of differentiation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from combdiff.differentiation.cross_country import eliminate
from combdiff.differentiation.pullback import pull, push
from combdiff.differentiation.wirtinger import HALF, WirtingerMap, by_pullback, by_pushforward, unit
from combdiff.errors import DifferentiationError, shown
from combdiff.ir import (
    ONE,
    Action,
    Names,
    Space,
    Term,
    Tuple,
    Var,
    apply,
    average,
    bind_heavy,
    conj,
    conjugating_action,
    function,
    image_under,
    is_complex,
    lambda_,
    let,
    mean_of,
    mul,
    on_axes,
    plain_subgroup,
    split,
    type_of,
)
from combdiff.records import dataclass

MODES = ("forward", "reverse", "cross-country")
Bindings = list[tuple[Var, Term]]


def modes_of(mode: str) -> tuple[str, ...]:
    """The modes to try for a mode by name: itself, or all of them for "auto"."""
    if not isinstance(mode, str) or mode not in ("auto", *MODES):
        known = ", ".join(f'"{name}"' for name in ("auto", *MODES))
        raise DifferentiationError(f"unknown mode {shown(mode)}", hint=f"use one of {known}")
    return MODES if mode == "auto" else (mode,)


@dataclass(frozen=True)
class DerivativeBlock:
    """A derivative by one variable at result indices `at` and indices `own` of the variable.

    `bindings` are to follow those of the program; the antiholomorphic part is 0 unless the variable is complex.
    """

    at: tuple[Var, ...]
    own: tuple[Var, ...]
    bindings: Bindings
    map: WirtingerMap


def differentiate(body: Term, point: Var, mode: str, names: Names, letters: tuple[str, str]) -> DerivativeBlock:
    """∂body/∂point of a let program, in one of the MODES; `letters` name the indices of result and point."""
    at = names.indices(_space(split(body)[1]).axes, letters[0])
    own = names.indices(_space(point).axes, letters[1])
    if mode == "cross-country":
        bindings, map_ = eliminate(body, point, at, own, names)
        if not is_complex(point) and not is_complex(split(body)[1]) and is_complex(map_.holomorphic):
            map_ = WirtingerMap(function("real", map_.holomorphic))
        return DerivativeBlock(at, own, bindings, map_)

    def pulled(size: Term) -> Term:
        cotangent = unit(names, _space(split(body)[1]), at, size)
        backward, (result,) = pull(body, (point,), cotangent, names)
        return let(backward, apply(result, own))

    def pushed(size: Term) -> Term:
        tangent = unit(names, _space(point), own, size)
        forward, result = push(body, {point: tangent}, names)
        return let(forward, apply(result, at))

    if mode == "forward":
        return DerivativeBlock(at, own, [], by_pushforward(pushed, is_complex(point), names))
    return DerivativeBlock(at, own, [], by_pullback(pulled, is_complex(point), is_complex(split(body)[1]), names))


def jacobian_block(body: Term, point: Var, mode: str, names: Names) -> tuple[Bindings, Term]:
    """∂body/∂point with the bindings it needs; the pair (∂/∂z, ∂/∂z̄) for a complex point.

    By a point with symmetries it is the derivative along its Space, J P.
    """
    block = differentiate(body, point, mode, names, ("abcmn", "defgh"))
    parts = (block.map.holomorphic, block.map.antiholomorphic) if is_complex(point) else (block.map.holomorphic,)
    terms = [lambda_((*block.at, *block.own), part) for part in parts]
    bindings, group = list(block.bindings), [on_axes(action, len(block.at)) for action in _space(point).group]
    if turned := conjugating_action(group):  # dz̄ is one of the dz: ∂/∂z and ∂/∂z̄ are one but for the order of axes
        turned = replace(turned, conjugate=False)
        one, two = (_named(term, "t", names, bindings) for term in terms)
        terms = [_met(one, two, turned, names), _met(two, one, turned, names)]
    terms = [average(term, plain_subgroup(group), "t", names, bindings) for term in terms]
    return bindings, Tuple(tuple(terms)) if is_complex(point) else terms[0]


def _met(one: Var, other: Var, action: Action, names: Names, conjugated: bool = False) -> Term:
    """The mean of a tensor and the image of another, which may be conjugated."""
    indices = names.indices(_space(one).axes)
    return lambda_(
        indices, mean_of([apply(one, indices), image_under(other, indices, replace(action, conjugate=conjugated))])
    )


def hessian_block(gradient: Term, row: Var, column: Var, mode: str, names: Names) -> tuple[Bindings, tuple[Term, ...]]:
    """The block of second derivatives by `row`, then `column`, from the gradient by `column`; axes of row first.

    With a complex variable among them it is the pair (∂²f/∂zᵢ∂z̄ⱼ, ∂²f/∂zᵢ∂zⱼ). The gradient g is 2 ∂f/∂z̄ for a
    complex column, so the pair is (∂gⱼ/∂zᵢ / 2, conj(∂gⱼ/∂z̄ᵢ) / 2); a real variable is its own conjugate. The gradient
    is that of a function of all tensors, and the block is projected on both sides.
    """
    block = differentiate(gradient, row, mode, names, ("defgh", "abcmn"))
    bindings = list(block.bindings)
    parts = [lambda_((*block.own, *block.at), part) for part in _second(block.map, row, column)]
    rows, columns = _space(row), _space(column)
    by_row = [on_axes(action, 0, columns.order) for action in rows.group]
    by_column = [on_axes(action, rows.order) for action in columns.group]
    for group, conjugated in ((by_row, True), (by_column, False)):
        if turned := conjugating_action(group):
            mixed, pure = (_named(part, "t", names, bindings) for part in parts)
            met = partial(_met, action=turned, names=names, conjugated=conjugated)
            parts = [met(mixed, pure), met(pure, mixed)]
    both = tuple(a.then(b) for a in plain_subgroup(by_row) for b in plain_subgroup(by_column))
    return bindings, tuple(average(part, both, "t", names, bindings) for part in parts)


def _second(map_: WirtingerMap, row: Var, column: Var) -> tuple[Term, ...]:
    """The parts of a block of second derivatives from the derivative of a gradient."""
    if not is_complex(column):
        return (map_.holomorphic, map_.holomorphic) if is_complex(row) else (map_.holomorphic,)
    second = map_.antiholomorphic if is_complex(row) else map_.holomorphic
    return mul(HALF, map_.holomorphic), mul(HALF, conj(second))


def fine_gradient(objective: Term, points: tuple[Var, ...]) -> Term:
    """The let program of the gradients by the points as the rules make it, every heavy part a binding of its own."""
    fine = bind_heavy(objective)
    backward, gradients = pull(fine, points, ONE, Names(fine, *points))
    return bind_heavy(let((*split(fine)[0], *backward), Tuple(tuple(gradients))))


def hessian_body(gradient: Term, points: tuple[Var, ...], mode: str) -> Term:
    """The second derivatives from the let program of the gradients by the points: a tuple of rows of blocks.

    Blocks below the diagonal mirror those above: ∂²f/∂v∂u = (∂²f/∂u∂v)ᵀ, conjugated for the part zz̄.
    """
    bindings, gradients = split(gradient)
    assert isinstance(gradients, Tuple)
    names, more, known = Names(gradient, *points), list(bindings), set(bindings)
    table: dict[tuple[Var, Var], tuple[Term, ...]] = {}
    for n, (column, by_column) in enumerate(zip(points, gradients.items, strict=True)):
        for row in points[: n + 1]:
            own, parts = hessian_block(let(bindings, by_column), row, column, mode, names)
            more += [binding for binding in own if binding not in known]
            known.update(own)
            if row is not column:
                parts = tuple(_named(part, f"H_{row.name}{column.name}", names, more) for part in parts)
                table[column, row] = _transposed(parts, _space(row).order, names)
            table[row, column] = parts
    return let(more, Tuple(tuple(Tuple(tuple(_block(table[r, c]) for c in points)) for r in points)))


def _block(parts: tuple[Term, ...]) -> Term:
    return parts[0] if len(parts) == 1 else Tuple(parts)


def _named(value: Term, name: str, names: Names, bindings: Bindings) -> Var:
    """A variable that is bound to the value."""
    space = _space(value)
    var = names.fresh(Var(name, Space(*space.axes, dtype=space.dtype)))
    bindings.append((var, value))
    return var


def _transposed(parts: tuple[Term, ...], rows: int, names: Names) -> tuple[Term, ...]:
    """The parts of a block with the axes of its row and its column exchanged."""
    found = []
    for n, part in enumerate(parts):
        indices = names.indices(_space(part).axes)
        value = apply(part, indices)
        found.append(lambda_((*indices[rows:], *indices[:rows]), conj(value) if len(parts) > 1 and not n else value))
    return tuple(found)


def _space(term: Term) -> Space:
    found = type_of(term)
    assert isinstance(found, Space)
    return found
