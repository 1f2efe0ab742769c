"""What an e-graph says, as terms: for each class every node it holds, over the plainest terms of the parts.

    class 7 = {(Conj 3), (At (T "H") j i)}   →   [conj(H[i, j]), H[j, i]]

All constructors of the vocabulary have a meaning here, the working ones too: `(Subst i j v)` is v with i replaced by j.
The terms of one class must have one value; where they have not, a law is false.

Invariant: a term depends on no other choice of parts than their values, if the parts are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from combdiff.errors import CombdiffError
from combdiff.ir import (
    ONE,
    ZERO,
    Add,
    Conj,
    Domain,
    Lambda,
    Mul,
    Names,
    Number,
    Primitive,
    Space,
    Sum,
    Term,
    Var,
    Whole,
    affine,
    apply,
    delta,
    indicator,
    substitute,
    tidy,
    type_of,
    unequal,
)
from combdiff.simplification import Codec, order_key, symbols

MOST_TERMS = 12  # of one class
MATRIX = 2  # axes


class Meaning:
    """The terms of every class of an e-graph that has run."""

    def __init__(self, egraph: Any, codec: Codec) -> None:
        self.egraph, self.codec = egraph, codec
        functions = egraph.freeze().functions
        self.rows = {name: [(r.inputs, r.output) for r in functions[name].rows] for name in _NODES if name in functions}
        self.terms: dict[Any, list[Any]] = {}
        self._run()

    def classes(self) -> Iterable[list[Any]]:
        """For each class of values, indices or steps its terms; a step c·i is an index form."""
        for terms in self.terms.values():
            steps = [affine([(step[1], step[0])]) for step in terms if isinstance(step, tuple)]
            yield [*steps, *(term for term in terms if isinstance(term, Term))]

    def facts(self, relation: str) -> list[tuple[Any, ...]]:
        """What a relation holds of: texts and whole numbers, and classes."""
        held = self.egraph.freeze().functions.get(relation)
        read = {"String": self.egraph.value_to_string, "i64": self.egraph.value_to_i64}
        readers = [read.get(sort, lambda value: value) for sort in held.input_sorts] if held else []
        return [tuple(r(i) for r, i in zip(readers, row.inputs, strict=True)) for row in held.rows] if held else []

    def _run(self) -> None:
        changed, rounds = True, 0
        while changed and rounds < 12:
            changed, rounds = False, rounds + 1
            for name, rows in self.rows.items():
                for inputs, output in rows:
                    for term in self._read(name, inputs):
                        held = self.terms.setdefault(output, [])
                        if term not in held and len(held) < MOST_TERMS:
                            held.append(term)
                            changed = True

    def _read(self, name: str, inputs: Any) -> Iterable[Any]:
        try:
            yield _NODES[name](self, *inputs)
        except (_Unknown, CombdiffError):  # what a law writes of parts that do not fit has no meaning
            return

    def best(self, class_: Any) -> Any:
        """The plainest term of a class. Raises _Unknown while there is none."""
        held = self.terms.get(class_)
        if not held:
            raise _Unknown
        return held[0] if not isinstance(held[0], Term) else min(held, key=lambda t: (symbols(t), order_key(t)))

    def all(self, classes: Iterable[Any]) -> list[Any]:
        """The plainest terms of several classes."""
        return [self.best(class_) for class_ in classes]

    def vector(self, value: Any) -> list[Any]:
        """The plainest terms of the members of a vector."""
        return self.all(self.egraph.value_to_vec(value))

    def multiset(self, value: Any) -> list[Any]:
        """The plainest terms of the members of a multiset, in an order of their own."""
        return sorted(self.all(self.egraph.value_to_multiset(value)), key=order_key)

    # --- nodes

    def index(self, name: Any, key: Any) -> Term:
        """A bound or free index."""
        found = self.codec.indices.get((self.egraph.value_to_string(name), self.egraph.value_to_string(key)))
        if found is None:
            raise _Unknown
        return found

    def rational(self, value: Any) -> Any:
        """An exact number."""
        return tidy(self.egraph.value_to_bigrat(value))

    def form(self, steps: Any, offset: Any) -> Term:
        """An index form."""
        return affine([(i, c) for c, i in self.vector(steps)], self.rational(offset))

    def access(self, tensor: Any, indices: Any) -> Term:
        """An element of a tensor."""
        found: Term = self.best(tensor)
        return apply(found, self.vector(indices))

    def tensor(self, name: Any) -> Term:
        """A tensor by name."""
        found = self.codec.tensors.get(self.egraph.value_to_string(name))
        if found is None:
            raise _Unknown
        return found

    def elementwise(self, operation: Callable[..., Term], tensor: Any) -> Term:
        """A tensor with an operation on each element."""
        found: Term = self.best(tensor)
        indices = Names(found).indices(_axes(found))
        return Lambda(indices, operation(apply(found, indices)))

    def transposed(self, tensor: Any) -> Term:
        """A tensor with its last two axes exchanged."""
        found: Term = self.best(tensor)
        indices = Names(found).indices(_axes(found))
        if len(indices) < MATRIX:
            raise _Unknown
        return Lambda((*indices[:-2], indices[-1], indices[-2]), apply(found, indices))

    def matmul(self, left: Any, right: Any) -> Term:
        """The product of two matrices."""
        one, other = self.best(left), self.best(right)
        if not len(_axes(one)) == len(_axes(other)) == MATRIX:
            raise _Unknown
        i, k, j = Names(one, other).indices((*_axes(one), _axes(other)[1]))
        return Lambda((i, j), Sum((k,), Mul((apply(one, (i, k)), apply(other, (k, j))))))

    def fraction(self, number: Any, factors: Any, base: Any, exponent: Any) -> Term:
        """A number times a product times a power."""
        power = Primitive("power", (self.best(base), Number(self.rational(exponent))))
        return Mul((Number(self.rational(number)), *self.multiset(factors), power))

    def opaque(self, name: Any, indices: Any) -> Term:
        """An opaque part at other indices."""
        key, arguments = self.egraph.value_to_string(name), self.vector(indices)
        if key not in self.codec.opaque or len(self.codec.opaque[key][0]) != len(arguments):
            raise _Unknown
        return self.codec.restore(key, tuple(arguments))

    def sum(self, binds: Any, body: Any) -> Term:
        """Σ, over no index the body itself."""
        indices = self.all(self.egraph.value_to_set(binds))
        if not all(isinstance(i, Var) for i in indices):
            raise _Unknown
        ordered = tuple(sorted(indices, key=order_key))
        return Sum(ordered, self.best(body)) if ordered else self.best(body)

    def replaced(self, index: Any, by: Any, class_: Any) -> Term:
        """A value or index with an index replaced."""
        var = self.best(index)
        if not isinstance(var, Var):
            raise _Unknown
        term: Term = substitute(self.best(class_), {var: self.best(by)})
        return term

    def replaced_step(self, index: Any, by: Any, class_: Any) -> tuple[Any, Term]:
        """A step with an index replaced."""
        coefficient, inner = self.best(class_)
        var = self.best(index)
        if not isinstance(var, Var):
            raise _Unknown
        return coefficient, substitute(inner, {var: self.best(by)})


def _axes(tensor: Term) -> tuple[Domain, ...]:
    space = type_of(tensor)
    assert isinstance(space, Space)
    return space.axes


class _Unknown(Exception):
    """A part has no term yet."""


def _product(terms: list[Term]) -> Term:
    return Mul(tuple(terms)) if len(terms) > 1 else terms[0] if terms else ONE


def _sum(terms: list[Term]) -> Term:
    return Add(tuple(terms)) if len(terms) > 1 else terms[0] if terms else ZERO


def _negated(term: Term) -> Term:
    return affine([(term, -1)])


_NODES: dict[str, Callable[..., Any]] = {
    "I": Meaning.index,
    "By": lambda m, c, i: (m.rational(c), m.best(i)),
    "Affine": Meaning.form,
    "Neg": lambda m, i: _negated(m.best(i)),
    "T": Meaning.tensor,
    "MatrixFn": lambda m, f, t: Primitive(m.egraph.value_to_string(f), (m.best(t),)),
    "Transposed": Meaning.transposed,
    "Conjugated": lambda m, t: m.elementwise(Conj, t),
    "Multiple": lambda m, a, b, t: m.elementwise(lambda x: Mul((Number(m.rational(a), m.rational(b)), x)), t),
    "Weighted": lambda m, x, t: m.elementwise(lambda y: Mul((m.best(x), y)), t),
    "MatMul": Meaning.matmul,
    "At": Meaning.access,
    "Num": lambda m, a, b: Number(m.rational(a), m.rational(b)),
    "Float": lambda m, a, b: Number(m.egraph.value_to_f64(a), m.egraph.value_to_f64(b)),
    "Scale": lambda m, a, b, x: Mul((Number(m.rational(a), m.rational(b)), m.best(x))),
    "Conj": lambda m, x: Conj(m.best(x)),
    "Prod": lambda m, ms: _product(m.multiset(ms)),
    "Add": lambda m, ms: _sum(m.multiset(ms)),
    "Sum": Meaning.sum,
    "Delta": lambda m, i, j, k: delta(m.best(i), m.best(j), m.codec.domains[m.egraph.value_to_string(k)]),
    "Where": lambda m, i, n: indicator(m.best(i), m.egraph.value_to_i64(n)),
    "Differ": lambda m, i, k: unequal(m.best(i), m.codec.domains.get(m.egraph.value_to_string(k), Whole())),
    "Fn": lambda m, f, v: Primitive(m.egraph.value_to_string(f), tuple(m.vector(v))),
    "Opaque": Meaning.opaque,
    "Subst": Meaning.replaced,
    "SubstIndex": Meaning.replaced,
    "SubstStep": Meaning.replaced_step,
    "NegStep": lambda m, s: (-m.best(s)[0], m.best(s)[1]),
    "Part": lambda m, f, x: Primitive(m.egraph.value_to_string(f), (m.best(x),)),
    "Times": lambda m, a, b: Mul((m.best(a), m.best(b))),
    "Plus": lambda m, a, b: Add((m.best(a), m.best(b))),
    "Fraction": Meaning.fraction,
}
