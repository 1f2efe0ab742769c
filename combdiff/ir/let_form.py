"""Normal form of a program: a let list of tensors, in which whatever is used twice is computed once.

    x ↦ exp(Σ_i x[i]) + sin(Σ_j x[j])
    = x ↦ let t = Σ_i x[i] in exp(t) + sin(t)

Traced programs and raw derivatives are graphs: the same heavy part (one with a Σ or a function in it) may stand in
several places, under different names of the indices around it. `share` binds every heavy part, abstracted over the
indices it mentions, so that equal parts become one binding; then it puts back those that are used only once.

Invariant: the result is a `Let` of bindings whose values are scalars, or abstractions over indices with scalar
bodies; no let, no tuple and no applied abstraction occurs inside a body, and a matrix function is one of a variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from combdiff.ir.domains import Range, Space, Whole
from combdiff.ir.implicit import Implicit
from combdiff.ir.indices import Coordinate
from combdiff.ir.inlining import (
    free_indices,
    inline_all,
    inline_single_uses,
    is_call,
    is_field,
    put_back,
    solves,
    split,
    uses,
    whole_calls,
)
from combdiff.ir.iteration import AFTER, BEFORE, LAST, Scan
from combdiff.ir.matrix_functions import element, is_decomposition, is_matrix_function, matrices_in
from combdiff.ir.primitives import whole_power
from combdiff.ir.read_forms import at_read_forms
from combdiff.ir.relations import Relation
from combdiff.ir.remainders import is_divided_index, read_around
from combdiff.ir.reuse import repeated_in, settled
from combdiff.ir.steps import OpenStep, at_every_step, at_histories, at_step, for_all_indices, opened, with_symbol
from combdiff.ir.substitution import Names, apply, holds_delta, substitute, subterms
from combdiff.ir.terms import (
    Add,
    Apply,
    Lambda,
    Let,
    Mul,
    Number,
    OverIndices,
    Primitive,
    Sum,
    Term,
    Tuple,
    Var,
    lambda_,
    let,
    remembered,
)
from combdiff.ir.types import is_domain, type_of, whole_tensor
from combdiff.ir.waves import is_wave

__all__ = [
    "bind_heavy",
    "canonical_names",
    "free_indices",
    "inline_all",
    "inline_single_uses",
    "is_call",
    "is_field",
    "put_back",
    "share",
    "solves",
    "split",
    "used",
    "uses",
    "whole_calls",
]

DEEP = 40  # variables bound in one another, from which on a term is gone through part by part


def used(bindings: Sequence[tuple[Var, Term]], result: Term) -> list[tuple[Var, Term]]:
    """The bindings that a result needs."""
    wanted, kept = set(result.free), []
    for var, value in reversed(bindings):
        if var in wanted:
            kept.append((var, value))
            wanted |= value.free
    return kept[::-1]


def share(body: Term, names: Mapping[Term, str] | None = None) -> Term:
    """The normal form of a program's body; `names` suggests names for tensors that become bindings."""
    return inline_single_uses(bind_heavy(body, names)) if names else _shared(body)


@remembered
def _shared(body: Term) -> Term:
    return inline_single_uses(bind_heavy(body))


def bind_heavy(body: Term, names: Mapping[Term, str] | None = None) -> Term:
    """The body with every heavy part bound, those that are used once too; `names` as for `share`."""
    body = settled(body)
    binder = _LetBinder(body, names or {})
    binder.prepare(body)
    result = binder.result(body)
    return let(((var, value) for value, var in binder.bound.items()), result)


_Hint = str | Var  # a name to begin with, or the variable that is bound to a part already


# --- binding every heavy part --------------------------------------------------------------------------------------


class _LetBinder:
    """Replaces heavy parts by accesses to bindings; alpha-equal parts get the same one."""

    def __init__(self, body: Term, hints: Mapping[Term, _Hint], outer: _LetBinder | None = None) -> None:
        self.names: Names = outer.names if outer else Names(body)
        self.own: set[str] = outer.own if outer else _bound_once(body)  # names that their bindings may keep
        self.axes: dict[Term, tuple[Var, ...]] = {}  # the indices of what is bound already, in the order of its axes
        self.hints: dict[Term, _Hint] = {}
        for term, name in hints.items():
            self.suggest(name, term)
        self.bound: dict[Term, Var] = {}
        self.variables: set[Var] = set()
        self.by_form: dict[Term, Var] = {}
        self.scalars: dict[Term, tuple[Var, tuple[int, ...]]] = {}  # their bindings, with the order of the axes there
        self.done: dict[Term, Term] = {}
        self.scans: dict[Term, Scan] = {}
        self.repeated: set[Term] = outer.repeated if outer else set()  # sums that are computed once, as if heavy

    def suggest(self, name: _Hint, value: Term) -> None:
        """A name for a value, for the elements of a tensor and for the decomposition they are of, if they have none."""
        inner = value.body if isinstance(value, Lambda) else value
        decomposition = inner.children[:1] if isinstance(inner, Apply) and is_decomposition(inner.children[0]) else ()
        for part in (value, inner, *decomposition):
            self.hints.setdefault(part, name)
        if isinstance(name, Var) and isinstance(value, Lambda):
            self.axes.setdefault(inner, value.parameters)

    def prepare(self, body: Term) -> None:
        """Bind parts from the inside out, so that they may be nested deeper than Python's stack."""
        parts = list(subterms(body))
        self.repeated = {part for part in repeated_in(parts) if isinstance(part, Add)}
        for part in parts:
            for var, value in part.bindings if isinstance(part, Let) else ():
                self.suggest(var, value)
        named = {var for part in parts for var in part.bound if not is_domain(var.type)}
        for part in parts:
            inner = part.body if isinstance(part, Lambda) else part
            if isinstance(part, Lambda | Sum | Primitive) and inner.free.isdisjoint(named):
                self.scalar(inner)

    def result(self, term: Term) -> Term:
        """A program's result: a tuple of tensors, a tensor, a scalar, perhaps under a let."""
        if isinstance(term, Let):
            return self.result(self._unlet(term))
        if isinstance(term, Tuple):
            return Tuple(tuple(self.result(item) for item in term.items))
        if isinstance(term, Lambda):
            return Lambda(term.parameters, self.scalar(term.body))
        return self.scalar(term)

    def scalar(self, term: Term) -> Term:
        """A scalar term with its heavy parts replaced."""
        if term not in self.done:
            self.done[term] = self._node(term)
        return self.done[term]

    def _node(self, term: Term) -> Term:
        if isinstance(term, Let):
            return self.scalar(self._unlet(term))
        if isinstance(term, Apply) and isinstance(term.function, Lambda):
            return self._applied(term.function, term.arguments)
        if isinstance(term, Lambda):  # an argument of a named map
            return Lambda(term.parameters, self.scalar(term.body))
        if is_matrix_function(term):
            return self._matrix_function(term)
        if isinstance(term, Implicit):
            return self._implicit(term, self.hints.get(term, base_name(term.unknown)))
        if isinstance(term, Scan):
            return self._scan(term, self.hints.get(term, base_name(_named_after(term))))
        children = tuple(self.scalar(child) for child in term.children)
        if isinstance(term, Apply) and isinstance(term.function, Scan):
            return apply(children[0], children[1:])
        if isinstance(term, Apply) and is_matrix_function(term.function):
            return apply(children[0], children[1:])
        if whole_power(term)[0] is not term and holds_delta(children[0]):
            # Powers of one sum with a δ meet, and are one, as powers of its name: each is multiplied out elsewhere.
            base = self._bind_scalar(children[0], self.hints.get(term.children[0], "t"))
            return term.with_children((base, *children[1:]))
        new = term.with_children(children)
        if is_call(new):
            return self._bind_call(new, self.hints.get(term, _call_name(new)))
        heavy = self._heavy(new) or term in self.repeated
        return self._bind_scalar(new, self.hints.get(term, "t"), self.axes.get(term, ())) if heavy else new

    def _heavy(self, term: Term) -> bool:
        if isinstance(term, Primitive):
            return not is_light_primitive(term) and not is_matrix_function(term)
        if isinstance(term, Add | Mul) and any(isinstance(child, type(term)) for child in term.children):
            return True  # a product in a product is a shared one, see `terms.mul`
        if isinstance(term, Add):
            return any(self._mentions_binding(child) for child in term.children)
        return isinstance(term, Sum) and read_around(term) is None

    def _mentions_binding(self, term: Term) -> bool:
        return not term.free.isdisjoint(self.variables)

    def _unlet(self, term: Let) -> Term:
        """Each binding of an inner let, bound here with its name; the body with the references replaced."""
        replacement: dict[Var, Term] = {}
        for var, value in term.bindings:
            value = substitute(value, replacement)
            self.suggest(var, value)
            if not isinstance(value, Lambda):
                inner = self.scalar(value)
                stands = is_call(value) or self._is_named(inner, var)
                replacement[var] = inner if stands else self._bind_scalar(inner, var)
                continue
            parameters, inner = value.parameters, self.scalar(value.body)
            same = whole_tensor(inner, parameters)
            if same is not None and self._is_named(same, var):
                replacement[var] = same
                continue
            outer = free_indices(Lambda(parameters, inner))
            bound = self._bind(Lambda((*outer, *parameters), inner), var)
            replacement[var] = Lambda(parameters, Apply(bound, (*outer, *parameters))) if outer else bound
        return substitute(term.body, replacement)

    def _is_named(self, term: Term, var: Var) -> bool:
        """Whether a term is a binding that has kept the name of that variable."""
        return isinstance(term, Var) and term.name == var.name and term in self.variables

    def _applied(self, function: Lambda, arguments: tuple[Term, ...]) -> Term:
        inner = self.scalar(function.body)
        if not self._worth_binding(inner):
            return apply(Lambda(function.parameters, inner), arguments)
        outer = free_indices(Lambda(function.parameters, inner))
        var = self._bind(lambda_((*outer, *function.parameters), inner), self.hints.get(function, "t"))
        return apply(var, (*outer, *arguments))

    def _decomposed(self, term: Term, name: _Hint) -> Var:
        """The binding of a decomposition of a variable."""
        indices = self.names.indices(_space_of(term).axes)
        return self._bind(Lambda(indices, Apply(term, indices)), name)

    def _matrix_function(self, term: Term) -> Term:
        """A matrix function of a variable: where its matrix depends on indices around it, of the stack of all of them.

        It is not bound itself: lowering computes equal ones once, and laws see what it is a function of. A
        decomposition is, so that what arrives from all of its uses is added up before it goes through its derivative.
        """
        (matrix,) = term.children
        name = self.hints.get(term, "t")
        if isinstance(matrix, Var):
            return self._decomposed(term, name) if is_decomposition(term) else term
        indices = self.names.indices(_space_of(matrix).axes)
        inner = self.scalar(apply(matrix, indices))
        outer = free_indices(Lambda(indices, inner))
        whole = whole_tensor(inner, (*outer, *indices))
        hint = self.hints.get(matrix, "t")
        var = whole if isinstance(whole, Var) else self._bind(Lambda((*outer, *indices), inner), hint)
        result = term.with_children((var,))
        if is_decomposition(result):
            result = self._decomposed(result, name)
        if not outer:
            return result
        rest = self.names.indices(_space_of(result).axes[len(outer) :])
        return lambda_(rest, element(result, (*outer, *rest)))

    def _worth_binding(self, term: Term) -> bool:
        """An access to a tensor, renamed or transposed or around an axis, needs no binding of its own."""
        return not isinstance(term, Apply | Number | Var) and read_around(term) is None

    def _bind_call(self, term: Term, name: _Hint) -> Term:
        """A call of a named map; one that gives a tensor for every index around it cannot be bound as one tensor."""
        space = type_of(term)
        assert isinstance(space, Space)
        if not space.order:
            return self._bind_scalar(term, name)
        return term if free_indices(term) else self._bind(term, name)

    def _implicit(self, term: Implicit, name: _Hint) -> Term:
        """An equation in let normal form; what does not mention the unknown is bound outside, and computed once."""
        inner = _LetBinder(term.equation, self.hints, self)
        body = inner.result(term.equation)
        outside: dict[Var, Term] = {}
        inside: list[tuple[Var, Term]] = []
        for value, var in inner.bound.items():
            value = substitute(value, outside)
            if value.free.isdisjoint((term.unknown, *(v for v, _ in inside))):
                outside[var] = self._bind(value, base_name(var))
            else:
                inside.append((var, value))
        equation = inline_single_uses(let(inside, substitute(body, outside)))
        given = self.scalar(term.given)
        return self._bind_call(Implicit(term.kind, Lambda((term.unknown,), equation), given), name)

    def _scan(self, term: Scan, name: _Hint) -> Term:
        """A result of a scan; under indices, of one scan for all of their values, unless its steps solve equations."""
        outer = free_indices(term)
        if not outer:
            return self._bind_call(self._iteration(term).result(term.kind, term.component), name)
        if solves(term) and isinstance(outer[-1].type, Range):
            return self._one_by_one(term, outer[-1], name)
        return for_all_indices(term, lambda whole: self._scan(whole, name), self.names)

    def _one_by_one(self, term: Scan, index: Var, name: _Hint) -> Term:
        """A result of a scan for each value of an index: a scan without states around it."""
        step = self.names.fresh(index)
        each = Scan(Lambda((step,), Tuple((substitute(term, {index: step}),))), (), AFTER, 0)
        axes = self.names.indices(_space_of(term).axes)
        return lambda_(axes, apply(self._scan(each, name), (index, *axes)))

    def _iteration(self, term: Scan) -> Scan:
        """A scan whose step is in let normal form, the same for all of its results.

        What does not mention the states is bound outside and computed once: for all steps, if it mentions the index.
        """
        form = iteration_of(term)
        if form not in self.scans:
            assert isinstance(term.step, Lambda)
            symbol, body = with_symbol(term.step, self.names)
            inner = _LetBinder(body, self.hints, self)
            result = inner.result(body)
            body = inline_single_uses(self._hoisted(inner.bound, result, term, symbol))
            step = Lambda(term.variables, substitute(body, {symbol: term.index}))
            starts = tuple(self.scalar(start) for start in term.starts)
            found = Scan(step, starts, LAST, 0, term.reverse)
            new = canonical_names(found) not in self.scans
            self.scans[form] = self.scans[canonical_names(found)] = found
            if new:
                self._know_outputs(found)
        return self.scans[form]

    def _know_outputs(self, scan: Scan) -> None:
        """What a step gives, computed again from the states for all steps at once, is what the scan has given."""
        step = opened(scan, self.names)
        if any(map(is_call, subterms(step.body))):
            self._know_calls(scan, step)
            return
        for n, output in enumerate(step.outputs):
            own = self.names.indices(_space_of(output).axes)
            again = at_histories(let(step.bindings, output), scan, step, self.names)
            given, indices = scan.result(AFTER, n), (step.index, *own)
            read = self._resolved(self.scalar(apply(again, own)), given)
            if not isinstance(read, Apply) or {*read.arguments} != {*indices}:
                continue
            if whole_tensor(read, read.arguments) is not None:
                self._replace(read, given, indices)

    def _resolved(self, read: Term, given: Scan) -> Term:
        """An element of a binding that is another's, read from that one, where the scan may stand before it."""
        values: dict[Term, Term] = {var: value for value, var in self.bound.items()}
        order = list(values)
        first = max((order.index(var) + 1 for var in given.free if var in values), default=0)
        while isinstance(read, Apply) and isinstance(value := values.get(read.function), Lambda):
            inner = apply(value, read.arguments)
            if not isinstance(inner, Apply) or inner.function not in order[first:]:
                break
            read = inner
        return read

    def _know_calls(self, scan: Scan, step: OpenStep) -> None:
        """A state that a solver finds, as that of an implicit method, is not solved for again after the scan."""
        symbol = self.names.fresh(Var(step.index.name, Whole()))
        for n, output in enumerate(step.outputs[: len(scan.states)]):
            if isinstance(put_back(output, dict(step.bindings)), Implicit):
                before = {
                    x: at_step(self._bind(scan.result(BEFORE, m), base_name(x)), symbol, x, self.names)
                    for m, x in enumerate(step.states)
                }
                again = substitute(put_back(let(step.bindings, output), before), {step.index: symbol})
                stack = self._iteration(at_every_step(again, scan, symbol, self.names))
                self.by_form.setdefault(canonical_names(stack.result(AFTER, 0)), self._bind(scan.result(AFTER, n), "y"))

    def _replace(self, read: Apply, given: Scan, indices: tuple[Var, ...]) -> None:
        """Make a binding that is read at some of the indices each what a scan gives there, whatever their order.

        What it was mentions the states of that scan, so all that the scan mentions is bound before; a scan that only
        reads it gives nothing new.
        """
        was = next((value for value, var in self.bound.items() if var is read.function), None)  # none for a parameter
        if was is given or not isinstance(was, Lambda) or read.function in given.free:
            return
        whole = self.by_form.setdefault(canonical_names(given), self.names.fresh(Var("y", _space_of(given))))
        other = self.by_form.setdefault(canonical_names(Lambda(indices, apply(was, read.arguments))), whole)
        self.variables.add(whole)
        before, self.bound = self.bound, {}
        for old, var in before.items():
            if var in (read.function, other, whole):
                self.bound.setdefault(given, whole)  # before whatever reads it
            if var is whole:
                continue
            if var is read.function:
                self.bound[Lambda(was.parameters, self._read_at(whole, was.parameters, read.arguments, indices))] = var
            elif var is other:
                own = tuple(self.names.fresh(v) for v in indices)
                self.bound[Lambda(own, Apply(whole, own))] = var
            else:
                self.bound[old] = var

    def _read_at(
        self, whole: Var, parameters: tuple[Var, ...], read: tuple[Term, ...], indices: tuple[Var, ...]
    ) -> Term:
        """The element of a tensor over the indices, where they are the parameters in another order."""
        at = dict(zip(read, parameters, strict=True))
        return Apply(whole, tuple(at[index] for index in indices))

    def _hoisted(self, bound: Mapping[Term, Var], result: Term, term: Scan, symbol: Var) -> Term:
        """The let program of a step without the bindings that can be made outside."""
        held = matrices_in(let(((var, value) for value, var in bound.items()), result))
        outside: dict[Var, Term] = {}
        inside: list[tuple[Var, Term]] = []
        for value, var in bound.items():
            value = put_back(value, outside)
            if not value.free.isdisjoint((*term.states, *(v for v, _ in inside))):
                inside.append((var, value))
            elif symbol not in value.free:
                outside[var] = self._bind(value, base_name(var))
            elif var in held or (is_call(value) and not term.states):
                inside.append((var, value))
            elif isinstance(value, Scan) and not solves(value):
                index = self.names.fresh(term.index)
                each = substitute(value, {symbol: index})
                assert isinstance(each, Scan)
                outside[var] = substitute(self._scan(each, base_name(var)), {index: symbol})
            elif is_call(value):
                outside[var] = at_step(
                    self._bind(at_every_step(value, term, symbol, self.names), base_name(var)), symbol, var, self.names
                )
            else:
                index = self.names.fresh(term.index)
                own = value.parameters if isinstance(value, Lambda) else ()
                inner = value.body if isinstance(value, Lambda) else value
                whole = self._bind(Lambda((index, *own), substitute(inner, {symbol: index})), base_name(var))
                outside[var] = lambda_(own, Apply(whole, (symbol, *own)))
        return let(inside, put_back(result, outside))

    def _bind_scalar(self, term: Term, name: _Hint, axes: tuple[Var, ...] = ()) -> Term:
        term, indices, places = at_read_forms(term)
        form = canonical_names(lambda_(indices, term))
        if form not in self.scalars:
            order = axes if {*axes} == {*indices} else indices
            self.scalars[form] = self._bind(lambda_(order, term), name), tuple(indices.index(index) for index in order)
        var, positions = self.scalars[form]
        return element(var, tuple(places[indices[n]] for n in positions))

    def _bind(self, value: Term, name: _Hint) -> Var:
        form = canonical_names(value)
        if form not in self.by_form:
            self.by_form[form] = self.bound[value] = var = self._named(name, _space_of(value))
            self.variables.add(var)
        return self.by_form[form]

    def _named(self, name: _Hint, space: Space) -> Var:
        """A new variable, called as its binding is already where no other is."""
        if isinstance(name, str):
            return self.names.fresh(Var(name, space))
        if name.name not in self.own:
            return self.names.fresh(Var(base_name(name), space))
        self.own.remove(name.name)
        return Var(name.name, space)


def _call_name(term: Term) -> str:
    """`Dx` for D(x), t for other calls."""
    function, *arguments = term.children
    if isinstance(term, Apply) and len(arguments) == 1 and isinstance(function, Var) and isinstance(arguments[0], Var):
        return base_name(function) + base_name(arguments[0])
    return "t"


def _named_after(term: Scan) -> Var:
    """The variable that a result of a scan is named after: the state, or the first where it is none."""
    return (*term.states[term.component : term.component + 1], *term.states, Var("y", Space()))[0]


def _bound_once(body: Term) -> set[str]:
    """The names of bindings in a body that nothing else is called by."""
    parts = list(subterms(body))
    counts = Counter(var.name for part in parts for var in part.bound)
    counts.update(var.name for var in body.free)
    return {var.name for part in parts if isinstance(part, Let) for var in part.bound if counts[var.name] == 1}


def base_name(var: Var) -> str:
    """The name of a variable without the suffix that keeps it apart from others."""
    return var.name.split(".")[0]


def is_light_primitive(term: Primitive) -> bool:
    """A whole power of an access or a size, a real or imaginary part, an index around an axis, a wave.

    None is worth an array.
    """
    light_function = term.name in ("real", "imag", "conj") or whole_power(term)[0] is not term
    inner = term.arguments[0]
    is_read = isinstance(inner, Apply | Var | Coordinate) and not isinstance(inner, Primitive)
    return isinstance(term, Relation) or (light_function and is_read) or is_divided_index(term) or is_wave(term)


def _space_of(term: Term) -> Space:
    found = type_of(term)
    assert isinstance(found, Space)
    return found


@remembered
def canonical_names(term: Term) -> Term:
    """A term with every bound name replaced by its level, so that alpha-equal terms become one object.

    The innermost variables are ~0, those around them ~1 and so on: among index forms #n is a size, and @n a name of the
    normal form. So a part without free names has the same form wherever it stands, and each part of a graph is visited
    once.
    """
    naming = _FreshNaming()
    if term.levels > DEEP:  # each part without names from around it for itself: calls in calls would overflow the stack
        for part in subterms(term):
            if part.levels and part.free <= term.free:
                naming.run(part, {})
    return naming.run(term, {})


def iteration_of(scan: Scan) -> Term:
    """What the results of one iteration have in common, whatever their bound names are."""
    return canonical_names(scan.result(LAST, 0))


def families(bindings: Iterable[tuple[Var, Term]]) -> list[list[Var]]:
    """The variables that have results of iterations, those of one together."""
    found: dict[Term, list[Var]] = {}
    for var, value in bindings:
        if isinstance(value, Scan):
            found.setdefault(iteration_of(value), []).append(var)
    return list(found.values())


class _FreshNaming:
    def __init__(self) -> None:
        self.done: dict[tuple[Term, frozenset[tuple[Var, Var]]], Term] = {}

    def run(self, term: Term, scope: Mapping[Var, Var]) -> Term:
        if isinstance(term, Var):
            return scope.get(term, term)
        free = term.free
        scope = {v: new for v, new in scope.items() if v in free}  # few variables, where many may be free
        if not scope and not term.levels:
            return term
        key = term, frozenset(scope.items())
        if key not in self.done:
            self.done[key] = self._node(term, scope)
        return self.done[key]

    def _node(self, term: Term, scope: dict[Var, Var]) -> Term:
        inside = term.levels - len(term.bound)
        bound = tuple(Var(f"~{inside + n}", var.type) for n, var in enumerate(term.bound))
        scope.update(zip(term.bound, bound, strict=True))
        children = tuple(self.run(child, scope) for child in term.children)
        if isinstance(term, Let):
            return Let(tuple(zip(bound, children[:-1], strict=True)), children[-1])
        if isinstance(term, Lambda | OverIndices):
            return term.over(bound, children[0])
        return type(term)(children) if isinstance(term, Add | Mul) else term.with_children(children)
