"""Cross-country mode: a derivative as products over the whole graph of a program, the cheapest product first.

The bindings of a program are the vertices of a graph, the derivatives of each by those it mentions are the edges.
Eliminating a vertex v replaces its edges by their products (theory: the sum over all paths, in any order):

    ∂w/∂u  +=  Σ_{i} ∂w/∂v[i] · ∂v[i]/∂u

    y = B·g(h(A·x)) = Σ_i B[a,i]·t₂[i],  t₂[i] = g(t₁[i]), …      # before
    ∂y/∂x = Σ_i B[a,i]·(u[i]·v[i])·A[i,d]                          # after: the vectors u, v are multiplied first

The vertex whose products cost least goes first, so vectors are multiplied before matrices, and matrices before tensors
of higher order. A product that has been formed already, or its transpose, costs nothing. Every Σ of a product becomes
a binding over just the indices that it mentions: factors that no sum runs over stay outside, where they show as the
structure of the derivative. (Laue, Mitterreiter and Giesen, section 3: cross-country mode.)

Invariant: the edges left over are the derivative, whatever the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from combdiff.differentiation.pullback import pull, reached
from combdiff.differentiation.wirtinger import WirtingerMap, by_pullback, unit
from combdiff.ir import (
    ZERO,
    Add,
    Apply,
    Implicit,
    Mul,
    Names,
    Primitive,
    Scan,
    Space,
    Sum,
    Term,
    Var,
    add,
    apply,
    canonical_names,
    conj,
    dtype_of,
    element,
    factors_of,
    free_indices,
    holds_delta,
    is_complex,
    is_light_primitive,
    is_matrix_function,
    lambda_,
    mul,
    split,
    subterms,
    total,
    type_of,
)
from combdiff.records import dataclass
from combdiff.simplification import (
    Addend,
    addends,
    collected,
    common_factors,
    own_cost,
    volume,
)

RESULT = "result"  # the name of the vertex that stands for the result of the program
# Over the same indices in a product; more become one binding, as a chain would have as many of them as links.
MOST_FACTORS = 8

Edge = tuple[Var, Var]  # from, to
Bindings = list[tuple[Var, Term]]


def eliminate(
    body: Term, point: Var, at: tuple[Var, ...], own: tuple[Var, ...], names: Names
) -> tuple[Bindings, WirtingerMap]:
    """∂body/∂point at result indices `at` and point indices `own`, and all bindings: body's, then those it needs.

    Every heavy part of the body is to be a binding of its own (see `sharing.bind_heavy`), and `names` to know them all.
    """
    graph = _JacobianGraph(names, _vertices(body, point, names), split(body)[0])
    graph.differentiate(body, point)
    inner = [v for v in graph.vertices if v not in (point, graph.result)]
    costs = {v: graph.costs(v) for v in inner}
    while costs:
        cheapest = min(costs, key=lambda v: graph.formed.price(costs[v]))
        del costs[cheapest]
        near = graph.remove(cheapest)
        for v in [v for v in costs if v in near]:
            costs[v] = graph.costs(v)
    edge = graph.edges.get((point, graph.result))
    if edge is None:
        return [], WirtingerMap(ZERO)
    return [*split(body)[0], *graph.formed.bindings], edge.at(at, own)


def _vertices(body: Term, point: Var, names: Names) -> list[Var]:
    space = type_of(split(body)[1])
    assert isinstance(space, Space)
    return [*reached(body, [point]), names.fresh(Var(RESULT, Space(*space.axes, dtype=space.dtype)))]


@dataclass(frozen=True)
class _ChainFactor:
    """A linear map between the tensors of two vertices, as terms of result indices `rows` and point indices."""

    rows: tuple[Var, ...]
    columns: tuple[Var, ...]
    map: WirtingerMap

    def at(self, rows: Iterable[Term], columns: Iterable[Term]) -> WirtingerMap:
        """The map at other indices."""
        arguments = (*rows, *columns)
        indices = (*self.rows, *self.columns)
        return WirtingerMap(
            *(apply(lambda_(indices, part), arguments) for part in (self.map.holomorphic, self.map.antiholomorphic))
        )


@dataclass
class _Formed:
    """What is bound so far: the program's own bindings, then Σ's of products."""

    names: Names
    bindings: Bindings
    known: dict[Term, Var] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.known.update((canonical_names(value), var) for var, value in self.bindings)

    def form(self, value: Term) -> tuple[Term, tuple[Var, ...]]:
        """A value abstracted over the indices it mentions, free of their names, and these indices."""
        value = _in_order(value)
        indices = free_indices(value)
        return canonical_names(lambda_(indices, value)), indices

    def cost(self, value: Term) -> tuple[Term, float]:
        """The form of a value, and what it costs to form it."""
        return self.form(value)[0], own_cost(value) + volume(free_indices(value))

    def price(self, costs: Iterable[tuple[Term, float]]) -> float:
        """What it costs to form values, nothing for those that are known."""
        return sum(cost for form, cost in costs if form not in self.known)

    def bind(self, value: Term) -> Term:
        """An access to the binding of a value, a new one if need be."""
        value = _in_order(value)
        form, indices = self.form(value)
        if form not in self.known:
            space = Space(*(i.type for i in indices), dtype=dtype_of(value))  # type: ignore[arg-type]
            self.known[form] = var = self.names.fresh(Var("t", space))
            self.bindings.append((var, lambda_(indices, value)))
        var = self.known[form]
        return element(var, indices)


class _JacobianGraph:
    """Vertices and the derivatives along the edges between them."""

    def __init__(self, names: Names, vertices: list[Var], bindings: Iterable[tuple[Var, Term]]) -> None:
        self.names = names
        self.vertices = vertices
        self.result = vertices[-1]
        self.formed = _Formed(names, list(bindings))
        self.edges: dict[Edge, _ChainFactor] = {}
        self._products: dict[tuple[_ChainFactor, _ChainFactor], _ChainFactor] = {}
        self._apart: set[tuple[Addend, Addend]] = set()  # products known not to be joined

    # --- the edges of the program

    def differentiate(self, body: Term, point: Var) -> None:
        """Make the edges: the derivatives of every binding and of the result by what they mention."""
        bindings, value = split(body)
        for var, term in (*bindings, (self.result, value)):
            if var in self.vertices:
                self._differentiate_one(var, term, [v for v in self.vertices if v in term.free])

    def _differentiate_one(self, var: Var, value: Term, points: Sequence[Var]) -> None:
        rows, place = self.names.indices(_space(var).axes), None if var is self.result else var
        swept: dict[Term, list[Term]] = {}

        def pulled(size: Term) -> list[Term]:
            if size not in swept:
                cotangent = unit(self.names, _space(var), rows, size)
                backward, swept[size] = pull(value, tuple(points), cotangent, self.names, place)
                assert not backward
            return swept[size]

        for n, point in enumerate(points):
            columns = self.names.indices(_space(point).axes)
            map_ = by_pullback(
                lambda size, n=n, columns=columns: apply(pulled(size)[n], columns),  # type: ignore[misc]
                is_complex(point),
                is_complex(var),
                self.names,
            )
            parts = (
                self._with_functions_bound(self._expanded(part)) for part in (map_.holomorphic, map_.antiholomorphic)
            )
            self._add((point, var), _ChainFactor(rows, columns, WirtingerMap(*parts)))

    def _expanded(self, term: Term) -> Term:
        return add(*(mul(*addend) for addend in collected(addends(term, self.names))))

    def _add(self, edge: Edge, more: _ChainFactor) -> None:
        """Add to the derivative along an edge; what is zero makes no edge.

        What stays a sum is multiplied out with the next one, twice as long at each vertex of a chain.
        """
        holomorphic, antiholomorphic = more.map.holomorphic, more.map.antiholomorphic
        if edge in self.edges:
            old = self.edges[edge]
            here = more.at(old.rows, old.columns)
            holomorphic = add(old.map.holomorphic, here.holomorphic)
            antiholomorphic = add(old.map.antiholomorphic, here.antiholomorphic)
            more = old
        gathered = WirtingerMap(self._gathered(holomorphic), self._gathered(antiholomorphic))
        more = _ChainFactor(more.rows, more.columns, gathered)
        if more.map != WirtingerMap(ZERO):
            self.edges[edge] = more

    # --- elimination

    def costs(self, vertex: Var) -> list[tuple[Term, float]]:
        """What eliminating a vertex costs: the multiplications of each of its products."""
        products = [product for _, product in self._through(vertex)]
        values = [part for product in products for part in (product.map.holomorphic, product.map.antiholomorphic)]
        return list(map(self.formed.cost, dict.fromkeys(node for value in values for node in _sums(value))))

    def remove(self, vertex: Var) -> set[Var]:
        """Replace the edges of a vertex by their products; the vertices whose edges this has changed."""
        products = list(self._through(vertex))
        near = {v for edge in self.edges if vertex in edge for v in edge}
        self.edges = {edge: value for edge, value in self.edges.items() if vertex not in edge}
        for edge, product in products:
            bound = WirtingerMap(*map(self._bound, (product.map.holomorphic, product.map.antiholomorphic)))
            self._add(edge, _ChainFactor(product.rows, product.columns, bound))
        return near

    def _through(self, vertex: Var) -> Iterator[tuple[Edge, _ChainFactor]]:
        into = [(edge, value) for edge, value in self.edges.items() if edge[1] is vertex]
        out = [(edge, value) for edge, value in self.edges.items() if edge[0] is vertex]
        for (start, _), inner in into:
            for (_, end), outer in out:
                yield (start, end), self._composed(outer, inner, start)

    def _composed(self, outer: _ChainFactor, inner: _ChainFactor, start: Var) -> _ChainFactor:
        """The product of two derivatives: of k ↦ A₁k + B₁k̄ after k ↦ A₂k + B₂k̄."""
        if (outer, inner) not in self._products:
            rows = tuple(self.names.fresh(i) for i in outer.rows)
            middle = tuple(self.names.fresh(i) for i in outer.columns)
            columns = tuple(self.names.fresh(i) for i in inner.columns)
            one, two = outer.at(rows, middle), inner.at(middle, columns)
            (a, b), (c, d) = ((map_.holomorphic, map_.antiholomorphic) for map_ in (one, two))
            holomorphic, antiholomorphic = add(mul(a, c), mul(b, conj(d))), add(mul(a, d), mul(b, conj(c)))
            if not is_complex(start):
                holomorphic, antiholomorphic = add(holomorphic, antiholomorphic), ZERO
            parts = (self._expanded(total(middle, part)) for part in (holomorphic, antiholomorphic))
            self._products[outer, inner] = _ChainFactor(rows, columns, WirtingerMap(*parts))
        return self._products[outer, inner]

    def _with_functions_bound(self, term: Term) -> Term:
        """The term with every function in it that is worth an array bound; those in equations have unknowns."""
        if isinstance(term, Implicit | Scan):
            return term
        parts = tuple(self._with_functions_bound(child) for child in term.children)
        new = term.with_children(parts) if parts else term
        if isinstance(new, Apply) and is_matrix_function(new.function):
            return self.formed.bind(new)
        heavy = isinstance(new, Primitive) and not is_light_primitive(new) and not is_matrix_function(new)
        return self.formed.bind(new) if heavy else new

    def _bound(self, term: Term) -> Term:
        """The term with every Σ bound, and all but a few factors over the same indices."""
        return add(*(mul(*self._few(map(self._bound_factor, addend))) for addend in addends(term, self.names)))

    def _few(self, factors: Iterable[Term]) -> Iterator[Term]:
        """The factors of a product; those over the same indices are one binding where they are many.

        Else the elementwise steps of a chain would each carry the factors of all that were eliminated before.
        """
        alike: dict[tuple[Var, ...], list[Term]] = {}
        for factor in factors:
            alike.setdefault(() if holds_delta(factor) else free_indices(factor), []).append(factor)
        for indices, group in alike.items():
            if indices and len(group) > MOST_FACTORS:
                yield self.formed.bind(mul(*group))
            else:
                yield from group

    def _bound_factor(self, factor: Term) -> Term:
        return self.formed.bind(factor) if isinstance(factor, Sum) else factor

    def _gathered(self, term: Term) -> Term:
        """The sum with addends joined where that makes no tensor of higher order than one of them is."""
        parts = collected(addends(term, self.names))
        joined: list[Addend] = []
        for part in parts:
            for n, other in enumerate(joined):
                if together := self._joined(other, part):
                    joined[n] = together
                    break
            else:
                joined.append(part)
        return add(*(mul(*part) for part in joined))

    def _joined(self, one: Addend, two: Addend) -> Addend | None:
        """The sum of two products as one: common factors times a new binding, if one of the rests is one tensor."""
        if (one, two) in self._apart:
            return None
        common, rests = common_factors((one, two))
        index_sets = [frozenset(free_indices(mul(*rest))) for rest in rests]
        most = frozenset().union(*index_sets)
        whole = not most or any(frozenset(free_indices(f)) == most for rest in rests for f in rest)
        if most not in index_sets or not whole or any(holds_delta(f) for rest in rests for f in rest):
            self._apart.add((one, two))
            return None
        return (*common, self.formed.bind(add(*(mul(*rest) for rest in rests))))


def _space(var: Var) -> Space:
    assert isinstance(var.type, Space)
    return var.type


def _sums(term: Term) -> Iterator[Term]:
    """The outermost Σ's among the factors of a sum of products."""
    for part in term.terms if isinstance(term, Add) else (term,):
        yield from (factor for factor in factors_of(part) if isinstance(factor, Sum))


def _in_order(term: Term) -> Term:
    """A Σ of a product with its factors in an order that does not depend on the names of indices."""
    if not isinstance(term, Sum) or not isinstance(term.body, Mul):
        return term
    body = Mul(tuple(sorted(term.body.factors, key=_shape)))
    return Sum(tuple(i for i in free_indices(body) if i in term.indices), body)


def _shape(term: Term) -> tuple[str, ...]:
    """What is left of a term without its indices."""
    return tuple(
        node.name if isinstance(node, Var) else type(node).__name__
        for node in subterms(term)
        if not isinstance(node, Var) or isinstance(node.type, Space)
    )
