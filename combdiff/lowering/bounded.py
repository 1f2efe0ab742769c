"""The helper of emitted source for sums up to a bound.

    _running(x, 0, -1, np.arange(3))      x[0], x[0] + x[1], x[0] + x[1] + x[2]

Invariant: it never writes to its argument, and never fails, whatever the sizes are.
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


def running(np: str) -> str:
    """The helper in the words of a library."""
    text = RUNNING.format(np=np, device=", device=array.device" if np == "torch" else "")
    return text.replace("torch.flip(array, axis)", "torch.flip(array, (axis,))")
