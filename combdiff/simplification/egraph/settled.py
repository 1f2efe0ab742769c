"""Terms that no law changes: their normal form is found without an e-graph.

    2 r x (1 − x) + Σ_i a[i] tanh(b[i])      sums, products, Σ's of real numbers, a function without laws of its own
    x − 3 x² v                               squares and cubes, as products of two and three

The laws of sums, products and Σ's put such a term in the order that its normal form has; what else there are laws of,
δ's, conjugates, symmetries of tensors, functions that meet others, is not in it.

Invariant: saturation would find nothing cheaper.
"""

from __future__ import annotations

from combdiff.ir import (
    Add,
    Affine,
    Apply,
    Conj,
    Delta,
    Indicator,
    Mul,
    Number,
    Primitive,
    Rewriter,
    Space,
    Sum,
    Term,
    Unequal,
    Var,
    add,
    is_matrix_function,
    mul,
    subterms,
    whole_power,
)
from combdiff.simplification.laws.loading import BUILT_IN, RuleFile
from combdiff.simplification.laws.reach import FRACTIONAL, reached


def words_in(*terms: Term) -> frozenset[str]:
    """The names of the functions in terms, and what else laws look for that is not in every term (see `reach`)."""
    return frozenset().union(*(_words_of(node) for term in terms for node in subterms(term)))


def _words_of(node: Term) -> frozenset[str]:
    match node:
        case Primitive():
            is_power = node.name == "power" and whole_power(node)[0] is node
            is_fractional = is_power or node.name == "log"  # exp(c log z) is a power, too
            return frozenset({node.name, FRACTIONAL} if is_fractional else {node.name})
        case Conj():
            return frozenset({"Conj"})
        case Var() if isinstance(node.type, Space) and any(action.conjugate for action in node.type.generators):
            return frozenset({"Conj"})
        case Delta() | Indicator() | Unequal():
            return frozenset({"Delta"})
    return frozenset()


def multiplied(term: Term) -> Term:
    """A term with x·x for x² and x·x·x for x³, which is what the laws of these two powers make of them."""
    return _Multiplied().run(term)


class _Multiplied(Rewriter):
    def node(self, term: Term) -> Term:
        children = tuple(map(self.run, term.children))
        if isinstance(term, Mul):
            return mul(*children)
        if isinstance(term, Add):
            return add(*children)
        new = term if children == term.children else term.with_children(children)
        base, exponent = whole_power(new)
        return mul(*[base] * exponent) if exponent in (2, 3) else new


def is_settled(term: Term, files: tuple[RuleFile, ...]) -> bool:
    """Whether the laws of these files make nothing of a term but its normal form."""
    if len(files) > len(BUILT_IN) or not all(map(_is_plain, subterms(term))):
        return False
    return not reached(files, words_in(term)).of_functions


def _is_plain(node: Term) -> bool:
    """Whether a part of a term is of the kinds whose laws the normal form obeys, and in its order."""
    match node:
        case Var():
            return not isinstance(node.type, Space) or (node.type.dtype is not complex and not node.type.symmetry)
        case Apply():
            return isinstance(node.function, Var) and isinstance(node.function.type, Space)
        case Sum():
            return not isinstance(node.body, Add)
        case Mul():
            return not any(isinstance(factor, Mul) for factor in node.factors)
        case Add():
            return not any(isinstance(part, Add) or _is_multiple_of_a_sum(part) for part in node.terms)
        case Primitive():
            return not is_matrix_function(node)
    return isinstance(node, Number | Affine)


def _is_multiple_of_a_sum(term: Term) -> bool:
    """Whether a term is a number times a sum, which a sum takes apart."""
    return isinstance(term, Mul) and len(term.factors) == 2 and all(map(isinstance, term.factors, (Number, Add)))
