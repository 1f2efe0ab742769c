"""Arrays cut, joined and laid out anew: each is a reading of the old elements at affine indices of the new ones.

    x[1:]               (i) ↦ x[i + 1]                          i < n − 1
    concatenate(x, y)   (i) ↦ [i < m] x[i] + [i ≥ m] y[i − m]
    reshape(A, 6)       (i) ↦ Σ_{a,b} δ(i, 3a + b) A[a, b]      A of 2 × 3
    flip(x)             (i) ↦ x[n − 1 − i]

Sizes of results are sums of those of the operands, n − 1 or n + m. Where they are products or quotients, sizes must be
numbers.

Invariant: the result has the shape and the elements of NumPy's; what a condition excludes is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import prod

from combdiff.errors import IndexingError, TypeMismatchError, UnsupportedError, shown
from combdiff.ir import (
    MINUS_ONE,
    ZERO,
    Cyclic,
    Domain,
    Range,
    Size,
    Term,
    Var,
    add,
    affine,
    axes_of,
    base_name,
    delta,
    describe,
    equal_modulo,
    from_the_end,
    indicator,
    lambda_,
    mul,
    read_forwards,
    size_form,
    size_parts,
    size_sum,
    total,
)
from combdiff.tracing.arrays import FIRST, aligned, element, positions, tabulate, transpose
from combdiff.tracing.context import current, show_domain

Shape = tuple[Domain, ...]


def length(domain: Domain, what: str) -> int:
    """The number of indices of an axis. Raises UnsupportedError, saying what needs it, where it is only named."""
    if isinstance(domain, Range) and isinstance(domain.size, int):
        return domain.size
    raise UnsupportedError(
        f"{what} needs the number of elements along an axis that is {show_domain(domain)}",
        hint='declare the axis with a number, or write the elements with indices: cd.tensor(lambda i: x[i + 1], i="m")',
    )


def sliced(domain: Domain, key: slice, where: str) -> tuple[Domain, int, Term]:
    """What a slice leaves of an axis: the new axis, the step of the old index, and where it starts."""
    parts = (key.start, key.stop, key.step)
    if any(isinstance(part, bool) or not isinstance(part, int | None) for part in parts):
        raise IndexingError(f"{where} is read with {shown(key)}", hint="the parts of a slice are whole numbers")
    if key.step == 0:
        raise IndexingError(f"{where} is read with steps of 0")
    if isinstance(domain, Range) and not isinstance(domain.size, int):
        return _sliced_named(domain, key, where)
    found = range(*key.indices(length(domain, f"the slice of {where}")))
    return Range(len(found)), found.step, affine([], found.start)


def _sliced_named(domain: Range, key: slice, where: str) -> tuple[Domain, int, Term]:
    """What a slice leaves of an axis of named size n: n − 1 of x[1:], 3 of x[-3:], which a call refuses for n < 3."""
    step = 1 if key.step is None else key.step
    ends = (0, domain.size) if step > 0 else (size_sum((domain.size, 1), (-1, 1)), -1)
    start, stop = (
        end if part is None else part if part >= 0 else size_sum((domain.size, 1), (part, 1))
        for part, end in zip((key.start, key.stop), ends, strict=True)
    )
    sign = 1 if step > 0 else -1
    names, offset = size_parts(size_sum((stop, sign), (start, -sign)))
    if any(factor % step for factor in names.values()):
        raise UnsupportedError(
            f"{where} is read with steps of {step}, but {domain.size} by {abs(step)} has no name as a size",
            hint=f'declare the axis with a number, or as a multiple: "{abs(step)}*n"',
        )
    parts = [(name, factor // abs(step)) for name, factor in names.items()]
    left = size_sum(*parts, (-(-offset // abs(step)), 1))
    return Range(max(left, 0) if isinstance(left, int) else left), step, size_form(start)


def lengths(*addends: tuple[Domain | int, int], what: str) -> Range:
    """The axis with Σ factor · size indices. Raises UnsupportedError for domains that do not begin at 0."""
    return Range(size_sum(*((_size(domain, what), factor) for domain, factor in addends)))


def _size(domain: Domain | int, what: str) -> Size:
    if isinstance(domain, Range):
        return domain.size
    return domain if isinstance(domain, int) else length(domain, what)


def axis_of(tensor: Term, axis: object, what: str) -> int:
    """An axis as a number from 0 on. Raises TypeMismatchError where there is none."""
    order = len(axes_of(tensor))
    (found,) = positions((axis,), order)
    if not 0 <= found < order:
        raise TypeMismatchError(f"{what} is asked for along axis {shown(axis)} of {describe(tensor)} of order {order}")
    return found


def moved(tensor: Term, axis: int, form: Term, indices: Sequence[Term]) -> Term:
    """The element at the indices, but for that along one axis."""
    return element(tensor, (*indices[:axis], form, *indices[axis + 1 :]))


# --- one axis ------------------------------------------------------------------------------------------------------


def flip(tensor: Term, axis: object = None) -> Term:
    """The elements in opposite order, along all axes or those given."""
    shape = axes_of(tensor)
    chosen = range(len(shape)) if axis is None else positions(axis, len(shape))
    for one in chosen:
        axis_of(tensor, one, "a flip")
    indices = current("flip").fresh_indices(shape)
    forms = [_reflected(index) if n in chosen else index for n, index in enumerate(indices)]
    return lambda_(indices, element(tensor, forms))


def _reflected(index: Var) -> Term:
    """n − 1 − i."""
    if not isinstance(index.type, Range):
        raise UnsupportedError(f"a flip along the axis of {base_name(index)}", hint="write the index: x[-i]")
    return from_the_end(index)


def roll(tensor: Term, shift: int, axis: int) -> Term:
    """`x[i − shift]`, round the end; on a Cyclic axis that is what its indices mean."""
    shape = axes_of(tensor)
    if isinstance(shape[axis], Cyclic):
        indices = current("roll").fresh_indices(shape)
        return tabulate(indices, moved(tensor, axis, affine([(indices[axis], 1)], -shift), indices))
    return around(tensor, axis, -shift, lengths((shape[axis], 1), what="a roll").size)


def around(tensor: Term, axis: int, start: int, size: Size) -> Term:
    """`x[(i + start) mod n]` for `size` indices i: those elements of an axis from `start` on, around its end."""
    shape = axes_of(tensor)
    own = lengths((shape[axis], 1), what="reading around an axis").size
    *indices, place = current("a place").fresh_indices((*shape[:axis], Range(size), *shape[axis + 1 :], shape[axis]))
    found = equal_modulo(place, affine([(indices[axis], 1)], start), own)
    factors = read_forwards([found, moved(tensor, axis, place, indices)], 0)
    return tabulate(indices, total([place], mul(*factors)))


def repeated(tensor: Term, axis: int, count: int) -> Term:
    """`x[i // count]`: each element of an axis `count` times, one after the other."""
    shape = axes_of(tensor)
    whole = lengths((shape[axis], count), what="np.repeat")
    *indices, rest = current("np.repeat").fresh_indices((*shape[:axis], whole, *shape[axis + 1 :], Range(count)))
    condition = indicator(affine([(indices[axis], 1), (rest, -1)]), count)
    form = affine([(indices[axis], Fraction(1, count)), (rest, Fraction(-1, count))])
    return tabulate(indices, total([rest], mul(condition, moved(tensor, axis, form, indices))))


def part(tensor: Term, axis: int, start: int, size: Size) -> Term:
    """`size` elements along an axis from `start` on."""
    shape = axes_of(tensor)
    indices = current("a part").fresh_indices((*shape[:axis], Range(size), *shape[axis + 1 :]))
    return lambda_(indices, moved(tensor, axis, affine([(indices[axis], 1)], start), indices))


def differences(tensor: Term, axis: int) -> Term:
    """`x[i + 1] − x[i]`."""
    size = lengths((axes_of(tensor)[axis], 1), (-1, 1), what="a difference").size
    size = max(size, 0) if isinstance(size, int) else size
    later, earlier = part(tensor, axis, 1, size), part(tensor, axis, 0, size)
    indices = current("a difference").fresh_indices(axes_of(later))
    return tabulate(indices, add(element(later, indices), mul(MINUS_ONE, element(earlier, indices))))


def running(tensor: Term, axis: int) -> Term:
    """Σ_{j ≤ i} x[j]."""
    indices = current("a running sum").fresh_indices(axes_of(tensor))
    (inner,) = current("a running sum").fresh_indices([indices[axis].type])  # type: ignore[list-item]
    kept = mul(indicator(affine([(indices[axis], 1), (inner, -1)])), moved(tensor, axis, inner, indices))
    return tabulate(indices, total([inner], kept))


def padded(tensor: Term, widths: Sequence[tuple[int, int]], value: Term) -> Term:
    """The tensor between so many copies of a number before and after it along each axis."""
    shape = axes_of(tensor)
    sizes = [lengths((axis, 1), what="padding").size for axis in shape]
    new = [Range(size_sum((size, 1), (before + after, 1))) for size, (before, after) in zip(sizes, widths, strict=True)]
    indices = current("padding").fresh_indices(new)
    forms = [affine([(i, 1)], -before) for i, (before, _) in zip(indices, widths, strict=True)]
    inside = [_within(form, size) for form, size in zip(forms, sizes, strict=True)]
    body = mul(*inside, element(tensor, forms))
    if value is not ZERO:
        body = add(body, value, mul(MINUS_ONE, value, *inside))
    return tabulate(indices, body)


def _within(form: Term, size: Size) -> Term:
    """1 where 0 ≤ form < size."""
    return mul(indicator(form), indicator(affine([(form, -1), (size_form(size), 1)], -1)))


# --- joining -------------------------------------------------------------------------------------------------------


def concatenate(tensors: Sequence[Term], axis: int, what: str) -> Term:
    """The tensors one after the other along an axis; the others must be equal."""
    first = axes_of(tensors[0])
    for other in tensors[1:]:
        found = axes_of(other)
        if len(found) != len(first) or any(
            a != b for n, (a, b) in enumerate(zip(first, found, strict=True)) if n != axis
        ):
            raise TypeMismatchError(
                f"{what} of {describe(tensors[0])} over ({', '.join(map(show_domain, first))}) and {describe(other)} "
                f"over ({', '.join(map(show_domain, found))}): axes other than {axis} must be equal"
            )
    sizes = [lengths((axes_of(tensor)[axis], 1), what=what).size for tensor in tensors]
    whole = size_sum(*((size, 1) for size in sizes))
    indices = current(what).fresh_indices((*first[:axis], Range(whole), *first[axis + 1 :]))
    if set(sizes) == {1} and len(sizes) > 1:  # as `stack`: δ's, which sums meet
        at = enumerate(tensors)
        chosen = [mul(delta(indices[axis], affine([], n)), moved(t, axis, affine([]), indices)) for n, t in at]
        return tabulate(indices, add(*chosen))
    pieces, start = [], Range(0).size
    for tensor, size in zip(tensors, sizes, strict=True):
        form, after = affine([(indices[axis], 1), (size_form(start), -1)]), size_sum((start, 1), (size, 1))
        guards = [indicator(form)] if start else []
        guards += [indicator(affine([(form, -1), (size_form(size), 1)], -1))] if after != whole else []
        pieces.append(mul(*guards, moved(tensor, axis, form, indices)))
        start = after
    return tabulate(indices, add(*pieces))


def stack(tensors: Sequence[Term], axis: int, what: str) -> Term:
    """The tensors side by side along a new axis."""
    shape = axes_of(tensors[0])
    for other in tensors[1:]:
        if axes_of(other) != shape:
            raise TypeMismatchError(f"{what} of {describe(tensors[0])} and {describe(other)}, whose axes differ")
    place = axis + len(shape) + 1 if axis < 0 else axis
    if not 0 <= place <= len(shape):
        raise TypeMismatchError(f"{what} along axis {axis} of tensors of order {len(shape)}")
    indices = current(what).fresh_indices((*shape[:place], Range(len(tensors)), *shape[place:]))
    rest = (*indices[:place], *indices[place + 1 :])
    chosen = [mul(delta(indices[place], affine([], n)), element(t, rest)) for n, t in enumerate(tensors)]
    return tabulate(indices, add(*chosen))


# --- shapes --------------------------------------------------------------------------------------------------------


def expanded_dims(tensor: Term, axes: int | Iterable[int]) -> Term:
    """New axes of size 1 at these places of the result."""
    shape = iter(axes_of(tensor))
    asked = positions(axes, 0)
    order = len(axes_of(tensor)) + len(asked)
    places = {*positions(asked, order)}
    if len(places) != len(asked) or any(not 0 <= place < order for place in places):
        raise TypeMismatchError(f"new axes are asked for at {shown(tuple(asked))} of a tensor of order {order}")
    new = [Range(1) if n in places else next(shape) for n in range(order)]
    indices = current("new axes").fresh_indices(new)
    return lambda_(indices, element(tensor, [i for n, i in enumerate(indices) if n not in places]))


def squeezed(tensor: Term, axes: int | Iterable[int] | None) -> Term:
    """The tensor without axes of size 1, all or those given."""
    shape = axes_of(tensor)
    gone = [n for n, axis in enumerate(shape) if axis == Range(1)] if axes is None else positions(axes, len(shape))
    for n in gone:
        if not 0 <= n < len(shape) or shape[n] != Range(1):
            raise TypeMismatchError(f"axis {n} of {describe(tensor)} is taken away, but its size is not 1")
    indices = current("squeeze").fresh_indices(axis for n, axis in enumerate(shape) if n not in gone)
    left = iter(indices)
    return lambda_(indices, element(tensor, [FIRST if n in gone else next(left) for n in range(len(shape))]))


def broadcasted(tensor: Term, shape: Shape) -> Term:
    """The tensor repeated along axes to a shape, as NumPy aligns them."""
    own = axes_of(tensor)
    if len(own) > len(shape) or any(a not in (b, Range(1)) for a, b in zip(own[::-1], shape[::-1], strict=False)):
        raise TypeMismatchError(
            f"{describe(tensor)} over ({', '.join(map(show_domain, own))}) does not broadcast to "
            f"({', '.join(map(show_domain, shape))})"
        )
    indices = current("broadcast_to").fresh_indices(shape)
    return tabulate(indices, element(tensor, aligned(own, indices)))


def flattened(tensor: Term, what: str) -> Term:
    """All elements in a row, last index fastest. Raises UnsupportedError, saying what needs it, for named sizes."""
    return reshaped(tensor, [-1], f"{what} of all elements in a row")


def reshaped(tensor: Term, shape: Sequence[Domain | int], what: str = "reshape") -> Term:
    """The elements, last index fastest, under a new shape; −1 stands for what is left.

    Axes that stay are kept, so that those before and after them may have named sizes. Raises TypeMismatchError where
    the numbers of elements differ.
    """
    old = axes_of(tensor)
    new = _completed(tensor, old, shape, what)
    indices = current("reshape").fresh_indices(new)
    if Range(0) in old and Range(0) in new:
        return tabulate(indices, ZERO)
    groups = _groups(tensor, old, new)
    forms: list[Term] = [FIRST] * len(old)
    summed: list[Var] = []
    hits: list[Term] = []
    for left, right in groups:
        own, given = [old[n] for n in left], [indices[n] for n in right]
        if len(left) == 1 and len(right) == 1:
            forms[left[0]] = given[0]
        elif len(left) == 1:
            forms[left[0]] = _flat(given) if right else FIRST
        elif left:
            inner = current("reshape").fresh_indices(own)
            summed += inner
            hits.append(delta(_flat(given), _flat(inner), Range(prod(length(axis, "reshape") for axis in own))))
            for n, index in zip(left, inner, strict=True):
                forms[n] = index
    return tabulate(indices, total(summed, mul(*hits, element(tensor, forms))))


def _flat(indices: Sequence[Var]) -> Term:
    """The number of an element, last index fastest."""
    stride, parts = 1, list[tuple[Term, int]]()
    for index in reversed(indices):
        parts.append((index, stride))
        assert isinstance(index.type, Range)
        stride *= length(index.type, "reshape")
    return affine(parts)


def _completed(tensor: Term, old: Shape, shape: Sequence[Domain | int], what: str) -> Shape:
    """The new shape with −1 replaced by what is left."""
    unknown = [n for n, axis in enumerate(shape) if axis == -1]
    if len(unknown) > 1:
        raise TypeMismatchError(
            f"{describe(tensor)} is reshaped to {shown(tuple(shape))}: only one -1 can be worked out"
        )
    given: list[Domain] = [Range(axis) if isinstance(axis, int) else axis for axis in shape if axis != -1]
    if not unknown:
        return tuple(given)
    rest = list(old)
    sizes = 1
    for axis in given:
        if axis in rest and not (isinstance(axis, Range) and isinstance(axis.size, int)):
            rest.remove(axis)
        else:
            sizes *= length(axis, what)
    if len(rest) == 1 and sizes == 1:
        last: Domain = rest[0]
    else:
        last = Range(prod(length(axis, what) for axis in rest) // max(sizes, 1))
    given.insert(unknown[0], last)
    return tuple(given)


def _groups(tensor: Term, old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Runs of old axes and runs of new ones that hold as many elements each."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            groups.append(([i], [j]))
            i, j = i + 1, j + 1
            continue
        left: list[int] = []
        right: list[int] = []
        many = some = 1
        while not (left or right) or many != some:
            if (many <= some and i < len(old)) or j >= len(new):
                if i >= len(old):
                    break
                many *= length(old[i], "reshape")
                left.append(i)
                i += 1
            else:
                some *= length(new[j], "reshape")
                right.append(j)
                j += 1
        if many != some:
            raise TypeMismatchError(
                f"{describe(tensor)} over ({', '.join(map(show_domain, old))}) cannot be reshaped to "
                f"({', '.join(map(show_domain, new))}): the numbers of elements differ"
            )
        groups.append((left, right))
    return groups


# --- matrices ------------------------------------------------------------------------------------------------------


def diagonal(tensor: Term, offset: int, first: int, second: int) -> Term:
    """`A[i, i + offset]` along two axes; the new axis comes last."""
    shape = axes_of(tensor)
    rest = [n for n in range(len(shape)) if n not in (first, second)]
    if not offset and shape[first] == shape[second]:
        size: Domain = shape[first]
    else:
        size = _diagonal_size(shape[first], shape[second], offset)
    indices = current("a diagonal").fresh_indices((*(shape[n] for n in rest), size))
    forms: list[Term] = [FIRST] * len(shape)
    for n, index in zip(rest, indices, strict=False):
        forms[n] = index
    forms[first] = affine([(indices[-1], 1)], max(-offset, 0))
    forms[second] = affine([(indices[-1], 1)], max(offset, 0))
    return lambda_(indices, element(tensor, forms))


def trace(tensor: Term, offset: int, first: int, second: int) -> Term:
    """Σ_i A[i, i + offset] over two axes, of a rectangle too."""
    indices = current("a trace").fresh_indices(axes_of(tensor))
    on = delta(affine([(indices[first], 1)], offset), indices[second])
    kept = [index for n, index in enumerate(indices) if n not in (first, second)]
    return tabulate(kept, total([indices[first], indices[second]], mul(on, element(tensor, indices))))


def _diagonal_size(rows: Domain, columns: Domain, offset: int) -> Domain:
    """How many elements a diagonal has: of a square matrix of named size n, n less the offset."""
    if rows == columns:
        left = lengths((rows, 1), (-abs(offset), 1), what="a diagonal").size
        return Range(max(left, 0) if isinstance(left, int) else left)
    if not all(isinstance(axis, Range) and isinstance(axis.size, int) for axis in (rows, columns)):
        raise UnsupportedError(
            f"a diagonal over {show_domain(rows)} rows and {show_domain(columns)} columns has as many elements as the "
            "smaller of both, which has no name",
            hint='declare a number for both, or write the elements that you want: cd.tensor(lambda i: A[i, i], i="n")',
        )
    many, some = length(rows, "a diagonal"), length(columns, "a diagonal")
    return Range(max(min(many + min(offset, 0), some - max(offset, 0)), 0))


def on_diagonal(vector: Term, offset: int) -> Term:
    """The matrix with a vector along a diagonal."""
    (axis,) = axes_of(vector)
    size = axis if not offset else lengths((axis, 1), (abs(offset), 1), what="np.diag")
    row, column = current("np.diag").fresh_indices((size, size))
    place = row if offset >= 0 else column
    return tabulate((row, column), mul(delta(affine([(row, 1)], offset), column), element(vector, [place])))


def triangle(tensor: Term, offset: int, lower: bool) -> Term:
    """The matrix on and below its diagonal (`j ≤ i + offset`), or on and above it."""
    indices = current("a triangle").fresh_indices(axes_of(tensor))
    sign = 1 if lower else -1
    form = affine([(indices[-2], sign), (indices[-1], -sign)], sign * offset)
    return tabulate(indices, mul(indicator(form), element(tensor, indices)))


def rotated(tensor: Term, turns: int, first: int, second: int) -> Term:
    """A quarter turn, `turns` times, from the first axis towards the second."""
    exchanged = list(range(len(axes_of(tensor))))
    exchanged[first], exchanged[second] = second, first
    match turns % 4:
        case 0:
            return tensor
        case 1:
            return transpose(flip(tensor, second), exchanged)
        case 2:
            return flip(tensor, (first, second))
        case _:
            return flip(transpose(tensor, exchanged), second)
