"""The program of a print or formula: `read_print(str(f))` has the value of f.

    "A symmetric (n, n), x (n); x'*A*x + c"   →   (A, x, c) ↦ Σ_{i,j} x[i] A[i,j] x[j] + c

Where nothing declares the small letters of a formula of matrices, they are scalars as far as its orders ask for that.

Invariant: a text that can be read in two ways is refused, or read as what has the least order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations

from combdiff.errors import SpaceError, shown
from combdiff.ir import TABLE, Space, type_of
from combdiff.ir import Function as Map
from combdiff.printing import GREEK_NAMES
from combdiff.text.declarations import declarations, refuse_misdeclared
from combdiff.text.formulas import formula
from combdiff.text.grammar import refuse_large
from combdiff.text.places import TextError
from combdiff.text.reading import Printed, PrintReader

TYPED = str.maketrans("’′−", "''-")  # what phones and typeset pages have for the signs of a keyboard
MOST_GUESSED = 8  # vectors without a Space of which some are tried as scalars
USUAL = re.compile(rf"(?:[a-g]|lam|{'|'.join(GREEK_NAMES)})\d*")  # names that are as often those of scalars
MOST_USUAL, LONGEST_USUAL = 4, 500  # names, and characters of a text, for which all choices of scalars are tried


def read_print(text: str, spaces: Mapping[str, Space | Map] | None = None) -> Printed:
    """The program of a print, in index notation or matrix notation; `spaces` gives the Spaces of names.

    Raises TextError, with line and column, for a text that is not of the language or does not tell all domains, and
    SpaceError for what is no Space.
    """
    refuse_large(text)
    text = text.translate(TYPED)
    _check_spaces(spaces)
    declared, rest = declarations(text)
    known = {**(spaces or {}), **declared}
    try:
        return _of_least_order(rest, known) or PrintReader(formula(rest, known), known).program()
    except TextError:
        with suppress(TextError):
            if (found := _with_scalars(rest, known)) is not None:
                return found
        refuse_misdeclared(text)
        raise
    except RecursionError:
        raise TextError("the text is too deeply nested", text) from None


def _check_spaces(spaces: object) -> None:
    hint = 'give the Space of each name: {"x": cd.Space("n")}'
    if spaces is not None and not isinstance(spaces, Mapping):
        raise SpaceError(f"the Spaces of names are {shown(spaces)}", hint=hint)
    for name, space in (spaces or {}).items():
        if not isinstance(name, str) or not isinstance(space, Space | Map):
            raise SpaceError(f"the Space of {shown(name)} is {shown(space)}", hint=hint)


def _of_least_order(text: str, known: dict[str, Space | Map]) -> Printed | None:
    """A formula of matrices with those of its `USUAL` names as scalars that make the result of the least order, and
    of these readings the one with the fewest scalars: c in `c*xᵀ*x`, none in `A⁻¹*b`.

    What is transposed, or multiplied element by element, is a vector. Nothing where there is no choice, or a tie.
    """
    names = [name for name in _small_names(text, known) if USUAL.fullmatch(name)]
    by_elements = re.findall(r"\b([a-z]\w*)\s*(?:⊙|⊘|\.[*/^])|(?:⊙|⊘|\.[*/])\s*([a-z]\w*)", text)
    names = [name for name in names if not any(name in pair for pair in by_elements)]
    if not names:
        return None
    is_small = len(names) <= MOST_USUAL and len(text) <= LONGEST_USUAL
    counts = range(len(names) + 1) if is_small else (0, len(names))
    chosen = [frozenset(each) for many in counts for each in combinations(names, many)]
    found = [(_order(read), len(each), read) for each in chosen if (read := _tried(text, known, each)) is not None]
    least = min((each[:2] for each in found), default=None)
    best = [read for *each, read in found if tuple(each) == least]
    return best[0] if len(best) == 1 else None


def _order(read: Printed) -> int:
    space = type_of(read.term.body)
    return len(space.axes) if isinstance(space, Space) else 0


def _small_names(text: str, known: dict[str, Space | Map]) -> list[str]:
    """The names in a formula of matrices that nothing declares and that may be scalars; none in index notation."""
    if "[" in text or "↦" in text or "->" in text:
        return []
    no_scalars = known.keys() | TABLE.keys() | set(re.findall(r"\b([a-z]\w*)['ᵀ†]", text))
    return [word for word in dict.fromkeys(re.findall(r"\b[a-z]\w*", text)) if word not in no_scalars]


def _with_scalars(text: str, known: dict[str, Space | Map]) -> Printed | None:
    """A formula of matrices with as few of its vectors taken for scalars as let the orders agree: c in `x'*A*x + c`.

    What is transposed is no scalar. Nothing where that leaves a choice, or where indices tell the orders.
    """
    names = _small_names(text, known)[:MOST_GUESSED]
    for many in (1, 2):
        found = [
            read for chosen in combinations(names, many) if (read := _tried(text, known, frozenset(chosen))) is not None
        ]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _tried(text: str, known: dict[str, Space | Map], scalars: frozenset[str]) -> Printed | None:
    reader = PrintReader(formula(text), known, scalars)
    try:
        read = reader.program()
    except TextError:
        return None
    return read if scalars <= reader.parameters.keys() else None
