"""What is kept of programs that are over is bounded: caches have a size, and nothing else holds on to a program."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.ir.terms import _interned
from combdiff.runtime import execution
from combdiff.simplification import memory
from combdiff.simplification.egraph import saturation

MOST_BLOCKS = 250_000  # of Python's memory, of some 140 bytes each, in all caches that are full
MOST_GROWN = 20e6  # bytes that a process may grow by, once its e-graphs are there
Matrix, Vector = cd.Space("n", "n"), cd.Space("n")


def derive(number: int) -> None:
    """Derive, print and run a program that no other number gives.

    Its factors are in no other test's programs: what is known of a number is kept with it, as long as anybody has it.
    """
    factor = 2 + number / 4096
    first, second = ((np.sin, np.exp), (np.tanh, np.cos), (np.exp, np.tanh))[number % 3]

    @cd.program
    def f(A: Matrix, x: Vector):
        y = first(factor * x)
        if number % 2:
            return np.sum(second(A @ y) * x) + factor * (x @ x)
        return np.log(np.sum(np.exp(y))) + np.sum((A @ x - y) ** 2)

    gradient = cd.grad(f, wrt="x")
    assert str(gradient)
    gradient(np.eye(2), np.ones(2))


@pytest.fixture
def of_functions() -> Iterator[list[Any]]:
    """The caches of functions. Whatever else other tests have left, millions of objects, is no garbage meanwhile."""
    derive(0)
    found = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    gc.freeze()
    yield [one for one in found if str(one.__module__).startswith("combdiff.")]
    gc.unfreeze()


def caches(of_functions: list[Any]) -> Iterator[tuple[str, int, int | None, Callable[[], None]]]:
    """Each cache of combdiff: its name, how many values it holds and may hold, and what empties it."""
    for one in of_functions:
        info = one.cache_info()
        yield f"{one.__module__}.{one.__qualname__}", info.currsize, info.maxsize, one.cache_clear
    for name, kept in vars(memory).items():
        if isinstance(kept, memory._Memory):
            yield name, len(kept._values), kept.most, kept.clear


def blocks() -> int:
    """Allocated blocks, once all is gone that can go: what is freed frees more."""
    before, now = sys.maxsize, sys.maxsize - 1
    while now < before:
        gc.collect()
        before, now = now, sys.getallocatedblocks()
    return now


def emptied(of_functions: list[Any]) -> tuple[int, int]:
    """Blocks and terms that are left where all caches are emptied."""
    for *_, clear in list(caches(of_functions)):
        clear()
    return blocks(), len(_interned)


@pytest.mark.thorough
def test_what_derivations_leave_is_bounded(of_functions: list[Any]) -> None:
    for number in range(42):  # until the e-graphs are there that so many are worth
        derive(number)
    before = emptied(of_functions)
    for number in range(42, 60):
        derive(number)
    full, grown = 0.0, []
    for name, held, most, clear in sorted(caches(of_functions), key=lambda one: -one[1]):
        there = blocks()
        clear()
        if held >= 18:  # one for each program
            full += (there - blocks()) / held * (most or 0)
            grown += [name] if most is None else []
    after = emptied(of_functions)
    assert not grown
    assert full <= MOST_BLOCKS
    assert after[0] - before[0] <= 18 * 60
    assert after[1] - before[1] <= 18 * 4


def resident() -> float:
    """The bytes that the process holds, once it has given back what is free."""
    blocks()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.thorough
@pytest.mark.usefixtures("of_functions")
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux and glibc what the process holds")
def test_what_the_process_holds_levels_off() -> None:
    """That of e-graphs, too: one of 338 000 rows grew by 90 MB, which stayed."""

    @cd.program
    def nested(A: Matrix, x: Vector):
        squares = 0.992 * cd.softmax(1.492 * (A @ x))
        logarithms = 0.686 * np.log(1 + squares * squares)
        return np.log(np.sum(np.exp(logarithms * logarithms)))

    for number in range(100, 130):
        derive(number)
    before = resident()
    cd.grad(nested, "x")
    for number in range(130, 160):
        derive(number)
    assert resident() - before < MOST_GROWN


def test_of_the_shapes_that_a_program_was_called_with_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MOST_PREPARED", 3)

    @cd.program
    def f(x: Vector):
        return x @ x

    for _ in range(2):
        for size in range(1, 7):
            assert f(np.ones(size)) == size
            assert f(np.ones(1)) == 1
    runner: Any = f._runner
    assert len(runner._functions) == len(runner._numbers) == 3


def test_an_e_graph_is_made_anew_before_it_keeps_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory of what was popped was all that grew with the number of derivations."""
    monkeypatch.setattr(saturation, "_local", threading.local())
    monkeypatch.setattr(saturation, "MOST_USES", 2)
    used = []
    for _ in range(5):
        with saturation.session((), []) as egraph:
            used.append(egraph)
    assert len(set(map(id, used))) == 3
