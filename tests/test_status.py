"""The line on the terminal that says what a long call does."""

from __future__ import annotations

import gc
import io
import re
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, repeat
from types import SimpleNamespace

import pytest

import combdiff as cd
from combdiff import status

WIDTH = 80
LOOKS = re.compile(r"\x1b\[(\?25[lh]|[\d;]*m)")  # colours, and whether the cursor is seen
ERASED = re.compile(r"(?:\n?\r(?:\x1b\[1A)?\x1b\[2?K)+")
SPINNER = re.compile("^[⠀-⣿] ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What was written, and then erased, in order."""
        return [SPINNER.sub("", line) for line in ERASED.split(LOOKS.sub("", self.getvalue())) if line]


@pytest.fixture(params=["rich", "no rich"])
def terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal in place of standard error, and a line that comes at once; with rich and without."""
    if request.param == "rich":
        pytest.importorskip("rich")
        for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setitem(sys.modules, "rich.live", None)
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(status, "FIRST", 0.0)
    monkeypatch.setattr(status, "EVERY", 0.001)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    stream = Terminal()
    monkeypatch.setattr(status, "sys", SimpleNamespace(stderr=stream))  # pytest puts its own into sys for each phase
    yield stream
    cd.progress(True)


def written(stream: Terminal, stages: list[str]) -> None:
    with status.working("simplifying"):
        for each in stages:
            status.stage(each)
            before = len(stream.lines())
            for _ in range(1000):
                time.sleep(0.01)
                if len(stream.lines()) >= before + 2:  # the second one is of this stage
                    break


def test_stages_are_shown_with_their_time_and_erased(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = chain([100.0], repeat(112.4))
    monkeypatch.setattr(status, "monotonic", lambda: next(clock))
    written(terminal, ["simplifying t3, binding 1 of 2", "simplifying the result"])
    assert "combdiff: simplifying t3, binding 1 of 2 (12 s)" in terminal.lines()
    assert terminal.lines()[-1] == "combdiff: simplifying the result (12 s)"
    written_in_all = terminal.getvalue()
    assert not ERASED.split(LOOKS.sub("", written_in_all))[-1]
    assert written_in_all.count("\x1b[?25l") == written_in_all.count("\x1b[?25h")
    assert ("\x1b[1m" in written_in_all) == (sys.modules.get("rich.live") is not None)


def test_a_line_fits_the_terminal(terminal: Terminal) -> None:
    written(terminal, ["x" * 200])
    assert WIDTH - 3 <= max(map(len, terminal.lines())) <= WIDTH - 1


def test_a_call_within_a_call_is_a_stage_of_it(terminal: Terminal) -> None:
    with status.working("planning"):
        line = status._line.get()
        with status.working("compiling"):
            assert status._line.get() is line is not None
            assert line.stage == "compiling"
    assert status._line.get() is None


def test_nothing_is_started_in_pipes_or_where_it_is_turned_off(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    cd.progress(False)
    with status.working("simplifying"):
        assert status._line.get() is None
    cd.progress(True)
    monkeypatch.setattr(status, "sys", SimpleNamespace(stderr=io.StringIO()))
    with status.working("simplifying"):
        assert status._line.get() is None
    assert not terminal.getvalue()


@pytest.mark.thorough
def test_a_derivation_and_a_plan_name_what_they_work_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    for module in ("simplification.pipeline", "planning.passes.pipeline", "api.explanation"):
        monkeypatch.setattr(f"combdiff.{module}.stage", said.append)

    @cd.program
    def loss(W: cd.Space("n", "n"), x: cd.Space("n")):
        h = cd.tanh(W @ x)
        return h @ W @ h

    gradient = cd.grad(loss)
    gradient.cost()
    assert "simplifying the result" in said
    assert "rewriting the plan: factoring" in said
    assert any(each.startswith("simplifying h, binding 1 of ") or "binding 1 of" in each for each in said)
    str(gradient.explain())
    assert any(each.startswith("finding the laws, step 1 of ") for each in said)
    assert any(each.startswith("printing step 1 of ") for each in said)


@pytest.mark.parametrize(("before", "inside"), [((700, 10, 9), (status.SELDOM, 10, 9)), ((0, 1, 2), (0, 1, 2))])
def test_cycles_are_collected_seldom_in_it_and_afterwards_as_before(
    before: tuple[int, int, int], inside: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [gc.get_threshold()]

    def shown(_: str) -> AbstractContextManager[None]:
        seen.append(gc.get_threshold())
        return nullcontext()

    monkeypatch.setattr(status, "_shown", shown)
    f = cd.read("x ↦ x² + 3 x² + 17.25 x")
    gc.set_threshold(*before)
    try:
        with status.working("simplifying"), suppress(ZeroDivisionError), status.working("planning"):
            raise ZeroDivisionError
        assert gc.get_threshold() == before
        cd.simplify(f)
        assert gc.get_threshold() == before
        with status.working("simplifying"):
            gc.set_threshold(5, 6, 7)  # by a user
        assert gc.get_threshold() == (5, 6, 7)
    finally:
        gc.set_threshold(*seen[0])
    assert len(seen) >= 4
    assert {*seen[1:]} == {inside}
