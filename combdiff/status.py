"""What a long derivation or plan is doing: one line on the terminal, after a second, gone when it is done.

    ⠹ combdiff: simplifying t3, binding 14 of 37 (5 s)

`working` is put around what may take long, `stage` says where it is. A thread writes the line, so that it goes on while
a stage does; nothing is started where standard error is no terminal (a pipe, a file, a notebook). It is drawn by rich
where that is installed (the extra `progress`), and is the bare text where it is not.

Invariant: nothing is written to standard output, and the line is erased, and cycles are collected as often as before,
when `working` ends.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import Event, Lock, Thread
from time import monotonic

FIRST, EVERY = 1.0, 0.1  # seconds until the line is first written, and between two writings
ERASE = "\r\x1b[K"
SELDOM = 10_000  # new objects between two collections of the youngest

_allowed = True
_collecting = Lock()
_inside = 0  # blocks that are open, in all threads
_usual = (0, 0, 0)  # the thresholds outside of them


def progress(shown: bool = True) -> None:
    """Whether long derivations and plans say what they do, on a line of the terminal; they do, unless `shown` is False.

    The line is written to standard error, where that is a terminal, once a call has taken a second. The setting holds
    for the process. Raises nothing.
    """
    global _allowed
    _allowed = shown is not False


class _Line:
    """The line of one call, and the thread that writes it."""

    def __init__(self) -> None:
        self.stage = "at work"
        self.began = monotonic()
        self.over = Event()
        self.thread = Thread(target=self._write, name="combdiff status", daemon=True)
        self.thread.start()

    def _write(self) -> None:
        if self.over.wait(FIRST):
            return
        with _drawn() as draw:
            while not self.over.wait(EVERY):
                draw(self.stage, f" ({monotonic() - self.began:.0f} s)")

    def end(self) -> None:
        self.over.set()
        self.thread.join()


def _drawn() -> AbstractContextManager[Callable[[str, str], None]]:
    """What draws a stage and its time, over what it drew before; it is erased in the end."""
    try:
        return _by_rich()
    except ImportError:
        return _as_text()


def _by_rich() -> AbstractContextManager[Callable[[str, str], None]]:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console, spinner = Console(file=sys.stderr), Spinner("dots")

    @contextmanager
    def drawn() -> Iterator[Callable[[str, str], None]]:
        # Standard output and error stay what they are: the program may replace them itself meanwhile.
        with Live(
            console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live:

            def draw(what: str, time: str) -> None:
                moving = spinner.render(console.get_time())
                line = Text.assemble((str(moving), "green"), (" combdiff: ", "bold"), what, (time, "dim"))
                line.truncate(console.width, overflow="ellipsis")
                live.update(line, refresh=True)

            yield draw

    return drawn()


@contextmanager
def _as_text() -> Iterator[Callable[[str, str], None]]:
    stream = sys.stderr

    def put(text: str) -> None:
        stream.write(text)
        stream.flush()

    def draw(what: str, time: str) -> None:
        put(ERASE + f"combdiff: {what}{time}"[: shutil.get_terminal_size().columns - 1])

    yield draw
    put(ERASE)


_line: ContextVar[_Line | None] = ContextVar("combdiff_status", default=None)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Around what may take long; inside another such block it is a stage of that. Cycles are seldom collected in it."""
    with _seldom_collected(), _shown(what):
        yield


@contextmanager
def _shown(what: str) -> Iterator[None]:
    if _line.get() is not None or not _is_shown():
        stage(what)
        yield
        return
    line = _Line()
    token = _line.set(line)
    stage(what)
    try:
        yield
    finally:
        _line.reset(token)
        line.end()


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Python's collector of reference cycles is asked seldom, in all threads, until the last such block ends.

    What is made here, hundreds of thousands of small objects, is nearly all kept or freed by counting references. To
    look through it after every 700 new ones, as Python does, took a tenth of the time.
    """
    global _inside, _usual
    with _collecting:
        if not _inside:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < SELDOM:
                gc.set_threshold(SELDOM, *_usual[1:])
        _inside += 1
    try:
        yield
    finally:
        with _collecting:
            _inside -= 1
            if not _inside and gc.get_threshold() == (SELDOM, *_usual[1:]):
                gc.set_threshold(*_usual)


def stage(what: str) -> None:
    """What is done from here on."""
    line = _line.get()
    if line is not None:
        line.stage = what


def _is_shown() -> bool:
    stream = sys.stderr
    return _allowed and stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
