"""How much memory is free, and sizes in words.

    in_words(8 * 10**12)     # before: bytes
    '7.28 TiB'               # after: three digits

Invariant: nothing here allocates.
"""

from __future__ import annotations

import os

from combdiff.errors import MemoryLimitError

SMALL = 1 << 26  # bytes that are not worth asking how much memory is free
BY_STRUCTURE = "use .compressed() or .solve(…), which keep to its structure, or hvp for products with it"


def available() -> int | None:
    """Bytes that can be allocated without swapping, None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def in_words(size: float) -> str:
    """A number of bytes with a unit."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min(max(int(size).bit_length() - 1, 0) // 10, len(units) - 1)
    scaled = size / 1024**power
    return f"{scaled:.0f} {units[power]}" if scaled >= 100 else f"{scaled:.3g} {units[power]}"


def refuse_beyond(needed: int, what: str, hint: str = BY_STRUCTURE) -> None:
    """Raise MemoryLimitError if more bytes are needed than are free, for `what` takes them."""
    if needed < SMALL or (held := available()) is None or needed <= held:
        return
    raise MemoryLimitError(f"{what} takes {in_words(needed)}, but {in_words(held)} of memory are free", hint=hint)
