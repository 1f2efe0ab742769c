"""Steps done over and over inside a program.

    cd.scan(lambda x, u: (A @ x + u, x), x0, u)     last state   Scan((t, x) ↦ (A @ x + u[t]), (x0,), "last", 0)
                                                    of all steps t ↦ Scan(…, "before", 0)[t]

The step is called once, on traced values, and may mention every value of the program around it. What it gives beside
the next states is computed from the states for all steps at once, unless that would do the work of the step again.

Invariant: the states keep their axes, their element type and the way they are put together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from math import nan
from typing import Any

from combdiff.errors import SpaceError, TraceError, TypeMismatchError, shown
from combdiff.ir import (
    AFTER,
    BEFORE,
    LAST,
    Lambda,
    Primitive,
    Range,
    Scan,
    Space,
    Sum,
    Term,
    Tuple,
    Var,
    apply,
    at_step,
    axes_of,
    is_call,
    join,
    lambda_,
    put_back,
    solves,
    substitute,
    subterms,
)
from combdiff.tracing.arrays import element, expanded
from combdiff.tracing.context import Trace, current, show_domain, show_space
from combdiff.tracing.functions import check_takes
from combdiff.tracing.indices import Condition
from combdiff.tracing.truths import Truth, where
from combdiff.tracing.values import Value, as_size, lift, wrap

Step = Callable[[Any, Any], object]


def scan(step: Step, init: object, xs: object = None, length: int | str | None = None) -> tuple[Any, Any]:
    """`(carry, ys)`: step(carry, x) → (next carry, y) done once for each x, from first to last, beginning with init.

    `init`, `xs` and y are tensors or numbers of the program, tuples of them, or None; xs are read along their first
    axes, of one length, or None where `length`, a number or the name of a size, tells it. The last carry is given, and
    the y's of all steps along a new first axis. step is a Python function on traced values; what it reads from outside
    is differentiated as well. Raises TypeMismatchError where a step gives a carry of another type than it takes or
    lengths differ, and TraceError where step is no function or gives no pair.
    """
    trace = current("cd.scan")
    if not callable(step) or isinstance(step, Value):
        raise TraceError(
            f"cd.scan takes a function of a carry and an x, not {shown(step)}",
            hint="write cd.scan(lambda carry, x: (next_carry, y), init, xs)",
        )
    check_takes(step, "the step of cd.scan", "a carry", "an x")
    starts = tuple(lift(leaf) for leaf in _leaves(init))
    inputs = tuple(lift(leaf) for leaf in _leaves(xs))
    index = trace.names.fresh(Var("t", _steps(inputs, length)))
    names = _names(step, starts)
    states = tuple(trace.names.fresh(_state(name, start, float)) for name, start in zip(names, starts, strict=True))
    try:
        while True:  # again where a step makes complex what begins real: then that state is complex
            slices = iter([wrap(_slice(tensor, index, trace)) for tensor in inputs])
            given = step(_like(init, iter([wrap(state) for state in states])), _like(xs, slices))
            after, out = _pair(given)
            following = tuple(lift(leaf) for leaf in _leaves(after))
            _check_carry(init, after, states, following)
            dtypes = [wrap(term).space.dtype for term in following]
            taken, states = states, tuple(_state(v.name, v, dtype) for v, dtype in zip(states, dtypes, strict=True))
            if taken == states:
                break
            trace.stepped.update({*taken} - {*states})
        outputs = tuple(expanded(lift(leaf)) for leaf in _leaves(out))
    finally:
        trace.stepped.update((index, *states))
    iteration = _TracedLoop(trace, index, states, tuple(map(expanded, following)), starts, outputs)
    last = iter([wrap(term) for term in iteration.last()])
    return _like(init, last), _like(out, iter([wrap(term) for term in iteration.collected()]))


def while_loop(
    condition: Callable[[Any], object], step: Callable[[Any], object], init: object, limit: int | str
) -> Any:
    """The carry after step(carry) → next carry has been done as long as condition(carry) holds, at most `limit` times.

    `init` is a tensor or number of the program, or a tuple of them, and the condition one comparison of numbers, as in
    `carry[0] > 0`. `limit` is a number or the name of a size: as many steps are there, of which those after the last
    one change nothing, so that derivatives of both modes are those of the steps that are done. NumPy leaves the loop
    over the states there, and JAX where no states are kept, as in values and derivatives forward; elsewhere all `limit`
    steps are computed. The count does not change with the arguments where a
    derivative is taken: the derivative by what is compared is 0. Where the condition holds still after `limit` steps,
    the result and its derivatives are nan. Raises TraceError where condition or step is no function or the condition
    gives no comparison, and TypeMismatchError as `scan` does.
    """
    current("cd.while_loop")
    for name, given in (("condition", condition), ("step", step)):
        if not callable(given) or isinstance(given, Value):
            raise TraceError(
                f"cd.while_loop takes a function of the carry as its {name}, not {shown(given)}",
                hint="write cd.while_loop(lambda x: x > 1, lambda x: x / 2, x0, limit=100)",
            )
        check_takes(given, f"the {name} of cd.while_loop", "a carry")

    def bounded(carry: Any, _: Any) -> tuple[Any, None]:
        holds, after = _comparison(condition(carry)), step(carry)
        if _form(after) != _form(carry):
            raise TypeMismatchError(
                f"the step of cd.while_loop gives a carry {_form(after)}, but takes one {_form(carry)}",
                hint="return the next carry put together as init is",
            )
        pairs = zip(_leaves(after), _leaves(carry), strict=True)
        return _like(carry, iter([where(holds, new, old) for new, old in pairs])), None

    bounded.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what the states are called
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in (_carry_name(step), "_")]
    )
    last, _ = scan(bounded, init, length=limit)
    known = where(_comparison(condition(last)), nan, 1)  # a factor, so that derivatives are nan, too
    return _like(last, iter([known * leaf for leaf in _leaves(last)]))


def _comparison(given: object) -> object:
    """What a condition gives. Raises TraceError unless it is one comparison."""
    if not isinstance(given, bool | Condition | Truth) or (isinstance(given, Truth) and given.space.axes):
        raise TraceError(
            f"the condition of cd.while_loop gives {shown(given)}",
            hint="compare numbers, such as `x > 0`; of a tensor compare a sum or its largest element",
        )
    return given


# --- tuples of tensors ---------------------------------------------------------------------------------------------


def _leaves(value: object) -> Iterator[object]:
    """The tensors and numbers in a tuple of them, from left to right; None holds none."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value


def _like(value: object, leaves: Iterator[Any]) -> Any:
    """A tuple of other tensors put together in the same way."""
    if isinstance(value, tuple | list):
        items = [_like(item, leaves) for item in value]
        return items if isinstance(value, list) else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return None if value is None else next(leaves)


def _form(value: object) -> str:
    """How a tuple is put together, for messages: `(·, (·, ·))`."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_form, value))}{',' if len(value) == 1 else ''})"
    return "None" if value is None else "·"


# --- what is asked of the parts ------------------------------------------------------------------------------------


def _steps(inputs: tuple[Term, ...], length: int | str | Value | None) -> Range:
    """The numbers of the steps. Raises TypeMismatchError where they are not told, or told differently."""
    told: Range | None = None
    if isinstance(length, Value):
        length = as_size(length)
    if length is not None:
        try:
            told = Range(length)
        except SpaceError:
            raise TypeMismatchError(
                f"the length of cd.scan is {shown(length)}", hint='give a number of steps, or the name of a size: "T"'
            ) from None
    for tensor in inputs:
        first = axes_of(tensor)[:1]
        if not first or not isinstance(first[0], Range):
            found = f"has {show_domain(first[0])} there" if first else "is a number"
            raise TypeMismatchError(
                f"cd.scan reads its xs along their first axis, but one of them {found}",
                hint="give tensors whose first axis is the steps; what is the same for all may be read from outside",
            )
        if told is not None and told != first[0]:
            raise TypeMismatchError(
                f"cd.scan takes {show_domain(told)} steps, but an x has {show_domain(first[0])} along its first axis",
                hint="give all xs one length, and leave `length` out or give it too",
            )
        told = first[0]
    if told is None:
        raise TypeMismatchError("cd.scan is told no number of steps", hint="give xs, or length=…")
    return told


def _names(step: Step, starts: tuple[Term, ...]) -> list[str]:
    """What the states are called: the carry as the step calls it, the parts of a tuple as they are called before."""
    carry = _carry_name(step)
    if len(starts) == 1:
        return [carry]
    return [start.name if isinstance(start, Var) else f"{carry}{n}" for n, start in enumerate(starts)]


def _carry_name(step: Callable[..., Any]) -> str:
    """What a step calls the carry."""
    try:
        return next(iter(inspect.signature(step).parameters), "x")
    except (TypeError, ValueError):  # a callable that Python knows no signature of
        return "x"


def _state(name: str, like: Term, dtype: type) -> Var:
    """The variable of a state: of the axes of a term, without symmetries, its numbers of the kind that holds both."""
    space = wrap(like).space
    return Var(name, Space(*space.axes, dtype=join(space.dtype, dtype)))


def _slice(tensor: Term, index: Var, trace: Trace) -> Term:
    own = trace.fresh_indices(axes_of(tensor)[1:])
    return lambda_(own, element(tensor, (index, *own)))


def _pair(given: object) -> tuple[object, object]:
    if not isinstance(given, tuple) or len(given) != 2:
        found = f"{len(given)} values" if isinstance(given, tuple) else f"one value, {shown(given)}"
        raise TraceError(
            f"the step of cd.scan gives {found}, not a pair", hint="return (next_carry, y), with None for no y"
        )
    return given


def _check_carry(init: object, after: object, states: tuple[Var, ...], following: tuple[Term, ...]) -> None:
    """Raises TypeMismatchError unless the step gives a carry of the type that it takes."""
    if _form(init) != _form(after):
        raise TypeMismatchError(
            f"the step of cd.scan gives a carry {_form(after)}, but takes one {_form(init)}",
            hint="return the next carry put together as init is",
        )
    for state, term in zip(states, following, strict=True):
        taken, found = wrap(state).space, wrap(term).space
        if taken.axes != found.axes:
            raise TypeMismatchError(
                f"the step of cd.scan takes a carry that is {show_space(taken)}, "
                f"but gives one that is {show_space(found)}",
                hint="begin with a carry of the axes that the steps give",
            )


# --- results -------------------------------------------------------------------------------------------------------


class _TracedLoop:
    """A traced step; `following` are the next states, `outputs` what else it gives."""

    def __init__(
        self,
        trace: Trace,
        index: Var,
        states: tuple[Var, ...],
        following: tuple[Term, ...],
        starts: tuple[Term, ...],
        outputs: tuple[Term, ...],
    ) -> None:
        self.trace, self.index, self.states = trace, index, states
        self.outputs = outputs
        again = {node for term in following for node in subterms(term) if self._is_heavy(node)}
        self.inside = [y for y in dict.fromkeys(outputs) if solves(y) or not again.isdisjoint(subterms(y))]
        self.places = {term: n for n, term in reversed(list(enumerate((*following, *self.inside))))}
        step = Lambda((index, *states), Tuple((*following, *self.inside)))
        self.scan = Scan(step, starts, LAST, 0)

    def _is_heavy(self, node: Term) -> bool:
        """Whether a part of the step is worth computing once: a Σ or a function of the states."""
        return (isinstance(node, Sum | Primitive) or is_call(node)) and not node.free.isdisjoint(self.states)

    def last(self) -> Iterator[Term]:
        """The last states."""
        return (self.scan.result(LAST, n) for n in range(len(self.states)))

    def collected(self) -> Iterator[Term]:
        """What all steps give beside the states, each along a new first axis."""
        for output in self.outputs:
            index = self.trace.names.fresh(self.index)
            own = self.trace.fresh_indices(axes_of(output))
            if output in self.places and (self.states or solves(output)):
                yield self.scan.result(AFTER, self.places[output])
            else:
                body = substitute(output, {self.index: index})
                stacks = (self.scan.result(BEFORE, n) for n in range(len(self.states)))
                pairs = zip(self.states, stacks, strict=True)
                body = put_back(body, {x: at_step(stack, index, x, self.trace.names) for x, stack in pairs})
                yield Lambda((index, *own), apply(body, own))
