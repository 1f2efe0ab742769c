"""The combinator form of a program as text.

    x ↦ Σ_i v[i]·x[i]   prints as   x ↦ 𝐁 Σ (𝐂 (i ↦ 𝐁 (v[i] ·) (𝐁 x 𝐈 [i])))

𝐁 f g is a composition, 𝐂 (i ↦ g) a map that returns a map, 𝐈 the identity, 𝐊 c a constant map; `(a ·)` and `(a +)` are
the univariate multiplication and addition with a capture. Where the capture mentions a variable itself, the second
half of the B rule differentiates it.
"""

from __future__ import annotations

from combdiff.differentiation import (
    Adjoint,
    Call,
    Compose,
    Conjugate,
    ConstantMap,
    Differential,
    Elementwise,
    Evaluate,
    Exchange,
    Fork,
    Form,
    Identity,
    Iterate,
    MatrixFunction,
    Multiply,
    Solve,
    SumOver,
    Translate,
    Univariate,
    eliminate,
)
from combdiff.ir import Lambda, Space, Term, Var, is_domain, split
from combdiff.printing.plain import text


def combinator_text(program: Lambda) -> str:
    """The combinator form of a program: its head, a line per binding, and its result. Integers are captures."""
    bindings, result = split(program.body)
    given = (*program.parameters, *(var for var, _ in bindings))
    points = frozenset(p for p in given if isinstance(p.type, Space) and p.type.dtype is not int)
    head = f"({', '.join(p.name for p in program.parameters)}) ↦"
    lines = [f"{var.name} = {form_text(eliminate(value, points))}" for var, value in bindings]
    lines.append(form_text(eliminate(result, points)))
    return f"{head} {lines[0]}" if len(lines) == 1 else "\n  ".join([head, *lines])


def form_text(form: Form) -> str:
    """One combinator form on one line."""
    step, parts = form.step, [form_text(part) for part in form.parts]
    match step:
        case Identity():
            return step.var.name
        case ConstantMap():
            return f"𝐊 {_bracketed(_line(step.value))}"
        case Exchange():
            return f"𝐂 ({_names(step.parameters)} ↦ {parts[0]})"
        case Compose():
            return f"𝐁 {_univariate(step.outer)} {_bracketed(parts[0])}"
        case Evaluate():
            return f"𝐁 {_bracketed(parts[0])} 𝐈 [{', '.join(text(a) for a in step.arguments)}]"
        case Fork():
            return f"({', '.join(parts)})"
        case Iterate():
            step_, *starts = parts
            names = _names(step.term.variables)
            return f"𝐁^{text(step.term.index)} ({names} ↦ {step_}) {' '.join(map(_bracketed, starts))}"
        case Solve():
            given = f" {_bracketed(parts[1])}" if step.term.kind == "solve" else ""
            return f"𝐁 {step.term.kind} (𝐂 ({step.term.unknown.name} ↦ {parts[0]})){given}"


def _univariate(outer: Univariate) -> str:
    match outer:
        case Multiply():
            return f"({_line(outer.factor)} ·)"
        case Translate():
            return f"({_line(outer.summand)} +)"
        case Conjugate():
            return "conj"
        case SumOver():
            return "Σ"
        case MatrixFunction():
            return outer.name
        case Adjoint():
            return f"{outer.function.name}ᵀ"
        case Differential():
            return f"∂{outer.function.name}({_slots(outer.slot, outer.parts)})"
        case Call():
            return f"{outer.function.name}({_slots(outer.position, outer.arguments)})"
        case Elementwise():
            slots = _slots(outer.position, outer.arguments)
            return outer.name if slots == "·" else f"{outer.name}({slots})"


def _slots(position: int, arguments: tuple[Term, ...]) -> str:
    return ", ".join("·" if n == position else _line(argument) for n, argument in enumerate(arguments))


def _names(parameters: tuple[Var, ...]) -> str:
    shown = [text(p) if is_domain(p.type) else p.name for p in parameters]
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"


def _line(term: Term) -> str:
    """A capture on one line, however long."""
    return " ".join(text(term).split())


def _bracketed(shown: str) -> str:
    return f"({shown})" if " " in shown else shown
