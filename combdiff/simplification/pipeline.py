"""Simplification of a whole program: binding by binding, light values put where they are used.

    let t̄ = (i ↦ Σ_j δ(i, j)·2·t[j]) in d ↦ Σ_i t̄[i]·A[i, d]
    → d ↦ 2 Σ_i t[i]·A[i, d]

Each binding of a let program is simplified by the e-graph on its own, so the work is linear in the bindings. A value
that turns out light (no Σ and no function in it) or that still holds a δ is put into its uses before they are
simplified; what is used once goes there too, and equal bindings become one (see `sharing`).

Invariant: the result equals the input in value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from combdiff.ir import (
    ZERO,
    Add,
    Apply,
    Guard,
    Implicit,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Rewriter,
    Scan,
    Space,
    Sum,
    SymmetryGroup,
    Term,
    Tuple,
    Var,
    apply,
    average,
    averaged,
    base_name,
    canonical_names,
    conj,
    dtype_of,
    factors_of,
    is_call,
    is_field,
    is_light_primitive,
    is_linear,
    is_matrix_function,
    items_of,
    joined,
    lambda_,
    let,
    matrices_in,
    mul,
    put_back,
    remembered,
    share,
    split,
    substitute,
    subterms,
    type_of,
    values_of,
    whole_tensor,
    with_symbol,
)
from combdiff.simplification.commuting_blocks import with_commuting_blocks
from combdiff.simplification.divided_differences import with_divided_differences
from combdiff.simplification.egraph.budget import current, gathered, simplifying, stopped
from combdiff.simplification.egraph.context import Context, Known
from combdiff.simplification.egraph.extraction import as_real_as, ordered, symbols
from combdiff.simplification.egraph.programs import ProgramClasses
from combdiff.simplification.egraph.provenance import Normalised, Place, Solved, State, note, unrecorded
from combdiff.simplification.egraph.saturation import equivalent, foreseen, normal, simplify, unsaturated
from combdiff.simplification.egraph.settled import is_settled, multiplied
from combdiff.simplification.fingerprints import checked
from combdiff.simplification.laws.loading import load
from combdiff.simplification.memory import body_once, factored_once, simplified_once
from combdiff.simplification.normal_form.coefficients import Coefficients
from combdiff.simplification.normal_form.common_factors import factored
from combdiff.simplification.normal_form.common_subnetworks import bind_common, read_bound
from combdiff.simplification.normal_form.contraction import without_deltas_and_ends
from combdiff.simplification.normal_form.definitions import with_logarithms_joined, without_short_definitions
from combdiff.simplification.normal_form.denominators import is_fraction, without_fractions_below
from combdiff.simplification.normal_form.expansion import is_patched, offers_delta
from combdiff.simplification.normal_form.given_by_steps import with_results_of_steps
from combdiff.simplification.normal_form.long_sums import MOST_TERMS, simplify_sum, summands
from combdiff.simplification.normal_form.opened_sums import with_sums_opened
from combdiff.simplification.normal_form.orbits import projected_by_terms
from combdiff.simplification.normal_form.symmetries import (
    spelled_out,
    where_real,
    with_known_symmetries,
    with_symmetries,
    without_known_symmetries,
)
from combdiff.simplification.normal_form.unread_results import without_unread_results
from combdiff.simplification.vanishing import without_vanishing_sums
from combdiff.status import stage, working

SHARED = "equal parts computed once"
IN_FRONT = "common factors in front, one denominator"
COMMUTING = "derivatives of functions of a matrix in directions that commute with it"
VANISHED = "sums that are 0 by what their names stand for"
GIVEN = "what the steps of iterations have computed"
COMMON = "what the results have in common computed once"
WRITTEN_OUT = "short definitions written where they are used"
PROJECTED = "averages over symmetries, term by term"
MOST_PASSES = 4  # what sharing puts back in the end may open to the laws what a binding kept from them
NODES_PER_SYMBOL = 10  # rows of the e-graph, about, once the laws have been applied to a written symbol
MOST_LIGHT = 10  # symbols up to which a tensor without Σ and functions is repeated rather than bound
MOST_LIGHT_NUMBER = 7  # the same for a number, which has no indices

_Form = tuple[Any, ...]  # terms without free names, nested
_Equations = dict[Term, Lambda]  # simplified, by what was given without bound names
_Projection = Callable[[Term, SymmetryGroup, str, Names, list[tuple[Var, Term]]], Term]


@working("simplifying")
def simplify_body(body: Term, rules: tuple[str, ...] = (), *, written_out: bool = True, paired: bool = False) -> Term:
    """The simplified normal form of a program's body (scalar, tensor or tuple, perhaps under a let).

    With `written_out`, short definitions stand where they are used: for a reader. What is to be differentiated again
    keeps its names, as what they stand for has its derivative once then. `paired` says that the results are a value and
    its derivative: what they have in common is bound.
    """
    for_whom = "for a reader" if written_out else "to be differentiated again"
    which = f"{for_whom}, a pair" if paired else for_whom

    def simplified() -> Term:
        with foreseen(values_of(body)):
            return _simplified_body(body, rules, written_out, paired)

    return checked(body, body_once(body, rules, which, simplified))


def _simplified_body(body: Term, rules: tuple[str, ...], written_out: bool, paired: bool) -> Term:
    load(rules)  # a mistake in a rule file shows even where there is nothing to simplify
    settled: set[_Form] = set()
    equations: _Equations = {}
    body, groups = _without_averages(body)

    def averaged_again(changed: Term) -> Term:
        return _with_averages(changed, groups, average)

    def simplified(value: Term, known: Known) -> Term:
        found = value if _form(value, known) in settled else _simplify_tensor(value, rules, known, equations)
        settled.add(_form(found, known))
        return found

    def saturated(body: Term) -> Term:
        body = without_unread_results(share(body))
        note(lambda: State(SHARED, averaged_again(body)))
        for _ in range(MOST_PASSES):
            before = canonical_names(body)
            body = read_bound(_pass(body, simplified, averaged_again))
            note(lambda: State(SHARED, averaged_again(body)))  # noqa: B023  (called at once)
            known = _of_matrices(body)
            settles = canonical_names(body) is before
            if settles or settled.issuperset(_form(value, known) for value in values_of(body)):
                break
        return without_unread_results(body)

    def in_front(body: Term) -> Term:
        found = factors_in_front(body)
        note(lambda: State(IN_FRONT, averaged_again(found)))
        return found

    body = _named_in_order(_with_commuting_blocks(saturated(body), saturated, averaged_again))
    stage("looking for sums that vanish")
    with unrecorded(), gathered():
        found = _without_zeros(body, rules, lambda term: _written_out(saturated(term), rules, equations))
    if found is not body:
        note(lambda: State(VANISHED, averaged_again(found)))
        body = saturated(found)
    stage("taking common factors in front")
    before, body = body, in_front(body)
    if any(isinstance(node, Add) for node in {*_parts(body)} - {*_parts(before)}):  # new to the laws
        body = in_front(saturated(body))
    body = with_results_of_steps(_without_twins(body))
    note(lambda: State(GIVEN, averaged_again(body)))
    if any(groups):
        body = share(_with_averages(body, groups, projected_by_terms))
        note(lambda: State(PROJECTED, body))
    if paired:
        body = bind_common(body)
        note(lambda: State(COMMON, body))
    if not written_out:
        return body
    with gathered() as stops:  # what is left undone here is no loss: each value has been simplified on its own
        found = body_once(body, rules, WRITTEN_OUT, lambda: _written_out(body, rules, equations))
    limits = " and ".join(dict.fromkeys(limit for limit, _ in stops))
    note(lambda: State(f"{WRITTEN_OUT}{f', of the forms found within {limits}' if limits else ''}", found))
    return found


def _with_commuting_blocks(body: Term, saturated: Callable[[Term], Term], shown: Callable[[Term], Term]) -> Term:
    """A let program with products for derivatives of functions of matrices, where these are such."""
    found = with_commuting_blocks(body)
    if found is body:
        return body
    note(lambda: State(COMMUTING, shown(found)))
    return saturated(found)


def _without_zeros(body: Term, rules: tuple[str, ...], settled: Callable[[Term], Term]) -> Term:
    """A let program without sums that vanish, in what divided differences leave, too."""
    found = without_vanishing_sums(body, settled)
    divided = with_divided_differences(found, lambda term: _simplify_number(term, rules, {}))
    return found if divided is found else without_vanishing_sums(divided, settled)


def _written_out(body: Term, rules: tuple[str, ...], equations: _Equations) -> Term:
    known = with_known_symmetries(body)
    with unrecorded():  # the laws that are tried on the way are no steps
        opened = with_sums_opened(known)
        found = without_short_definitions(opened, lambda whole: ProgramClasses(whole, rules, _of_matrices(whole)))
        found = _with_steps_simplified(found, rules, equations)
        found = with_logarithms_joined(with_results_of_steps(with_sums_opened(found)))  # shares have names now
    return body if found is known else without_known_symmetries(found)


def _with_steps_simplified(body: Term, rules: tuple[str, ...], equations: _Equations) -> Term:
    """A let program with the laws applied to the steps of scans into which definitions have been written."""
    bindings, result = split(body)
    calls = _Calls(rules, {}, equations)

    def again(value: Term) -> Term:
        return calls.run(value) if any(isinstance(node, Scan) for node in subterms(value)) else value

    return let(((var, again(value)) for var, value in bindings), joined(result, map(again, items_of(result))))


def outline(body: Term) -> Term:
    """A program's let form with δ's solved and light values where they are used, but before any law: soon made, and as
    much work, about, as what the laws make of it. Averages over symmetries are left out."""

    def solved(value: Term, _: Known) -> Term:
        plain = _plainly_named(value)
        return Lambda(plain.parameters, normal(plain.body)) if isinstance(plain, Lambda) else normal(plain)

    return _pass(share(_without_averages(body)[0]), solved, lambda whole: whole)


def _named_in_order(body: Term) -> Term:
    """A let program whose definitions are numbered as they stand, whatever names they had: t, t.1, t.2, …

    So derivatives that the laws make equal are one, and what is ordered by names has the order of the definitions.
    """
    names, renamed = Names(*body.free), dict[Var, Term]()
    bindings, result = split(body)

    def numbered(value: Term) -> Term:
        value = substitute(value, renamed)
        if not isinstance(value, Lambda):
            return value
        own = Names(*value.free, *(name for node in subterms(value.body) for name in node.bound))
        indices = tuple(own.fresh(Var(base_name(index), index.type)) for index in value.parameters)
        return Lambda(indices, substitute(value.body, dict(zip(value.parameters, indices, strict=True))))

    kept: list[tuple[Var, Term]] = []
    for var, value in bindings:
        value = numbered(value)
        new = names.fresh(Var(base_name(var), var.type))
        kept.append((new, value))
        renamed[var] = new
    return let(kept, joined(result, map(numbered, items_of(result))))


def _without_twins(body: Term) -> Term:
    """A let program in which no two definitions differ in the order of their terms and factors alone."""
    bindings, result = split(body)
    first, twins, kept = dict[tuple[Term, object], Var](), dict[Var, Term](), list[tuple[Var, Term]]()
    for var, given in bindings:
        value = substitute(given, twins)
        form = (ordered(canonical_names(value)), var.type) if not is_call(value) else (value, var)
        if first.setdefault(form, var) is var:
            kept.append((var, value))
        else:
            twins[var] = first[form]
    return let(kept, substitute(result, twins)) if twins else body


def _of_matrices(body: Term) -> Known:
    """The definitions of which there are matrix functions, with their values."""
    held = matrices_in(body)
    return {var: value for var, value in split(body)[0] if var in held}


def _without_averages(body: Term) -> tuple[Term, list[SymmetryGroup]]:
    """A body with each item of its result that is an average over symmetries before that; the group of each item."""
    bindings, result = split(body)
    definitions = dict(bindings)
    found = [averaged(item, definitions) for item in items_of(result)]
    if not any(found):
        return body, []
    items = (each[0] if each else item for each, item in zip(found, items_of(result), strict=True))
    return let(bindings, joined(result, items)), [each[1] if each else () for each in found]


def _with_averages(body: Term, groups: Sequence[SymmetryGroup], project: _Projection) -> Term:
    """A body with the items of its result averaged over the groups."""
    if not any(groups):
        return body
    bindings, result = split(body)
    names, more, items = Names(body), list(bindings), []
    for item, group in zip(items_of(result), groups, strict=True):
        items.append(project(item, group, "t", names, more) if group else item)
    return let(more, joined(result, items))


def _parts(body: Term) -> Iterator[Term]:
    return (node for value in values_of(body) for node in subterms(value))


def factors_in_front(body: Term) -> Term:
    """A normal form with the common factors of sums in front of them."""
    bindings, result = split(body)
    joining = not isinstance(result, Tuple)  # several results have networks in common, which are bound first

    def in_front(value: Term) -> Term:
        return _factored(value, joining=joining)

    found = share(
        let(((var, in_front(value)) for var, value in bindings), joined(result, map(in_front, items_of(result))))
    )
    written_out = len(split(found)[0]) < len(bindings)  # what is used once now
    return factors_in_front(found) if written_out else found


def _factored(value: Term, *, joining: bool = True) -> Term:
    plain = _plainly_named(value)
    found = factored_once(plain, joining, partial(factored, joining=joining))
    return value if found is plain else found


def _pass(body: Term, simplified: Callable[[Term, Known], Term], shown: Callable[[Term], Term]) -> Term:
    """A normal form with each value simplified, given what is known of matrices, and put where it is used if light.

    `shown` makes of the whole body what is to be noted of it.
    """
    bindings, result = split(body)
    names = Names(body)
    held = matrices_in(body)
    replacement: dict[Var, Term] = {}
    matrices: dict[Var, Var] = {}
    kept: list[tuple[Var, Term]] = []
    known: dict[Var, Term] = {}
    fractions: dict[Var, Term] = {}
    definitions: dict[Var, Term] = {}

    def simple(value: Term, name: str, whole: Callable[[], Callable[[Term], Term]]) -> Term:
        value = without_fractions_below(put_back(value, replacement, matrices), fractions)
        note(lambda: Place(name, value, whole()))
        with simplifying(name):
            return simplified(value, known)

    def around(number: int) -> Callable[[Term], Term]:
        """The body, as it is now, with another value for the binding of that number."""
        before, done, renamed = tuple(kept), dict(replacement), dict(matrices)
        later = [(var, put_back(value, done, renamed)) for var, value in bindings[number + 1 :]]
        return lambda new: shown(let([*before, (bindings[number][0], new), *later], put_back(result, done, renamed)))

    for number, (var, value) in enumerate(bindings):
        stage(f"simplifying {var.name}, binding {number + 1} of {len(bindings)}")
        found = simple(value, var.name, lambda: around(number))  # noqa: B023  (called at once)
        if is_call(value) and not is_call(found):  # a multiple of a call, or zero
            found = _multiple(found, var, kept, names)
        light = _is_light(found)
        if light and var not in held:
            coefficients = Coefficients(names)
            found = coefficients.apart(found, var)
            kept.extend(coefficients.bound)
            replacement[var] = found
            continue
        new, found = where_real(var, found, definitions, body)
        spelled = spelled_out(found, definitions)
        new = with_symmetries(new, spelled)
        replacement[var] = found if light else new
        kept.append((new, found))
        if is_fraction(found.body if isinstance(found, Lambda) else found):
            fractions[new] = found
        if var in held:
            matrices[var], known[new] = new, found
        else:
            definitions[new] = spelled
    items = [put_back(item, replacement, matrices) for item in items_of(result)]
    stage("simplifying the result")
    for number, item in enumerate(items_of(result)):
        items[number] = simple(item, "", lambda: _item_changed(kept, result, items, number, shown))  # noqa: B023
    return share(let(kept, joined(result, items)))


def _item_changed(
    kept: Sequence[tuple[Var, Term]],
    result: Term,
    items: Sequence[Term],
    number: int,
    shown: Callable[[Term], Term],
) -> Callable[[Term], Term]:
    """The body with another item of that number in its result, as it is shown."""
    before, after = tuple(items[:number]), tuple(items[number + 1 :])
    return lambda new: shown(let(kept, joined(result, (*before, new, *after))))


def _form(value: Term, known: Known) -> _Form:
    """A value, and what is known of its matrices, up to names: what the laws make of it depends on no name."""
    form, matrices = _closed(value)
    return form, *(_form(known[var], {}) for var in matrices if var in known)


@remembered
def _closed(value: Term) -> tuple[Term, tuple[Var, ...]]:
    """A value up to names, and the variables that its matrix functions are functions of."""
    free = tuple(dict.fromkeys(node for node in subterms(value) if isinstance(node, Var) and node in value.free))
    matrices = matrices_in(value)
    return canonical_names(lambda_(free, value)), tuple(var for var in free if var in matrices)


def _multiple(value: Term, var: Var, kept: list[tuple[Var, Term]], names: Names) -> Term:
    """A multiple of a call (or its element) with the call bound to a name of its own, so that the multiple is light."""
    body = value.body if isinstance(value, Lambda) else value
    part = body.factors[-1] if isinstance(body, Mul) else body
    call = part.function if isinstance(part, Apply) and is_call(part.function) else part
    if not is_call(call):
        return value
    bound = names.fresh(var)
    kept.append((bound, call))
    named = apply(bound, part.arguments) if part is not call and isinstance(part, Apply) else bound
    whole = mul(*body.factors[:-1], named) if isinstance(body, Mul) else named
    return Lambda(value.parameters, whole) if isinstance(value, Lambda) else whole


def _plainly_named(term: Term) -> Term:
    """The parameters of a binding that sharing took out of a network, named apart from canonical bound indices."""
    if not isinstance(term, Lambda):
        return term
    names = Names(term)
    renamed = tuple(names.fresh(Var("i", p.type)) if p.name.startswith("@") else p for p in term.parameters)
    return Lambda(renamed, substitute(term.body, dict(zip(term.parameters, renamed, strict=True))))


def _simplify_tensor(term: Term, rules: tuple[str, ...], known: Known, equations: _Equations) -> Term:
    with unrecorded():  # what is done to the arguments of calls is no step of its own
        term = _Calls(rules, known, equations).run(term)
    term = _plainly_named(term)
    note(lambda: Normalised(term))
    if isinstance(term, Lambda):
        return Lambda(term.parameters, simplified_once(term.body, rules, known, _simplify_number))
    is_number = isinstance(space := type_of(term), Space) and not space.order and not isinstance(term, Scan)
    return simplified_once(term, rules, known, _simplify_number) if is_number and not isinstance(term, Var) else term


def _simplify_number(term: Term, rules: tuple[str, ...], known: Known) -> Term:
    """The simplified term; a real number stays one in type where the laws have dropped an Re that changes nothing."""

    def one(part: Term) -> Term:
        return _affordable(part, rules, known)

    solved = without_deltas_and_ends(term, Names(term))
    note(lambda: Solved(term, solved))
    terms = summands(solved)
    if len(terms) > MOST_TERMS:
        with unrecorded():  # steps in groups of terms are none of the whole
            simple = simplify_sum(terms, one)
    else:
        simple = one(solved)
    return as_real_as(term, simple)


def _affordable(term: Term, rules: tuple[str, ...], known: Known) -> Term:
    """The simplified term; one that would fill the e-graph before any law is applied gets its normal form.

    One that no law would change is not written for the e-graph.
    """
    if is_settled(plain := multiplied(term), load(rules)):
        return unsaturated(plain, Context(known))
    nodes = current().nodes
    if symbols(term) * NODES_PER_SYMBOL > nodes:
        stopped(f"{nodes} nodes")
        return normal(term)
    return simplify(term, rules, context=Context(known))


class _Calls(Rewriter):
    """Simplifies what stands inside calls, which the e-graph does not look into: their arguments, and equations.

    A real factor of the argument of a linear map, or of the right side of a linear system, comes out in front.
    """

    def __init__(self, rules: tuple[str, ...], known: Known, equations: _Equations) -> None:
        super().__init__()
        self.rules = rules
        self.known = known
        self.equations = equations

    def node(self, term: Term) -> Term:
        """The term with every call in it simplified inside."""
        if not term.children:
            return term
        if is_call(term):
            return self._apart(term)
        children = tuple(self.run(child) for child in term.children)
        return apply(children[0], children[1:]) if isinstance(term, Apply) else term.with_children(children)

    def _apart(self, term: Term) -> Term:
        """A call, simplified while indices that are bound around it have no names of canonical forms."""
        names = Names(term)
        canonical_ones = sorted((v for v in term.free if v.name.startswith("@")), key=lambda v: v.name)
        away: dict[Var, Term] = {v: names.fresh(Var("i", v.type)) for v in canonical_ones}
        back: dict[Var, Term] = {new: v for v, new in away.items() if isinstance(new, Var)}
        return substitute(self._call(substitute(term, away)), back)

    def _call(self, term: Term) -> Term:
        if isinstance(term, Implicit):
            assert isinstance(term.map, Lambda)
            new: Term = Implicit(term.kind, self._equation(term.map), self._argument(term.given))
        elif isinstance(term, Scan):
            assert isinstance(term.step, Lambda)
            return term.with_children((self._step(term.step), *map(self._argument, term.starts)))
        else:
            function, *rest = term.children
            new = term.with_children((function, *(self._argument(argument) for argument in rest)))
        linear = term.kind == "solve" if isinstance(term, Implicit) else is_linear(term.children[0])
        return _without_factor(new) if linear else new

    def _equation(self, map_: Lambda) -> Lambda:
        """The left side of an equation; those that differ in bound names alone are simplified once."""
        form = canonical_names(map_)
        if form not in self.equations:
            simple = Lambda(map_.parameters, simplify_body(map_.body, self.rules))
            self.equations[form] = self.equations[canonical_names(simple)] = simple
        return self.equations[form]

    def _step(self, step: Lambda) -> Lambda:
        """The step of a scan, simplified once for all of its results; its number is a symbol to the laws."""
        form = canonical_names(step)
        if form not in self.equations:
            symbol, body = with_symbol(step, Names(step))
            simple = substitute(simplify_body(body, self.rules), {symbol: step.parameters[0]})
            found = Lambda(step.parameters, simple)
            self.equations[form] = self.equations[canonical_names(found)] = found
        return self.equations[form]

    def _argument(self, term: Term) -> Term:
        """A simplified argument; a tensor that is given element by element is the tensor."""
        simple = _simplify_tensor(term, self.rules, self.known, self.equations)
        whole = whole_tensor(simple.body, simple.parameters) if isinstance(simple, Lambda) else None
        return simple if whole is None else whole


def _without_factor(call: Term) -> Term:
    """A linear call with the real numbers that multiply its argument in front: D(2 m x) = 2 m D(x)."""
    *others, argument = call.children
    body = argument.body if isinstance(argument, Lambda) else argument
    parameters = argument.parameters if isinstance(argument, Lambda) else ()
    factors = factors_of(body)
    outside = [factor for factor in factors if _is_constant(factor, parameters)] if body is not ZERO else [ZERO]
    if not outside or (len(outside) == len(factors) and body is not ZERO):
        return call
    inner = mul(*(factor for factor in factors if factor not in outside))
    rest = call.with_children((*others, lambda_(parameters, inner)))
    space = type_of(call)
    assert isinstance(space, Space)
    indices = Names(call).indices(space.axes)
    return lambda_(indices, mul(*outside, apply(rest, indices)))


def _is_constant(factor: Term, parameters: tuple[Var, ...]) -> bool:
    """Whether a factor is one real number for all values of the parameters."""
    if isinstance(factor, Number):
        return not factor.imag
    return bool(parameters) and factor.free.isdisjoint(parameters) and dtype_of(factor) is not complex


@remembered
def _is_light(term: Term) -> bool:
    """Whether a value needs no array of its own, or offers a δ to its uses, or conditions alone, which guard them."""
    body = term.body if isinstance(term, Lambda) else term
    if all(isinstance(factor, Guard) for factor in factors_of(body)) or (offers_delta(body) and not is_patched(body)):
        return True
    parts = list(subterms(term))
    in_field = is_field(term)
    most = MOST_LIGHT if isinstance(term, Lambda) else MOST_LIGHT_NUMBER
    return symbols(term) <= most and not any(_is_heavy(part, in_field) for part in parts)


def _is_heavy(part: Term, in_field: bool) -> bool:
    """Whether a part of a value is worth an array of its own; of fields, over the real line, no array is made."""
    if isinstance(part, Primitive):  # functions of matrices are computed once, wherever their elements are read
        return not in_field and not is_light_primitive(part) and not is_matrix_function(part)
    return isinstance(part, Sum) or is_call(part)


def is_real(body: Term, rules: tuple[str, ...] = ()) -> bool:
    """Whether a scalar let program is real: by its type, or because the e-graph finds its conjugate to be itself."""
    if dtype_of(body) is not complex:
        return True
    bindings, result = split(body)
    known: dict[Var, Term] = {}
    for var, bound in bindings:
        known[var] = put_back(bound, known, {})
    value = put_back(result, known, {})
    return equivalent(value, conj(value), rules, context=Context(known))
