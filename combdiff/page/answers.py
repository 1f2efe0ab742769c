"""What a question gives: a part of what is known of a derivative, as JSON.

    answer(Question("derivative", "x'*A*x", ("x",)))["forms"][-1]["matrix"]   =   "A·x + Aᵀ·x"

Invariant: an answer holds text, numbers and LaTeX of ours alone; what a user wrote comes back only as text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from combdiff.api import Derivation, Program, derivation
from combdiff.errors import CombdiffError
from combdiff.ir import Action, Cyclic, Lambda, Range, Space, Var
from combdiff.page.questions import Question
from combdiff.printing import latex, text
from combdiff.testing import largest_errors
from combdiff.text import TextError, declared_part

TOLERANCE = 1e-6
BACKENDS = ("numpy", "jax", "torch")
EXCHANGE = Action((1, 0), (False, False))
KINDS: dict[tuple[Action, ...], str] = {
    (EXCHANGE,): "symmetric",
    (replace(EXCHANGE, sign=-1),): "antisymmetric",
    (replace(EXCHANGE, conjugate=True),): "hermitian",
}
Answer = dict[str, Any]


def answer(question: Question) -> Answer:
    """The answer to a question; a mistake in it is an answer with `error`: message, hint, place and field."""
    try:
        found, notes = _found(question.text, question.wrt)
        return {**PARTS[question.part](found, question), "notes": notes}
    except TextError as error:
        return {"error": _mistake(error, question)}
    except CombdiffError as error:
        return {"error": {"message": error.message, "hint": error.hint, "field": "text"}}
    except RecursionError:
        return {"error": {"message": "the expression is too deeply nested", "hint": "", "field": "text"}}
    except MemoryError:
        return {"error": {"message": "this takes more memory than the page may have", "hint": "", "field": "text"}}


@lru_cache(maxsize=16)
def _found(source: str, wrt: tuple[str, ...]) -> tuple[Derivation, list[str]]:
    """The derivatives, and the warnings on the way; kept, since the parts of an answer are asked for one by one."""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        found = derivation(source, wrt)
    return found, sorted({str(warning.message) for warning in noted})


def _mistake(error: TextError, question: Question) -> Answer:
    """The message with its place, in the field that holds it: the text, or one of the lists of names."""
    in_wrt = error.text in question.wrt and error.text != question.text
    field = f"wrt{question.wrt.index(error.text)}" if in_wrt else "text"
    return {
        "message": error.message,
        "hint": error.hint,
        "field": field,
        "line": error.line,
        "column": error.column,
        "position": error.position,
        "excerpt": error.excerpt,
    }


def _derivative(found: Derivation, question: Question) -> Answer:
    start, end = declared_part(question.text)
    return {
        "parameters": [_parameter(p) for p in found.steps[0].parameters],
        "declared": [start, end],
        "forms": [_form(step, title) for step, title in zip(found.steps, _titles(found), strict=True)],
    }


def _titles(found: Derivation) -> list[str]:
    """What each step is: the expression, its derivative by x, and so on."""
    titles = ["Expression"]
    for number in range(1, len(found.steps)):
        titles.append("Derivative by " + ", then by ".join(", ".join(names) for names in found.names[:number]))
    return titles


def _parameter(var: Var) -> Answer:
    """A tensor as the page's table shows it; the kind of a symmetry that has no word is its equations."""
    space = var.type
    if not isinstance(space, Space):
        return {"name": var.name, "axes": None, "kind": "function", "complex": False}
    axes = [str(axis.size) if isinstance(axis, Range | Cyclic) else str(axis) for axis in space.axes]
    kind = KINDS.get(space.generators, "; ".join(space.equations(var.name)))
    return {"name": var.name, "axes": axes, "kind": kind, "complex": space.dtype is complex}


def _form(program: Program, title: str) -> Answer:
    return {
        "title": title,
        "text": str(program),
        "latex": program.latex(),
        "matrix": program.matrix(),
        "matrix_latex": program.matrix(latex=True),
    }


def _source(found: Derivation, question: Question) -> Answer:
    program, sizes = found.steps[-1], _known_sizes(found.steps[-1], question)
    return {"sources": {backend: program.source(backend, **sizes) for backend in BACKENDS}}


def _explanation(found: Derivation, question: Question) -> Answer:
    told = found.steps[-1].explain()
    steps = [
        {
            "law": step.law,
            "place": step.place,
            "before": latex(old),
            "after": latex(new),
            "before_text": text(old),
            "after_text": text(new),
        }
        for step, old, new in told.shown()
    ]
    ends = [Lambda(told.parameters, body) for body in (told.raw, told.result)]
    return {"steps": steps, "first": latex(ends[0]), "last": latex(ends[1])}


def _known_sizes(program: Program, question: Question) -> dict[str, int]:
    """The sizes that are given of those that the program has."""
    named = {
        str(axis.size)
        for p in program.parameters
        if isinstance(p.type, Space)
        for axis in p.type.axes
        if isinstance(axis, Range | Cyclic)
    }
    return {name: size for name, size in question.sizes if name in named}


def _plan(found: Derivation, question: Question) -> Answer:
    program = found.steps[-1]
    table = program.cost(**_known_sizes(program, question))
    rows = [
        {
            "name": row.name,
            "operation": row.operation,
            "equation": row.equation,
            "shape": [str(_formula(extent)) for extent in row.shape],
            "flops": int(row.flops),
            "bytes": int(row.bytes),
            "flops_formula": str(_formula(row.flops)),
            "bytes_formula": str(_formula(row.bytes)),
            "share": row.share,
        }
        for row in table.rows
    ]
    pictures = {"Tensor networks": str(program.diagram()), "Flops of each step": str(table.chart())}
    return {
        "pictures": pictures,
        "rows": rows,
        "flops": int(table.flops),
        "peak": int(table.peak_bytes),
        "flops_formula": str(table.flops.form),
        "peak_formula": str(table.peak_bytes.form),
        "sizes": dict(table.sizes),
        "open": list(table.open_sizes),
    }


def _formula(value: Any) -> Any:
    return getattr(value, "form", value)


def _check(found: Derivation, question: Question) -> Answer:
    """The largest error against central differences; nan, which JSON has not, is None."""
    if not found.names:
        return {"largest": None, "passed": None}
    largest = largest_errors(found)
    return {"largest": largest if largest == largest else None, "passed": largest <= TOLERANCE}


PARTS: Mapping[str, Callable[[Derivation, Question], Answer]] = {
    "derivative": _derivative,
    "source": _source,
    "explanation": _explanation,
    "plan": _plan,
    "check": _check,
}
