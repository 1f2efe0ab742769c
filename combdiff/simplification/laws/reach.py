"""Which laws can fire on a term: those that ask for nothing but what is in it, or what laws make that can fire.

    x y + 2 y         no law of functions, of conjugates or of δ's
    1 / (1 + x)²      the laws of powers, not those of sines
    sin² x + cos² x   "sin² + cos² = 1", and the laws of what it makes

An e-graph with fewer laws is made, copied and searched in less time.

Invariant: a law that is left out would find no match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from combdiff.ir import MATRIX_TABLE
from combdiff.records import dataclass
from combdiff.simplification.laws.loading import BUILT_IN, RuleFile
from combdiff.simplification.laws.syntax import Command, law_names, text_of

# What is in an e-graph only where a term has it or functions, or where laws make it; all else may be there always.
PARTS = {
    "Conj": frozenset({"Conj", "Conjugated"}),  # conjugates, of matrices too
    "Delta": frozenset({"Delta", "Where", "Differ"}),  # δ's, and the conditions that solving them leaves
    "Subst": frozenset({"Subst"}),  # terms at other indices
}
FUNCTIONS = frozenset({"Fn"})
MATRICES = frozenset({"MatrixFn", "Transposed", "Multiple", "Weighted", "MatMul", "square", "square-over"})
MADE = frozenset({"Fraction", "Part", "part", "raised", "powered", "meeting", "joining", "has-delta"})
FRACTIONAL = "fractional"  # powers with exponents that are not whole, which few terms have
_WORDS = frozenset().union(*PARTS.values(), FUNCTIONS, MATRICES, MADE, {FRACTIONAL})
_CALL = re.compile(r'\((unstable-fn|Fn|MatrixFn)\s+"([^"]*)"|\(([^\s()";]+)')
_FACT = re.compile(r'\((\S+) "([^"]*)"\)')
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|;[^\n]*|[()]')


@dataclass(frozen=True)
class LawWords:
    """What a law asks for, and what may be there once it has fired; names of functions in quotation marks."""

    name: str
    asks: frozenset[str]
    makes: frozenset[str]


@dataclass(frozen=True)
class ReachedLaws:
    """The commands that are left of rule files; the laws among them, and those that ask for a function by name."""

    commands: tuple[Command, ...]
    names: frozenset[str]
    of_functions: frozenset[str]


@lru_cache(maxsize=256)
def reached(files: tuple[RuleFile, ...], words: frozenset[str]) -> ReachedLaws:
    """What holds of terms with these functions and parts; with files of users, which may say anything, all laws."""
    commands = [each for file in files for each in _with_words(file)]
    laws = [law for _, law in commands if law is not None]
    there, able = set(_in_terms(words)), set[str]()
    if len(files) > len(BUILT_IN):
        able.update(law.name for law in laws)
    while found := [law for law in laws if law.name not in able and law.asks <= there]:
        able.update(law.name for law in found)
        there.update(word for law in found for word in law.makes)
    return ReachedLaws(
        tuple(command for command, law in commands if law is None or law.name in able),
        frozenset(able),
        frozenset(law.name for law in laws if law.name in able and any('"' in word for word in law.asks)),
    )


def _in_terms(words: frozenset[str]) -> Iterator[str]:
    """What is in an e-graph of a term with these functions and parts, of that which is not always there.

    FRACTIONAL among them says that there are such powers, or what laws make them of; no other law does.
    """
    for name in words:
        if name == FRACTIONAL or name in PARTS:
            yield from PARTS.get(name, (name,))
        else:
            yield f'"{name}"'
            yield from MATRICES if name in MATRIX_TABLE else FUNCTIONS


@lru_cache(maxsize=32)
def _with_words(file: RuleFile) -> tuple[tuple[Command, LawWords | None], ...]:
    """The commands of a file, with the words of those that are laws."""
    return tuple((command, _words_of(command)) for command in file.commands)


def _words_of(command: Command) -> LawWords | None:
    """The words of a law, or of what is said of one function; None for what is neither."""
    text = text_of(command)
    if names := law_names([command]):
        return LawWords(names[0], frozenset(_words(_sought(text))), frozenset(_words(text)) - {FRACTIONAL})
    said = _FACT.fullmatch(text)
    return LawWords(text, frozenset({f'"{said[2]}"'}), frozenset({said[1]})) if said and said[1] in MADE else None


def _sought(text: str) -> str:
    """What a law looks for: the first part in brackets, and the conditions of a rewriting."""
    return _bracketed(text, 1) + _bracketed(text.partition(" :when ")[2], 0)


def _bracketed(text: str, outside: int) -> str:
    """The first part of a text in more brackets than those."""
    depth = begins = 0
    for token in _TOKEN.finditer(text):
        if token[0] == "(":
            depth += 1
            begins = token.start() if depth == outside + 1 else begins
        elif token[0] == ")":
            depth -= 1
            if depth == outside:
                return text[begins : token.end()]
    return ""


def _words(text: str) -> Iterator[str]:
    """What is called in a text, of that which is not always there, and functions by name."""
    for call, name, other in _CALL.findall(text):
        if call in ("Fn", "MatrixFn"):
            yield from (call, f'"{name}"')
        elif (word := name or other) in _WORDS:
            yield word
