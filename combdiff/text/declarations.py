"""Declarations in front of a text: `A symmetric (n, n), x (n)` on its first lines.

    A symmetric (n, n), z complex (n)   →   {"A": Space("n", "n", symmetry=…), "z": Space("n", dtype=complex)}

Invariant: the text that is left has its lines and columns, so that a mistake is shown where it was written.
"""

from __future__ import annotations

import re

from combdiff.errors import SpaceError
from combdiff.ir import Space
from combdiff.text.grammar import declarations_of, is_calculus
from combdiff.text.places import TextError, quoted

WORDS = {"symmetric": "A[i,j] = A[j,i]", "antisymmetric": "A[i,j] = -A[j,i]", "hermitian": "A[i,j] = conj(A[j,i])"}
KINDS: dict[str, type] = {"complex": complex, "integer": int, "hermitian": complex}
_EQUATIONS = r"((?:;(?:[^;()\n]|\([^()\n]*\))*)*)"
_DECLARED = (
    r"([^\W\d]\w*+)((?:\s++(?:symmetric|antisymmetric|hermitian|complex|integer|scalar))*+)"
    rf"(?:\s*+\(([\w\s,]*+){_EQUATIONS}\)|(?<=\bscalar))"
)
_END = r"(?:\s*+;|[^\S\n]*+\n)"  # of a line of declarations
# `f(x)` alone on a line is no declaration where the next line goes on with it.
_NEXT = rf"(?:\s*+,\s*+{_DECLARED}|{_END}\s*+{_DECLARED}(?!{_END}\s*+[-+]))"
_LINE = re.compile(rf"\s*+{_DECLARED}{_NEXT}*{_END}(?=\s*+\S)")
_LIKE_DECLARED = r"[^\W\d]\w*(?:[^\S\n]+[^\W\d]\w*)*(?:[^\S\n]*(?:\([^()\n]*\)|\[[^][\n]*\]))?"
_ONE = rf"{_LIKE_DECLARED}[^\S\n]*"
_LIKE_A_LINE = re.compile(rf"\s*{_ONE}(?:,[^\S\n]*(?:{_ONE})?)*(?:\n|;)(?=\s*[^\s+-])")


def declarations(text: str) -> tuple[dict[str, Space], str]:
    """The Spaces that the first lines declare, `A symmetric (n, n), x (n)`, and the text with those lines blank.

    Other symmetries stand behind the sizes: `R (n, n, n; R[i,j,k] = -R[j,i,k]; R[i,j,k] = R[k,j,i])`.
    """
    line = _LINE.match(text.rstrip()) if isinstance(text, str) else None
    if line is None:
        return {}, text
    found = {}
    for part in re.finditer(_DECLARED, line[0]):
        name, words, within = part[1], part[2].split(), part[3] or ""  # a scalar may have no brackets
        sizes = [size.strip() for size in within.split(",") if size.strip()]
        if "scalar" in words and sizes:
            raise TextError(f"{name}: a scalar has no axes", text, part.start(1), f"write {name} ()")
        dtype = next((KINDS[word] for word in words if word in KINDS), float)
        axes = [int(size) if size.isdecimal() else size for size in sizes]
        symmetry = [WORDS[word] for word in words if word in WORDS]
        symmetry += [equation.strip() for equation in (part[4] or "").split(";") if equation.strip()]
        try:
            found[name] = Space(*axes, dtype=dtype, symmetry=symmetry)
        except SpaceError as problem:
            raise TextError(f"{name}: {problem.message}", text, part.start(1), problem.hint) from None
    return found, re.sub(r"[^\n]", " ", line[0]) + text[line.end() :]


def refuse_misdeclared(text: str) -> None:
    """Refuse a first line that seems to declare tensors, at the first of them that it does not."""
    line = _LIKE_A_LINE.match(text.rstrip())
    if line is None or _LINE.match(text) or not re.search(r"[(,]", line[0]):
        return
    hint = "write A (m, n), S symmetric (n, n), H hermitian (n, n), z complex (n), c (): names, then sizes"
    for part in re.finditer(_LIKE_DECLARED, line[0]):
        if not re.fullmatch(_DECLARED, part[0]):
            raise TextError(f"{quoted(part[0])} declares no tensor", text, part.start(), hint)
    raise TextError("the declarations end with a comma", text, len(line[0].rstrip(" ;\n")) - 1, hint)


def declared_part(text: str) -> tuple[int, int]:
    """Where the declarations of a text in any of the languages begin and end; twice 0 where there are none."""
    if is_calculus(text):
        return declarations_of(text)
    line = _LINE.match(text.rstrip())
    if line is None:
        return 0, 0
    return len(line[0]) - len(line[0].lstrip()), len(line[0].rstrip().rstrip(";"))
