"""Helpers of emitted source for sums up to a bound, and windows laid out in a row.

    _running(x, 0, -1, np.arange(3))      x[0], x[0] + x[1], x[0] + x[1] + x[2]
    _fold(y, 3, 0, 9)                     the rows of y, of 3 elements each, one after the other

Invariant: a helper never writes to its argument, and never fails, whatever the sizes are.
"""

from __future__ import annotations

RUNNING = '''\
def _running(array, axis, sign, bound):
    """The sums of array over the positions l along an axis with sign·l + bound ≥ 0, for each bound in its place."""
    size = array.shape[axis]
    if sign > 0:
        array, bound = {np}.flip(array, axis), bound + (size - 1)
    none = {np}.zeros((*array.shape[:axis], 1, *array.shape[axis + 1 :]), dtype=array.dtype{device})
    sums = {np}.concatenate([none, {np}.cumsum(array, axis)], axis)
    return sums[(slice(None),) * axis + ({np}.clip(bound + 1, 0, size),)]
'''


NUMPY_FOLD = '''\
def _fold(array, stride, start, size):
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    if stride < 0:
        array, stride, start = {np}.flip(array, 0), -stride, start + stride * (array.shape[0] - 1)
    count, width, *rest = array.shape
    turns = max(1, -(-width // stride))
    rows = {np}.zeros((count + turns - 1, stride, *rest), array.dtype)
    for n in range(turns):
        part = array[:, n * stride : (n + 1) * stride]
        rows[n : n + count, : part.shape[1]] += part
    row = rows.reshape((-1, *rest))
    if start == 0 and size <= len(row):
        return row[:size]
    row, result = row[max(0, -start) : max(0, size - start)], {np}.zeros((size, *rest), array.dtype)
    result[max(0, start) : max(0, start) + len(row)] = row
    return result
'''


FOLD = '''\
def _fold(array, stride, start, size):
    """The sums of the elements (i, j, …) at stride·i + j + start along one axis of that size, for the first two."""
    if stride < 0:
        array, stride, start = {np}.flip(array, 0), -stride, start + stride * (array.shape[0] - 1)

    def placed(first):  # the columns from there on that lie side by side
        part = array[:, first : first + stride]
        count, width, *rest = part.shape
        if stride > width:
            gap = {np}.zeros((count, stride - width, *rest), dtype=array.dtype{device})
            part = {np}.concatenate([part, gap], 1)
        place = start + first
        row = part.reshape((count * stride, *rest))[max(0, -place) : max(0, size - place)]
        before = min(max(0, place), size)
        lengths = before, size - before - row.shape[0]
        ends = [{np}.zeros((length, *rest), dtype=array.dtype{device}) for length in lengths]
        return {np}.concatenate([ends[0], row, ends[1]], 0)

    total = placed(0)
    for first in range(stride, array.shape[1], stride):
        total = total + placed(first)
    return total
'''


_FLAT = """\
    places = da.clip(bound + 1, 0, size)
    found = sums[(slice(None),) * axis + (places.reshape(-1) if places.ndim else places,)]
    return found.reshape((*sums.shape[:axis], *places.shape, *sums.shape[axis + 1 :]))
"""  # an index of Dask has one axis at most


def running(np: str) -> str:
    """The helper in the words of a library."""
    text = RUNNING.format(np=np, device=", device=array.device" if np == "torch" else "")
    if np == "da":
        text = text[: text.index("    return ")] + _FLAT
    return text.replace("torch.flip(array, axis)", "torch.flip(array, (axis,))")


def fold_helper(np: str) -> str:
    """The helper in the words of a library."""
    if np in ("np", "cp"):
        return NUMPY_FOLD.format(np=np)
    text = FOLD.format(np=np, device=", device=array.device" if np == "torch" else "")
    return text.replace("torch.flip(array, 0)", "torch.flip(array, (0,))")
