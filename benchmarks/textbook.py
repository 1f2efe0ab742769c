"""Derivatives beside the form that a textbook gives them: how many are no longer, and which are longer.

Symbols are counted as printed: a name or a number (1/2 as well) is one, each operator, bracket, Σ, raised number and
mark (ᵀ, ⁻¹) is one; commas, blanks and underscores are none, and so are the parameters before ↦ (a book writes
∂f/∂x_d). A definition `t = …` counts once, where it stands. A result is no longer than the book's if it is so
in index notation or in matrix notation; where the book's form is given in one of them, the other is the print of it.
Run: python benchmarks/textbook.py [--check] [--all] [words of a title or program …]
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import combdiff as cd
from combdiff.testing.text_derivatives import error, extrapolated_differences, random_values, value

TABLE = Path(__file__).with_name("textbook.txt")
HEAD = re.compile(r"(\([\w, <≤∈ℝ|]*\)|[\w<≤∈ℝ|]+( mod \w+)?)\s*↦")
SYMBOL = re.compile(r"\d+/\d+|[^\W_⁰¹²³⁴⁵⁶⁷⁸⁹ᵀ]+(?:\.\d+)?|⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹ᵀ†]+|\^∘|[^\s,_{}]")
SIZES = {"n": 5, "m": 3, "k": 3, "p": 2}
CLOSE, NEAR = 1e-10, 1e-5  # relative errors: to the book's form, to central differences
DERIVATIVES = {"grad": cd.grad, "J": cd.jacobian, "hessian": cd.hessian, "hvp": cd.hvp}


@dataclass(frozen=True)
class Entry:
    """A derivative of a book: a program and its parameter, and what the book writes for it; why ours is longer."""

    chapter: str
    spaces: str
    objective: str
    wrt: str
    book: str
    reason: str = ""

    @property
    def title(self) -> str:
        return f"{self.objective}  by {self.wrt}  ({self.spaces})"

    @property
    def program(self) -> cd.Program:
        return self.read(self.objective)

    @property
    def derivative(self) -> cd.Program:
        """What we make of it."""
        return DERIVATIVES[self.kind](self.program, wrt=self.name)

    @property
    def kind(self) -> str:
        """Which derivative it is, a key of DERIVATIVES."""
        *how, _ = self.wrt.split()
        return "grad" if not how else how[0] if how[0] in DERIVATIVES else "hessian"

    @property
    def name(self) -> str:
        """The parameter by which the derivative is."""
        return self.wrt.split()[-1]

    @property
    def book_program(self) -> cd.Program:
        """The book's form."""
        return self.read(self.book, tangent=self.kind == "hvp")

    def read(self, text: str, tangent: bool = False) -> cd.Program:
        """The program of a form; one in index notation begins with the parameters, a tangent last."""
        lines = "\n".join(part.strip() for part in text.split(";"))
        parts = re.findall(r"(\w+) ((?:\w+ )?\([^()]*\))", self.spaces)
        parts += [(f"{name}_dot", axes) for name, axes in parts if tangent and name == self.name]
        head = f"({', '.join(name for name, _ in parts)}) ↦\n" if "[" in text or "↦" in text else ""
        declared = ", ".join(f"{name} {axes}" for name, axes in parts if "mod" not in axes)
        wrapped = {name: cd.Space(cd.Cyclic(axes[5:-1])) for name, axes in parts if "mod" in axes}
        return cd.read(f"{declared}\n{head}{lines}" if declared else head + lines, wrapped)


@dataclass(frozen=True)
class Comparison:
    """An entry, what we print for it and how many symbols both take, as (index notation, matrix notation)."""

    entry: Entry
    prints: tuple[str, str]
    ours: tuple[int, int]
    books: tuple[int, int]

    @property
    def longer(self) -> bool:
        """Whether ours is longer in both notations."""
        return all(own > theirs for own, theirs in zip(self.ours, self.books, strict=True))


def symbols(text: str) -> int:
    """The symbols of a form as it is printed."""
    return len(SYMBOL.findall(HEAD.sub("", text)))


def entries(path: Path = TABLE) -> list[Entry]:
    """The table."""
    found, chapter, head = [], "", [""] * 3
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("## "):
            chapter = line[3:]
        elif line.strip().startswith("longer:"):
            found[-1] = replace(found[-1], reason=line.partition(":")[2].strip())
        elif line.startswith("  "):
            found.append(Entry(chapter, *head, line.strip()))
        elif "|" in line and not line.startswith("#"):
            head = [part.strip() for part in line.split(" | ")]
    return found


def prints(program: cd.Program) -> tuple[str, str]:
    """A program in index notation and in matrix notation."""
    return str(program), program.matrix()


def compared(entry: Entry) -> Comparison:
    """An entry beside the book's form."""
    shown = prints(entry.derivative)
    book = [symbols(text) for text in prints(entry.book_program)]
    written = 0 if "[" in entry.book else 1
    book[written] = symbols(entry.book.replace(";", "\n"))
    index, matrix = map(symbols, shown)
    return Comparison(entry, shown, (index, matrix), (book[0], book[1]))


def wrong(entry: Entry, seed: int = 0) -> str:
    """How the derivative differs in value from the book's form or from central differences; empty if it does not."""
    derivative = entry.derivative
    arrays = _arrays(derivative, seed)
    found = value(derivative, arrays, SIZES)
    away = error(found, np.asarray(value(entry.book_program, arrays, SIZES)))
    twice = entry.kind in ("hessian", "hvp")
    program = cd.grad(entry.program, wrt=entry.name) if twice else entry.program
    slopes = extrapolated_differences(program, arrays, SIZES, entry.name, 32.0)
    expected = slopes[0] if len(slopes) == 1 else 2 * slopes[1]  # a gradient by a complex tensor is 2 ∂f/∂z̄
    if entry.kind == "hvp":
        expected = np.tensordot(expected, arrays[f"{entry.name}_dot"], arrays[entry.name].ndim)
    steep = error(found, expected)
    if away < CLOSE and steep < NEAR:
        return ""
    return f"away from the book's form by {away:.1e}, from central differences by {steep:.1e}"


def _arrays(program: cd.Program, seed: int) -> dict[str, np.ndarray]:
    """Positive entries, and square matrices that have a positive determinant."""
    arrays = random_values(program, SIZES, seed)
    for name, array in arrays.items():
        if array.ndim == 2 and array.shape[0] == array.shape[1]:
            arrays[name] = array + 3 * np.eye(len(array))
    return arrays


def chosen(words: Iterable[str]) -> Iterator[Entry]:
    """The entries that have all words in their title."""
    return (entry for entry in entries() if all(word in f"{entry.chapter} {entry.title}" for word in words))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="compare values as well")
    parser.add_argument("--all", action="store_true", help="print those that are not longer, too")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", cd.BudgetWarning)
    found, short, start = 0, 0, time.process_time()
    for entry in chosen(arguments.words):
        found += 1
        result = compared(entry)
        short += not result.longer
        if result.longer or arguments.all:
            print(f"{entry.title}\n    {result.ours} for {result.books}: {entry.book}")
            print("\n".join(f"      {line}" for text in result.prints for line in text.splitlines()), flush=True)
        if arguments.check and (what := wrong(entry)):
            print(f"WRONG {entry.title}: {what}")
    print(f"{short} of {found} no longer than the book's; {time.process_time() - start:.0f} s")


if __name__ == "__main__":
    main()
