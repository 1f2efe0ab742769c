"""What a call takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any


def measured(call: Callable[[], Any]) -> tuple[Any, int]:
    """The result of a call that has run before, and the most bytes it held."""
    call()
    tracemalloc.start()
    result = call()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return result, most
