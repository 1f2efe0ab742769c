"""Powers that are 0 beside the logarithm of their base, as in derivatives by an exponent: of x = 0, 0^y log 0 is 0.

    x^y · log x     →     x^y · log([x^y ≠ 0]·x + [x^y = 0])

A base is often data with zeros in them, and one number that is none would make the whole gradient none.

Invariant: only products that would be 0·∞ have another value, their limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from combdiff.ir import (
    ZERO,
    Add,
    Lambda,
    Mul,
    Number,
    Primitive,
    Term,
    add,
    dtype_of,
    function,
    is_call,
    mul,
    relation,
    subterms,
    whole_power,
)
from combdiff.stability.bindings import Rewriting


def with_vanishing_powers(program: Lambda) -> Lambda:
    """The program in which the logarithm of a base that is 0 does not count beside a power of it that is."""
    parts = list(subterms(program))
    logarithms = any(isinstance(part, Primitive) and part.name == "log" for part in parts)
    if not logarithms or not any(map(_is_power, parts)):
        return program
    finding = _Vanishing(program)
    found = finding.rewritten()
    return found if finding.finds else program


def _is_power(term: Term) -> bool:
    """Whether a term is a real power whose exponent is no number."""
    return (
        isinstance(term, Primitive)
        and term.name == "power"
        and not isinstance(term.arguments[1], Number)
        and dtype_of(term) is not complex
    )


class _Vanishing(Rewriting):
    """Rewrites the bindings of one program; see the module."""

    def __init__(self, program: Lambda) -> None:
        super().__init__(program)
        self.finds = False
        self._values: dict[Term, Term] = {}

    def value(self, term: Term) -> Term:
        """A number or tensor, rewritten."""
        if term not in self._values:
            self._values[term] = self._of_value(term)
        return self._values[term]

    def _of_value(self, term: Term) -> Term:
        if not term.children or is_call(term):
            return term
        children = tuple(map(self.value, term.children))
        new = term if children == term.children else term.with_children(children)
        return self._product(new.factors) if isinstance(new, Mul) else new

    def _product(self, factors: Sequence[Term]) -> Term:
        """A product, with the logarithms of the bases of powers in it where those are not 0."""
        told: dict[Term, Term] = {}
        for factor in factors:
            power = self.opened(factor)
            if isinstance(power, Primitive) and _is_power(power):
                base = power.arguments[0]
                kept = add(mul(relation("not_equal", factor, ZERO), base), relation("equal", factor, ZERO))
                told[function("log", base)] = function("log", kept)
        return mul(*(self._with_told(factor, told) for factor in factors)) if told else mul(*factors)

    def _with_told(self, term: Term, told: Mapping[Term, Term]) -> Term:
        """A polynomial of terms, of which some are others."""
        if (other := told.get(self.opened(term))) is not None:
            self.finds = True
            return other
        if isinstance(term, Add | Mul) or whole_power(term)[0] is not term:
            children = tuple(self._with_told(child, told) for child in term.children)
            return term if children == term.children else term.with_children(children)
        return term
