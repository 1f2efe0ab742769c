"""The lines of an explanation read back: before and after a law, with the indices around them bound in front."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
import textbook

import combdiff as cd
from combdiff.ir.domains import Range, Space
from combdiff.ir.indices import Affine
from combdiff.ir.interpreter import evaluate
from combdiff.ir.sizes import names_in
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Term, lambda_
from combdiff.printing.plain import text
from combdiff.testing.arrays import random_arrays

ENTRIES = [entry for entry in textbook.entries() if not entry.wrt.startswith("J")]
PARTS = 12
SOURCES = sorted(Path(cd.__file__).parent.glob("printing/*.py"))
THIS = crc32(b"".join(path.read_bytes() for path in SOURCES)) % PARTS
"""Which eighth of the textbooks is looked at: another one as printing changes, so that a failure repeats."""


def assert_line_reads_back(part: Term, width: int = 10**6) -> None:
    """A part of a program evaluates to what its print does, whatever its free tensors are."""
    free = sorted(part.free, key=lambda var: var.name)
    tensors = [var for var in free if isinstance(var.type, Space)]
    indices = [var for var in free if isinstance(var.type, Range)]
    if len(tensors) + len(indices) < len(free) or any("." in var.name for var in free):
        return  # maps, and names that a print chooses anew
    head = f"({', '.join(var.name for var in tensors)}) ↦ "
    around = f"({', '.join(f'{var.name}<{var.type.size}' for var in indices)}) ↦ " if indices else ""
    found = cd.read(head + around + text(part, width), {var.name: var.type for var in tensors})
    sizes = {name: n for n, name in enumerate(sorted(_sizes(part)), start=_least_size(part))}
    arrays = random_arrays(tuple(tensors), np.random.default_rng(0), sizes)
    with np.errstate(all="ignore"):
        expected = evaluate(lambda_(indices, part), {var: arrays[var.name] for var in tensors}, sizes)
        value = evaluate(found.term.body, {p: arrays[p.name] for p in found.parameters}, sizes)
    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-12, err_msg=text(part))


def _least_size(part: Term) -> int:
    """A size at which what is read at numbers lies inside: `x[t + 2]` for t < 5."""
    nodes = list(subterms(part))
    ranges = [v.type.size for node in nodes for v in node.bound if isinstance(v.type, Range)]
    reach = [each for each in ranges if isinstance(each, int)] + [int(n.offset) for n in nodes if isinstance(n, Affine)]
    return 2 + max((each for each in reach if each > 1), default=0)


def _sizes(part: Term) -> set[str]:
    variables = [var for node in subterms(part) for var in (*node.free, *node.bound)]
    axes = [axis for var in variables for axis in (var.type.axes if isinstance(var.type, Space) else (var.type,))]
    return {name for axis in axes for name in names_in(getattr(axis, "size", 0))}


@pytest.mark.sample(1)
@pytest.mark.parametrize("entry", ENTRIES[THIS::PARTS], ids=lambda entry: entry.title)
def test_the_lines_of_an_explanation_read_back(entry: textbook.Entry) -> None:
    explanation = cd.grad(entry.program, entry.wrt.split()[-1]).explain()
    width = (20, 60, 100, 200)[crc32(entry.title.encode()) % 4]
    for _, old, new in explanation.shown():
        assert_line_reads_back(old, width)
        assert_line_reads_back(new, width)
