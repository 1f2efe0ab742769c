"""A whole let program in one e-graph: each definition is a class, and its name another member of it.

    let t[i] = exp(x[i]) in (d ↦ t[d] / (1 + t[d]))     t[d], exp(x[d]) and the quotient's forms are in the classes
    read with t                                       d ↦ t[d] / (1 + t[d])
    read without it                                   d ↦ 1 / (1 + exp(−x[d]))

The laws see through the names: an access `t[v]` is equal to the value of t at v, by one law for each definition. What
is read out of the saturated classes depends on which definitions are kept: an access to one that is kept costs nothing,
one to another is not to be read.

Invariant: every reading has the value of the program; it does not depend on hash seeds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from combdiff.ir import (
    Add,
    Cyclic,
    Lambda,
    Mul,
    Names,
    Rewriter,
    Space,
    Sum,
    Term,
    Var,
    counts_modulo,
    is_call,
    is_domain,
    items_of,
    joined,
    lambda_,
    let,
    mul,
    put_back,
    split,
    substitute,
    subterms,
    type_of,
)
from combdiff.records import dataclass
from combdiff.simplification.egraph.budget import current
from combdiff.simplification.egraph.context import Context, Known
from combdiff.simplification.egraph.extraction import as_real_as, symbols
from combdiff.simplification.egraph.saturation import Definition, Saturation, session
from combdiff.simplification.normal_form.expansion import multiplied_out

MOST_NODES = 7_000  # of the e-graph of a program, whose values have been simplified each on its own before
MOST_WRITTEN_OUT = 150  # symbols of a value with its definitions written out, up to which that form is a node, too


@dataclass(frozen=True)
class _BoundValue:
    """A value of a program: its indices, the same under names of their own, its body, and the number of its root."""

    indices: tuple[Var, ...]
    parameters: tuple[Var, ...]
    body: Term
    root: int | None

    def named(self, body: Term) -> Term:
        """The value with that body."""
        return lambda_(self.indices, substitute(body, dict(zip(self.parameters, self.indices, strict=True))))

    def has_indices_of(self, form: Term) -> bool:
        """Whether an equal of the body holds each of its indices that the body does: t[i] is in no class with t[j]."""
        return form.free.issuperset(self.body.free.intersection(self.parameters))

    def goes_around(self) -> bool:
        """Whether d + n may stand for each index d of a cycle in whatever equals the value: t[d + 2] is that at d + 2.

        Of Σ_i δ(d, i) [i ≥ 1] x[i] it may not, as that is [d ≥ 1] x[d].
        """
        cycles = {parameter.type for parameter in self.parameters if isinstance(parameter.type, Cyclic)}
        bound = ((v, child) for node in subterms(self.body) for v in node.bound for child in node.children)
        indices = [(v, self.body) for v in self.parameters] + list(bound) if cycles else []
        return all(counts_modulo(v, part) for v, part in indices if v.type in cycles)


class ProgramClasses:
    """The values of a let program, saturated together; `known` are definitions of which there are matrix functions."""

    def __init__(self, body: Term, rules: tuple[str, ...], known: Known) -> None:
        self.bindings, self.result = split(body)
        self.rules, self.known, self.names = rules, known, Names(body)
        self.values: list[_BoundValue] = []
        for value in (*(value for _, value in self.bindings), *items_of(self.result)):
            self.values.append(self._value(value, sum(one.root is not None for one in self.values)))

    def _value(self, value: Term, root: int) -> _BoundValue:
        parameters = value.parameters if isinstance(value, Lambda) else ()
        if not _is_number(value):
            return _BoundValue((), (), value, None)
        renamed = tuple(self.names.fresh(Var("i", parameter.type)) for parameter in parameters)
        body = value.body if isinstance(value, Lambda) else value
        return _BoundValue(parameters, renamed, substitute(body, dict(zip(parameters, renamed, strict=True))), root)

    def without(self, left_out: frozenset[Var]) -> Term | None:
        """The program read from its classes without some definitions; None where it is not to be had without them."""
        values = []
        for value in self.values:
            found = value.body if value.root is None else self._read(value.root, left_out)
            if found is None:
                return None
            values.append(value.named(found))
        kept = [(var, value) for (var, _), value in zip(self.bindings, values, strict=False) if var not in left_out]
        whole = let(kept, joined(self.result, values[len(self.bindings) :]))
        return None if whole.free & left_out else whole  # an index that is looked up has no class: x[t[i]] keeps its t

    def _read(self, root: int, left_out: frozenset[Var]) -> Term | None:
        best = self.saturation.best(root, left_out)
        if best is None:
            return None
        found = self.saturation.cheapest(root, self.saturation.named(best), best, left_out)
        return as_real_as(self.saturation.written[root], found)

    @cached_property
    def saturation(self) -> Saturation:
        """The saturated e-graph of all values, each definition a name for one of its classes."""
        terms = tuple(value.body for value in self.values if value.root is not None)
        definitions = [
            Definition(var, value.parameters, value.root)
            for (var, _), value in zip(self.bindings, self.values, strict=False)
            if value.root is not None and value.body.free.issuperset(value.parameters) and value.goes_around()
        ]  # beside t[d, e] = x[d] in its class, t[d, e] would bring an e along that nothing binds
        context = Context(self.known)
        with session(self.rules, terms, context, defined=bool(definitions)) as egraph:
            budget = replace(current(), nodes=min(current().nodes, MOST_NODES))
            saturation = Saturation(egraph, terms, budget, context, definitions)
            for value, form in zip(self.values, self._written_out(), strict=True):
                if value.root is not None and form is not None and value.has_indices_of(form):
                    saturation.unite(value.root, saturation.named(multiplied_out(form, saturation.names)))
                    inside = _MultiplyingOutInside(saturation.names).run(form)
                    if inside is not form:
                        saturation.unite(value.root, saturation.named(inside))
            saturation.settle()
            saturation.look()
        return saturation

    def _written_out(self) -> list[Term | None]:
        """The values with the definitions before them written out, None for those in which there are none or long."""
        replacement: dict[Var, Term] = {}
        found: list[Term | None] = []
        for n, value in enumerate(self.values):
            whole = put_back(value.body, replacement)
            short = value.root is not None and symbols(whole) <= MOST_WRITTEN_OUT
            found.append(whole if short and whole is not value.body else None)
            if short and n < len(self.bindings) and self.bindings[n][0] not in self.known:
                replacement[self.bindings[n][0]] = lambda_(value.parameters, whole)
        return found


class _MultiplyingOutInside(Rewriter):
    """Multiplies out each sum that is a factor, where it stands: Σ_i X[i,d] (t[i] (1 − y[i]) − …) keeps its Σ."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.names = names

    def node(self, term: Term) -> Term:
        """The term with the sums in its products multiplied out."""
        if isinstance(term, Mul):
            return mul(*(multiplied_out(f, self.names) if isinstance(f, Add) else self.run(f) for f in term.factors))
        return self.inside(term) if isinstance(term, Add | Sum) else term


def _is_number(value: Term) -> bool:
    """Whether a value is a number at each of its indices, and one that the laws look into."""
    body = value.body if isinstance(value, Lambda) else value
    space = type_of(body)
    inside = isinstance(space, Space) and not space.order and not is_call(body)
    return inside and (not isinstance(value, Lambda) or all(is_domain(p.type) for p in value.parameters))
