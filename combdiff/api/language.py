"""Programs from texts: the text language, a second front end to the same terms, and prints read back.

    derive("declare A 2 x 1 expression A *(ij,j->i) x derivative wrt x")
    = (A, x) ↦ (a, d) ↦ A[a,d]

The language is that of F. Lippmann, Designing and Implementing a Tensor Calculus (Jena, 2022). Where its printed
grammar and its own examples disagree, the examples decide:

- A sum, a product and a power may have a single part; an order and a number are whole numbers without a point, too.
- Blanks may stand anywhere between symbols, in `*(ij, ij ->)` and `* (ij,j->i)` as well.
- A factor whose index string is empty although it has an order repeats the other's: `a *(i,->) b` of two vectors is
  `a *(i,i->) b`. A number, or a scalar, with an empty string is a scalar.
- An exponent may be a tensor of the order of its base.
- The name after `wrt` need not occur, nor be declared: the derivative is then 0.

A minus before a power negates the power; `a ^ b ^ c` is `a ^ (b ^ c)`; products and quotients group from the left.

Extensions, none of which changes the meaning of a text of the thesis:

- `declare A x`: an order that is left out follows from the use of the tensor.
- `declare A 2 symmetric z 1 complex`: symmetric under every exchange of axes; complex elements. With respect to a
  complex tensor the derivative is the pair (∂f/∂z, ∂f/∂z̄).
- `transpose(ijk->kij) X` and `sum(ij->i) X`, which bind like a unary minus; `conj(X)`.
- `derivative wrt A, x` gives both derivatives; `derivative wrt x wrt y` differentiates the derivative again.
- A text without `derivative`, for `parse`. Underscores in names. Comments from # to the end of the line.

Invariant: nothing is differentiated here; `derive` is `program.jacobian` of what `parse` gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from combdiff.api.programs import Program, finished
from combdiff.api.transforms import jacobian, simplify
from combdiff.errors import user_location
from combdiff.ir import (
    ZERO,
    Function,
    Lambda,
    Names,
    Space,
    Term,
    Tuple,
    lambda_,
    let,
    share,
    split,
    subterms,
    type_of,
    values_of,
)
from combdiff.records import dataclass
from combdiff.simplification import groups, one_warning, symbols
from combdiff.text import Span, Text, TextError, Wrt, infer, is_calculus, quoted, read_print, translate
from combdiff.text import read as read_text

__all__ = ["Derivation", "TextError", "derivation", "derive", "parse", "read"]

MOST_SYMBOLS, MOST_IN_ALL = 2000, 8000  # symbols of a derivative, in one binding and in all, that are simplified
MOST_IN_GROUP = 200  # symbols of terms of a long sum that are simplified together
MOST_NAMED = 200  # characters of names that a hint lists
MOST_CROSSED = 150  # nodes up to which the order of elimination is worth a search


def parse(text: str) -> Program:
    """The expression of a text as a program of its declared tensors, in their order.

    Sizes are named n, m, k, …: axes that the expression makes equal have one name. Raises TextError, with line and
    column, for a text that is not of the language or whose orders contradict each other.
    """
    return _program(read_text(text))


def read(text: str, spaces: Mapping[str, Space | Function] | None = None) -> Program:
    """The program that a print shows: index notation as `str` writes it, or matrix notation as `matrix()` does.

    `spaces` gives the Spaces of names; others are declared in front, `A symmetric (n, n), x (n)`, or their axes follow
    from how they are used, with sizes n, m, k, … ASCII spellings are read too: `sum_{i,j}`, `delta(i, j)`, `->`,
    `x'*A*x`, `norm2(A*x - y)^2`. `read(str(f), spaces)` has the value of f. Raises TextError, with line and column, for
    a text that is neither, and for one that does not tell over which domain an index runs.
    """
    found = read_print(text, spaces)
    return finished(found.term, "read", user_location(), found.inner)


@dataclass(frozen=True)
class Derivation:
    """What a text asks for: its expression, its derivative, and so on through every `wrt`.

    `names` are those of each derivative in turn, one tuple fewer than `steps`.
    """

    steps: tuple[Program, ...]
    names: tuple[tuple[str, ...], ...]


def derive(text: str) -> Program:
    """The derivative that a text asks for: result axes first, then those of the tensor after `wrt`.

    Several names after `wrt` give a tuple of derivatives; a complex tensor gives the pair (∂f/∂z, ∂f/∂z̄). Raises
    TextError as `parse` does, and for a text without `derivative wrt`.
    """
    found = read_text(text)
    first = _program(found)
    if not found.derivatives:
        raise TextError(
            "the text does not say what to differentiate by", text, len(text.rstrip()), hint="add: derivative wrt x"
        )
    return _steps(first, [(names, text) for names in found.derivatives])[-1]


def derivation(text: str, wrt: Sequence[str] = ()) -> Derivation:
    """The derivatives of a text in any of the three languages: the text calculus, index notation, matrix notation.

    A text of the calculus is one that begins with `declare`. Each string of `wrt`, `"x"` or `"A, x"`, asks for one more
    derivative after those that the text itself asks for. Raises TextError with the place in the text, or in that
    string.
    """
    found = read_text(text) if is_calculus(text) else None
    first = _program(found) if found else read(text)
    asked = [(names, text) for names in found.derivatives] if found else []
    asked += [(_names(each, first), each) for each in wrt]
    return Derivation(_steps(first, asked), tuple(tuple(name.name for name in names) for names, _ in asked))


@one_warning()
def _steps(first: Program, asked: Sequence[tuple[tuple[Wrt, ...], str]]) -> tuple[Program, ...]:
    """A program and its derivatives by names in turn, each with the text in which the names stand."""
    steps = [first]
    for names, source in asked:
        try:
            steps.append(_derivative(source, steps[-1], names))
        except RecursionError:
            raise TextError("the expression is too large to differentiate", source, names[0].span.start) from None
    return tuple(steps)


def _names(wrt: str, program: Program) -> tuple[Wrt, ...]:
    """The names of a list `A, x`, each one a parameter of the program."""
    parameters = [p.name for p in program.parameters]
    found, start = [], 0
    for part in wrt.split(","):
        name, first = part.strip(), start + len(part) - len(part.lstrip())
        start += len(part) + 1
        if name not in parameters:
            said = f"{quoted(name)} is not a tensor of the expression" if name else "a name is missing"
            known = ", ".join(parameters) or "none"
            known = known if len(known) <= MOST_NAMED else f"{known[:MOST_NAMED]}…"
            raise TextError(said, wrt, first, hint=f"its tensors are {known}")
        found.append(Wrt(name, Span(first, first + len(name))))
    return tuple(found)


def _program(text: Text) -> Program:
    try:
        term = translate(text, infer(text))
        return Program(Lambda(term.parameters, share(term.body)), "expression", user_location())
    except RecursionError:
        raise TextError("the expression is too large", text.source, text.expression.span.start) from None


def _derivative(source: str, program: Program, names: tuple[Wrt, ...]) -> Program:
    """The derivative by each name, which stand in the source; 0 by one that is not declared."""
    result = split(program.term.body)[1]
    if isinstance(result, Tuple):
        raise TextError(
            "what stands before has several results, which are not differentiated again",
            source,
            names[0].span.start,
        )
    declared = {p.name for p in program.parameters}
    known = tuple(name.name for name in names if name.name in declared)
    title = f"{_kind(program, known)}_{program.name}"
    if not known:
        zero = _zero(program.term.body)
        body: Term = Tuple((zero,) * len(names)) if len(names) > 1 else zero
        return Program(Lambda(program.term.parameters, body), title, program.location, is_derivative=True)
    points = known if len(names) > 1 else known[0]
    found = replace(_simplified(jacobian(program, points, _mode(program, known), simplify=False)), name=title)
    if len(known) == len(names):
        return found
    bindings, blocks = split(found.term.body)
    assert isinstance(blocks, Tuple)
    by_name = dict(zip(known, blocks.items, strict=True))
    items = tuple(by_name.get(name.name) or _zero(program.term.body) for name in names)
    return Program(
        Lambda(found.term.parameters, let(bindings, Tuple(items))), found.name, found.location, is_derivative=True
    )


def _kind(program: Program, wrt: tuple[str, ...]) -> str:
    """What a derivative is called: of a real number by real tensors a gradient."""
    spaces = [type_of(program.term.body), *(p.type for p in program.parameters if p.name in wrt)]
    real = all(isinstance(space, Space) and space.dtype is not complex for space in spaces)
    return "grad" if real and not getattr(spaces[0], "order", 1) else "jacobian"


def _mode(program: Program, wrt: tuple[str, ...]) -> str:
    """Any mode for a short program; for a long one the sweep, forward or backward, that starts at fewer axes."""
    if sum(1 for _ in subterms(program.term.body)) <= MOST_CROSSED:
        return "auto"
    orders = [p.type.order for p in program.parameters if p.name in wrt and isinstance(p.type, Space)]
    result = type_of(program.term.body)
    return "forward" if isinstance(result, Space) and max(orders) < result.order else "reverse"


def _simplified(program: Program) -> Program:
    """The program simplified unless it is so large that this would take minutes."""
    values = [value.body if isinstance(value, Lambda) else value for value in values_of(program.term.body)]
    short = all(symbols(v) <= MOST_SYMBOLS or max(map(symbols, groups(v))) <= MOST_IN_GROUP for v in values)
    return simplify(program) if short and sum(map(symbols, values)) <= MOST_IN_ALL else program


def _zero(body: Term) -> Term:
    """Zeros of the shape of a program's result: the derivative by a number it does not mention."""
    space = type_of(body)
    assert isinstance(space, Space)
    return lambda_(Names(body).indices(space.axes), ZERO)
