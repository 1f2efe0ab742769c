"""Memory limits: what a plan needs is known before it runs, and is kept within a limit or refused.

    fitted(plan, 2 * 10**9, 0, fused)     the plan, or the plan in blocks that needs at most 2·10⁹ bytes
    check_available(plan)                 raises where less memory is free than the plan needs

Counted are all arrays that a plan makes, results and temporary copies included, arguments not.

Invariant: nothing is allocated before a plan is known to fit.
"""

from __future__ import annotations

import numbers
import re

from combdiff.errors import ArgumentError, MemoryLimitError, shown
from combdiff.planning import Plan, available, checkpointed, cost, in_words, peak, sliced

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
MOST = 1 << 62  # bytes that a limit may be: no machine has as many
SMALL = 1 << 26  # bytes that are not worth asking how much memory is free


_LIMIT = re.compile(r"\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?)\s*([a-z]*)\s*", re.ASCII | re.IGNORECASE)


def parse_limit(limit: str | float) -> int:
    """A limit in bytes, from a number or a text such as "2GB", "512 MiB", "2e7". Raises ArgumentError for others."""
    bytes_ = _bytes(limit)
    if not 1 <= bytes_ <= MOST:
        raise ArgumentError(
            f"{shown(limit)} is no memory limit", hint='give bytes, or a text such as "500MB" or "2GiB"'
        )
    return int(bytes_)


def _bytes(limit: object) -> float:
    """The number of bytes that is meant; 0 for what is none."""
    if isinstance(limit, numbers.Real) and not isinstance(limit, bool):
        return min(limit, 2 * MOST) if limit == limit else 0  # type: ignore[return-value]
    found = _LIMIT.fullmatch(limit) if isinstance(limit, str) else None
    unit = _UNITS.get(found[2].upper()) if found else None
    return float(found[1]) * unit if found and unit else 0


def fitted(plan: Plan, limit: int, copies: int, fused: int) -> Plan:
    """The plan, in blocks where it must be, so that its peak and `copies` are at most `limit` bytes.

    `fused` is the peak of the same plan with its chains in blocks that fit the caches, which is known not to keep to
    the limit. Raises MemoryLimitError, naming the smallest limit that works.
    """
    found, least = sliced(plan, max(limit - copies, 0))
    least = min(least, fused)
    if found is None:  # blocks of one axis do no step twice, checkpoints do
        found, other = checkpointed(plan, max(limit - copies, 0))
        least = min(least, other)
    if found is None:
        raise MemoryLimitError(
            f"a memory limit of {in_words(limit)} is too small: {_sizes(plan)}the program needs "
            f"{in_words(fused + copies)}{_of_copies(copies)}, and in blocks {least + copies} bytes",
            hint=f"the smallest limit that works is memory_limit={least + copies}",
        )
    return found


def check_available(plan: Plan, copies: int = 0) -> None:
    """Raise MemoryLimitError where the plan, and copies of its arguments, need more memory than is free."""
    needed = peak(plan) + copies
    held = available() if needed > SMALL else None
    if held is not None and needed > held:
        largest = max(cost(plan), key=lambda spent: spent.bytes, default=None)
        made = "" if largest is None else f"; the largest array is made by step {largest.step}, {largest.operation}: "
        made += in_words(largest.bytes) if largest else ""
        raise MemoryLimitError(
            f"{_sizes(plan)}the program needs {in_words(needed)}{_of_copies(copies)}, but {in_words(held)} of "
            f"memory are free{made}",
            hint='give smaller arrays, or compile(memory_limit="…") to run it in blocks',
        )


def _of_copies(copies: int) -> str:
    """What of the memory is for arguments that repeat what they hold, or come in other element types than are taken."""
    which = "views such as np.broadcast_to, or another element type"
    return f" ({in_words(copies)} of it for copies of arguments: {which})" if copies else ""


def _sizes(plan: Plan) -> str:
    """At which sizes; nothing of a program that has no names for them."""
    named = ", ".join(f"{name} = {size}" for name, size in plan.given_sizes.items())
    return f"at {named} " if named else ""
