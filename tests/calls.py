"""How many functions of Python are called meanwhile: a cost that no clock tells, the same on each machine."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any


class TooManyCalls(Exception):
    """More functions were called than were to be."""


class Calls:
    """Counts calls while it is entered, and stops what makes more than `most` of them."""

    def __init__(self, most: float = float("inf")) -> None:
        self.most = most
        self.count = 0

    def __enter__(self) -> Calls:
        sys.setprofile(self._called)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            self.count += 1
            if self.count > self.most:
                sys.setprofile(None)
                raise TooManyCalls(f"more than {self.most:.0f} calls, the last of {frame.f_code.co_qualname}")
