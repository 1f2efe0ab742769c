"""Processes that answer questions, each within a time and a memory.

    await Workers(Limits(seconds=30)).ask(question, gone)   →   the answer, or one that says which limit was met

A question goes to a process of its own, started by `spawn` and kept for the next one. A process that takes too long, or
whose asker has gone, or whose memory is full, is killed; one that dies, of memory or a defect, is replaced.

A full process is killed from here since it may not end by itself: CPython 3.11 needs an integer to go on from an
exception to its handler, and where none can be made it raises the next exception in the same place, for ever.

Invariant: at most `workers` processes run, and at most `waiting` questions wait for one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from multiprocessing.connection import Connection
from typing import Any

import anyio
from anyio import to_thread

from combdiff.page.answers import Answer, answer
from combdiff.page.questions import Limits, Question
from combdiff.records import dataclass

STARTING = 60.0  # seconds that a new process may take to import combdiff
ENDING = 1.0  # seconds that a process may take to end once it has closed its pipe
TICK = 0.1  # seconds between two looks at whether the asker has gone and at the memory
FULL, FAILED = 3, 1  # exit codes of a process: of ours where its memory ends, of Python's for an exception
LEAST_LEFT = 1 << 20  # bytes: what CPython asks the system for at once, for its small objects

NO_MEMORY = "the computation ended before it had an answer: it needed more memory than the page may have"
FAILURE = "combdiff failed here, which is a defect of it: the terminal of `combdiff serve` says where"


class BusyError(Exception):
    """As many questions wait as may."""


def answering(connection: Connection, memory: int) -> None:
    """What a process does: load, bound its memory, say that it is ready, answer until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its processes
    answer(Question("derivative", "x'*x", ("x",)))  # loads what the first real question would wait for
    if sys.platform != "win32":
        import resource

        with suppress(ValueError, OSError):  # where the system has no such limit, or a lower one
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    try:
        connection.send(None)
        while True:
            connection.send(answer(connection.recv()))
    except (EOFError, BrokenPipeError):
        return
    except (MemoryError, SystemError):  # the second where there is no memory for the first
        os._exit(FULL)  # at once: what Python does at its end may take memory, too


class Worker:
    """A process and the pipe to it; the process runs `work`, which answers what the pipe brings."""

    def __init__(self, limits: Limits, work: Callable[[Connection, int], None] = answering) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, limits.memory), daemon=True)
        self._process.start()
        theirs.close()
        self._memory = limits.memory
        self._is_ready = False

    async def ask(self, question: Question, seconds: float, gone: Callable[[], Awaitable[bool]]) -> Answer:
        """The answer within the seconds. Raises TimeoutError, EOFError where the process died, MemoryError where its
        memory is full, and ConnectionError where the asker has gone; the process is of no use then."""
        if not self._is_ready:
            await self._received(STARTING, gone)
            self._is_ready = True
        self._pipe.send(question)
        found: Answer = await self._received(seconds, gone)
        return found

    async def _received(self, seconds: float, gone: Callable[[], Awaitable[bool]]) -> Any:
        end = time.monotonic() + seconds
        while not await to_thread.run_sync(self._pipe.poll, TICK):
            if time.monotonic() > end:
                raise TimeoutError
            if await gone():
                raise ConnectionError
            if self._is_ready and self.is_full():
                raise MemoryError
        return await to_thread.run_sync(self._pipe.recv)

    def is_full(self) -> bool:
        """Whether the process has all the memory that it may have; False where the system does not tell (no Linux)."""
        try:
            with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as told:
                pages = int(told.read().split()[0])
        except (OSError, IndexError):
            return False
        return pages * os.sysconf("SC_PAGE_SIZE") > self._memory - LEAST_LEFT

    def has_failed(self) -> bool:
        """Whether the process, which has closed its pipe, ended with an exception."""
        self._process.join(ENDING)
        return self._process.exitcode == FAILED

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


@dataclass
class Workers:
    """The processes of one server."""

    limits: Limits
    _idle: list[Worker] = field(default_factory=list)
    _all: set[Worker] = field(default_factory=set)
    _asked: int = 0

    def __post_init__(self) -> None:
        self._places = anyio.Semaphore(self.limits.workers)

    def start(self) -> None:
        """Start one process ahead of the first question."""
        self._idle.append(self._started())

    def _started(self) -> Worker:
        worker = Worker(self.limits)
        self._all.add(worker)
        return worker

    async def ask(self, question: Question, gone: Callable[[], Awaitable[bool]]) -> Answer:
        """The answer, or one that names the limit it met. Raises BusyError where too many questions wait."""
        if self._asked >= self.limits.workers + self.limits.waiting:
            raise BusyError
        self._asked += 1
        try:
            async with self._places:
                return await self._answered(question, gone)
        finally:
            self._asked -= 1

    async def _answered(self, question: Question, gone: Callable[[], Awaitable[bool]]) -> Answer:
        worker = self._idle.pop() if self._idle else self._started()
        is_whole = False
        try:
            found = await worker.ask(question, self.limits.seconds, gone)
            is_whole = not worker.is_full()
            return found
        except TimeoutError:
            return _stopped(f"this takes more than {self.limits.seconds:g} seconds and was stopped")
        except EOFError:
            return _stopped(FAILURE) if worker.has_failed() else _stopped(NO_MEMORY)
        except (ConnectionError, MemoryError):
            return _stopped(NO_MEMORY)
        finally:
            if is_whole:
                self._idle.append(worker)
            else:
                self._all.discard(worker)
                worker.end()

    def end(self) -> None:
        """Kill every process."""
        for worker in self._all:
            worker.end()
        self._all.clear()
        self._idle.clear()


def _stopped(message: str) -> Answer:
    hint = "ask for a smaller expression; in Python there is no such limit"
    return {"error": {"message": message, "hint": hint, "field": "text"}}
