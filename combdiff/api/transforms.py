"""The transforms Program → Program: derivatives and simplification.

    f ──build a term by the B and C rules──► ──share──► let normal form ──simplify──► binding by binding, a Program

    form = (A, x) ↦ Σ_{i,j} x[i] A[i,j] x[j]          # before, A symmetric
    grad(form, wrt="x")                               # after: (A, x) ↦ d ↦ 2 Σ_i A[d,i] x[i]

Invariant: the parameters of f stay the parameters of the result, in order, and what `partial` fixed stays fixed;
cotangents and tangents are added last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import le
from typing import Any

import numpy as np

from combdiff.api.instantiation import resolved
from combdiff.api.programs import Program
from combdiff.differentiation import (
    as_field,
    derived,
    items,
    jacobian_block,
    modes_of,
    onto_spaces,
    pull,
    pulled_back,
    push,
    space_of,
)
from combdiff.errors import ArgumentError, DifferentiationError, UnsupportedError, shown
from combdiff.ir import (
    ONE,
    Function,
    Lambda,
    Names,
    Space,
    Term,
    Tuple,
    Var,
    apply,
    bind_heavy,
    conj,
    function,
    is_matrix_function,
    lambda_,
    let,
    letters_of,
    readable,
    share,
    split,
    subterms,
    type_of,
    values_of,
)
from combdiff.planning import cost
from combdiff.runtime import rough_plan
from combdiff.simplification import (
    Stops,
    factors_in_front,
    gathered,
    is_real,
    one_warning,
    outline,
    program_cost,
    rolled_up,
    rule_paths,
    simplify_body,
    stopped,
    symbols,
)

BYTES = 8  # of a number
ABOUT = 1.2  # times the least cost, to be about as little
CLEARLY = 1.1  # times as long as another, to be clearly longer
MOST_COMPARED = 200  # symbols of an outline up to which several equal derivatives are simplified, and then compared
Wrt = str | Sequence[str] | None


@one_warning()
def grad(
    f: Program, wrt: Wrt = None, *, convention: str = "conjugate", simplify: bool = True, rules: Iterable[str] = ()
) -> Program:
    """The gradient of a real scalar program: for complex arguments ∂f/∂Re + i ∂f/∂Im, the steepest ascent.

    `wrt` is a parameter name, a tuple of names (then the result is a tuple), or None for the first parameter.
    `convention="jax"` gives the complex conjugate. With `simplify=False` it is as the two rules for B and C leave it;
    `rules` are paths of rule files that are used beside the built-in ones. The gradient has the shape of the argument
    and lies in its Space. Raises DifferentiationError when f is not scalar, is neither of real type nor found real by
    the e-graph, or has no such parameter, and RuleError for a mistake in a rule file.
    """
    return gradient_of(f, wrt, convention, simplify, rule_paths(rules))


@one_warning()
def value_and_grad(
    f: Program, wrt: Wrt = None, *, convention: str = "conjugate", simplify: bool = True, rules: Iterable[str] = ()
) -> Program:
    """The pair (value, gradient), every intermediate shared; arguments and errors as for `grad`."""
    return gradient_of(f, wrt, convention, simplify, rule_paths(rules), with_value=True)


def gradient_of(
    f: Program,
    wrt: Wrt,
    convention: str,
    simplified: bool,
    rules: tuple[str, ...],
    *,
    with_value: bool = False,
    in_spaces: bool = True,
) -> Program:
    """The gradient as `grad` and `value_and_grad` give it.

    Without `in_spaces` it is the gradient of f as a function of all tensors, whatever their symmetries: what is to be
    differentiated again, and projected in the end.
    """
    if not isinstance(convention, str) or convention not in ("conjugate", "jax"):
        raise DifferentiationError(
            f"unknown convention {shown(convention)}", hint='use "conjugate" (the default) or "jax"'
        )
    check_objective(f, rules)
    f = reduced(f, simplified, rules)
    points = points_of(f, wrt)
    bindings, value = split(f.term.body)
    names = Names(f.term)
    backward, gradients = pull(f.term.body, points, ONE, names)
    if convention == "jax":
        gradients = [_conjugated(g, names) for g in gradients]
    if in_spaces:
        gradients = onto_spaces(points, gradients, names, backward)
    result = _result(gradients, wrt)
    if with_value:
        result = Tuple((_real_value(value), result))
    kind = "value_and_grad" if with_value else "grad"
    raw = Lambda(f.term.parameters, let((*bindings, *backward), result))
    return _derived(f, raw, kind, simplified, rules, paired=with_value, written_out=in_spaces)


@one_warning()
def pullback(f: Program, wrt: Wrt = None, *, simplify: bool = True, rules: Iterable[str] = ()) -> Program:
    """The vector-Jacobian product: one more argument, last, the cotangent k, shaped like the result.

    It is the gradient of Σ f·k for a constant k; of complex programs (∂f/∂z)*·k + (∂f/∂z̄)·k*. A program with several
    results takes one cotangent for each.
    That of a function of real numbers is a function, a field over `Real()`, and the pullback an integral. `wrt`,
    `simplify` and `rules` are as for `grad`. Raises DifferentiationError where f has no such parameter, and
    UnsupportedError for a program that returns a function of other tensors.
    """
    points = points_of(f, wrt)
    whole = replace(f, term=as_field(f.term, f.inner), inner=(), steps=None) if f.inner else f
    raw = Lambda(*pulled_back(whole.term, points, names_several(wrt)))
    return _derived(whole, raw, "pullback", simplify, rule_paths(rules))


@one_warning()
def pushforward(f: Program, wrt: Wrt = None, *, simplify: bool = True, rules: Iterable[str] = ()) -> Program:
    """The Jacobian-vector product: one more argument, last, for each wrt: its tangent.

    `wrt`, `simplify`, `rules` and errors are as for `grad`, but f may be a tensor. A tangent has the shape of its
    argument, and is trusted to have its symmetries.
    """
    return _pushed(f, wrt, points_of(f, wrt), simplify, rule_paths(rules))


@one_warning()
def hvp(f: Program, wrt: Wrt = None, *, simplify: bool = True, rules: Iterable[str] = ()) -> Program:
    """The Hessian-vector product of a real scalar program: the pushforward of its gradient; takes the vector last.

    Arguments and errors are as for `grad`. The product lies in the Space of the argument, and the vector is trusted to.
    """
    gradient = gradient_of(f, wrt, "conjugate", simplify, rule_paths(rules), in_spaces=False)
    return _pushed(gradient, wrt, points_of(f, wrt), simplify, rule_paths(rules), of_gradient=True)


def _pushed(
    f: Program, wrt: Wrt, points: tuple[Var, ...], simplified: bool, rules: tuple[str, ...], of_gradient: bool = False
) -> Program:
    names = Names(f.term)
    tangents = {p: names.parameter(Var(f"{p.name}_dot", p.type)) for p in points}
    forward, result = push(f.term.body, tangents, names)
    if of_gradient:
        result = _result(onto_spaces(points, items(result), names, forward), wrt)
    body = let((*split(f.term.body)[0], *forward), result)
    outer = [p for p in f.term.parameters if p.name not in f.inner]
    parameters = (*outer, *tangents.values(), *f.term.parameters[len(outer) :])
    return _derived(f, Lambda(parameters, body), "pushforward", simplified, rules)


@one_warning()
def jacobian(
    f: Program, wrt: Wrt = None, mode: str = "auto", *, simplify: bool = True, rules: Iterable[str] = ()
) -> Program:
    """The derivative of a tensor program: result axes first, then the axes of wrt (a tuple of names gives a tuple).

    With respect to a complex parameter it is the pair (∂f/∂z, ∂f/∂z̄). Of a program with several results it is the tuple
    of the derivatives of each: the jacobian of a Hessian, or of a jacobian, has their blocks, differentiated. `mode` is
    "reverse" (unit cotangents pulled back), "forward" (unit tangents pushed forward), "cross-country" (products of the
    derivatives of the bindings, the cheapest first) or "auto", which takes the one whose plan costs least. `simplify`
    and `rules` are as for `grad`. Raises DifferentiationError for another mode, or no such parameter.
    """
    f = reduced(f, simplify, rule_paths(rules))
    points = points_of(f, wrt)

    def body(mode: str) -> Term:
        base = bind_heavy(f.term.body) if mode == "cross-country" else f.term.body
        names = Names(base, *f.term.parameters)
        bindings, value = split(base)
        known = dict.fromkeys(bindings)

        def derivative(result: Term) -> Term:
            if isinstance(result, Tuple):
                return Tuple(tuple(map(derivative, result.items)))
            blocks = [jacobian_block(let(bindings, result), point, mode, names) for point in points]
            known.update(dict.fromkeys(binding for more, _ in blocks for binding in more))
            return _result([block for _, block in blocks], wrt)

        found = derivative(value)
        return let(known, found)

    term, raw = cheapest(f, [body(each) for each in modes_of(mode)], simplify, rule_paths(rules))
    name, given = f"jacobian_{f.name}", rule_paths(rules)
    return Program(term, name, f.location, f.fixed, f.accesses, raw, given, f.inner, is_derivative=True)


def cheapest(
    f: Program, bodies: Iterable[Term], simplified: bool, rules: tuple[str, ...]
) -> tuple[Lambda, Term | None]:
    """The derivative that costs least among equal ones, and the body it was simplified from, None if it was not.

    Of simplified ones that cost about as little the shortest is taken. Which are worth simplifying their outlines tell.
    """
    found: dict[Lambda, Stops] = {}
    raw: dict[Lambda, Term] = {}
    bodies = list(dict.fromkeys(bodies))
    for body in _promising(bodies) if simplified and len(bodies) > 1 else bodies:
        with gathered() as stops:
            raw_program = Lambda(f.term.parameters, body)
            term = derived(f.term, raw_program, rules if simplified else None, traced=f.steps)
        if term not in found:
            found[term], raw[term] = stops, body
    costs = {term: _total_cost(term) for term in found} if len(found) > 1 else dict.fromkeys(found, 0)
    least = min(costs.values()) * (ABOUT if simplified else 1)
    term = min((t for t in costs if costs[t] <= least), key=symbols if simplified else costs.__getitem__)
    for limit, name in found[term]:  # a budget met by what is not taken is nobody's business
        stopped(limit, name)
    return term, raw[term] if simplified else None


def _promising(bodies: Sequence[Term]) -> Sequence[Term]:
    """Of equal bodies those worth simplifying: where outlines are long, the shortest of those that take least work,
    about; otherwise each but those beside which another is clearly shorter, and is so, for no more work, with factors
    in front, too."""
    outlines = {body: outline(body) for body in bodies}
    sizes = {body: _size(outlines[body]) for body in bodies}
    if min(length for length, _ in sizes.values()) > MOST_COMPARED:
        least = min(work for _, work in sizes.values())
        return [min((body for body in bodies if sizes[body][1] <= ABOUT * least), key=lambda body: sizes[body][0])]
    firsts: dict[tuple[float, ...], Term] = {}
    for body in bodies:
        firsts.setdefault((*sizes[body], *_size(factors_in_front(outlines[body]))), body)

    def is_beaten(own: tuple[float, ...]) -> bool:
        return any(CLEARLY * other[0] <= own[0] and all(map(le, other, own)) for other in firsts)

    return [body for own, body in firsts.items() if not is_beaten(own)]


def _size(body: Term) -> tuple[int, float]:
    """The symbols of a let program, and its work."""
    return sum(map(symbols, values_of(body))), program_cost(body)


@one_warning()
def simplify(f: Program, rules: Iterable[str] = (), *, rolled: bool = False) -> Program:
    """The program simplified by equality saturation; `rules` are paths of rule files used beside the built-in ones.

    With `rolled`, Python's loops that do the same step three times or more are recurrences, as `scan` makes them: what
    a step computes is the same but for the values of the step before, for whole numbers that count the steps, and for
    what is another tensor in each step. Such a program has the same value, computed by the same operations; it prints
    and differentiates in a time that does not grow with the steps. A program without such loops is simplified alone.
    Raises DifferentiationError where f is no Program or `rolled` no truth value.
    """
    _check_program(f)
    if not isinstance(rolled, bool):
        raise DifferentiationError(f"rolled is {shown(rolled)}", hint="write rolled=True or rolled=False")
    raw = _rolled(f) if rolled else f.term.body
    body = simplify_body(raw, rule_paths(rules))
    term = readable(Lambda(f.term.parameters, body), letters_of(f.term))
    return replace(f, term=term, raw=raw, rules=rule_paths(rules), steps=None)


def _rolled(f: Program) -> Term:
    """A program's let form with its loops as scans, from what was traced, where it is known."""
    traced, own = f.steps or (f.term.body, {})
    found = rolled_up(traced, own)
    return f.term.body if found is traced else share(resolved(found, Names(found)), own)


# --- what the transforms share -------------------------------------------------------------------------------------


def reduced(f: Program, simplified: bool, rules: tuple[str, ...]) -> Program:
    """f to be differentiated: matrix functions in it are simplified before, det(A X) to det(A) det(X), so that their
    derivatives are those of the literature; a product of matrices that is one binding shows its symmetries, too."""
    _check_program(f)
    _check_simplified(simplified)
    if not simplified or f.raw is not None or not any(map(is_matrix_function, subterms(f.term))):
        return f
    reduced_body = simplify_body(f.term.body, rules, written_out=False)
    return replace(f, term=Lambda(f.term.parameters, reduced_body), steps=None)


def _check_simplified(value: object) -> None:
    if not isinstance(value, int | np.bool_):  # True and False are whole numbers
        raise ArgumentError(f"simplify={shown(value)} is neither True nor False")


def _derived(f: Program, raw: Lambda, kind: str, simplified: bool, rules: tuple[str, ...], **how: bool) -> Program:
    """The program of a raw derivative of f; `how` it is to be simplified `derived` says."""
    _check_simplified(simplified)
    term = derived(f.term, raw, rules if simplified else None, traced=f.steps, **how)
    made_of = raw.body if simplified else None
    name = f"{kind}_{f.name}"
    return Program(term, name, f.location, f.fixed, f.accesses, made_of, rules, f.inner, is_derivative=True)


def _total_cost(term: Lambda) -> int:
    """Operations on numbers and numbers written, at typical sizes; symbols where arrays cannot express the program."""
    try:
        return sum(step.flops + step.bytes // BYTES for step in cost(rough_plan(term)))
    except UnsupportedError:
        return symbols(term)


def points_of(f: Program, wrt: Wrt) -> tuple[Var, ...]:
    """The parameters that wrt names."""
    _check_program(f)
    known = {p.name: p for p in f.parameters}
    if wrt is None:
        wanted: list[Any] = list(known)[:1]
    else:
        wanted = list(wrt) if isinstance(wrt, tuple | list) else [wrt]
    for name in wanted:
        if not isinstance(name, str):
            raise DifferentiationError(f"wrt names a parameter by {shown(name)}", hint='give its name, such as wrt="x"')
        if name not in known:
            raise DifferentiationError(
                f"{f.name} has no parameter {shown(name)} to differentiate by",
                hint=f"its parameters are {', '.join(known)}",
            )
    if not wanted:
        raise DifferentiationError(f"nothing to differentiate {f.name} by")
    twice = [name for n, name in enumerate(wanted) if name in wanted[:n]]
    if twice:
        raise DifferentiationError(f"wrt names {twice[0]!r} twice")
    points = tuple(known[name] for name in wanted)
    for point in points:
        if isinstance(point.type, Function):
            raise UnsupportedError(f"{point.name} is a named map; only derivatives by tensors can be taken")
        if space_of(point).dtype is int:
            raise DifferentiationError(
                f"{point.name} holds integers, which have no derivative", hint="declare it with dtype=float"
            )
    return points


def _check_program(f: object) -> None:
    if not isinstance(f, Program):
        raise DifferentiationError(
            f"a Program was expected, not {shown(f)}", hint="decorate the function with @combdiff.program first"
        )


def check_objective(f: Program, rules: tuple[str, ...]) -> None:
    """Refuse what is no Program with one real scalar result."""
    _check_program(f)
    if f.inner:
        raise DifferentiationError(
            f"grad needs a program with one scalar result, but {f.name} gives a function of {', '.join(f.inner)}",
            hint=f"call the function inside a program, or use pullback, pushforward or jacobian of {f.name}",
        )
    found = type_of(f.term.body)
    if not isinstance(found, Space) or found.order:
        what = (
            f"{len(found)} results" if isinstance(found, tuple) else f"a tensor of order {getattr(found, 'order', '?')}"
        )
        raise DifferentiationError(
            f"grad needs a program with one scalar result, but {f.name} gives {what}",
            hint="use pullback or jacobian, or sum the result",
        )
    if not is_real(f.term.body, rules):
        raise DifferentiationError(
            f"grad needs a real objective, but {f.name} is complex and is not found equal to its conjugate",
            hint="declare the symmetries that make it real, or return cd.real(…) of it",
        )


def _result(terms: list[Term], wrt: Wrt) -> Term:
    return Tuple(tuple(terms)) if names_several(wrt) else terms[0]


def names_several(wrt: Wrt) -> bool:
    """Whether the derivative is by a tuple of names, and so a tuple."""
    return not (wrt is None or isinstance(wrt, str))


def _real_value(value: Term) -> Term:
    """The value of an objective that is real, as a real number."""
    space = space_of(value)
    return function("real", value) if space.dtype is complex else value


def _conjugated(gradient: Term, names: Names) -> Term:
    space = space_of(gradient)
    if space.dtype is not complex:
        return gradient
    indices = names.indices(space.axes)
    return lambda_(indices, conj(apply(gradient, indices)))
