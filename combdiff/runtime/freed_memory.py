"""Memory of arrays that are freed, kept for those that are made next.

    t = x * y;  del t;  s = x + y       s where t was, in pages that the process has, not in new ones

The GNU C library gives a freed array of more than 128 KB back to the system, and what lies free at the end of the
heap. The system clears each page anew for the next array, which takes longer than what plans compute in it: half of
the time of a plan with arrays of a megabyte. The library learns from what it sees freed (mallopt(3), on the dynamic
threshold): once that was a block of some size, it keeps others up to that size, and twice as much in all.

Invariant: nothing is written, and no page of the block is ever in use; limits of the user's own stay as they are.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

BLOCK = 31 << 20  # bytes: the library learns from blocks of up to 32 MB


@cache
def keep_freed_memory() -> None:
    """Let the C library keep freed arrays of up to 31 MB, 62 MB in all; others than the GNU one do what they did."""
    with suppress(AttributeError, OSError, TypeError):  # systems without this library, or without its names
        library = ctypes.CDLL(None)
        library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
        library.free(library.malloc(BLOCK))
