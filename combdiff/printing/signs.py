"""A minus in front of a formula taken into a difference in it, where there is one.

    -2 (a - b)   =   2 (b - a)
    -Σ_i x[i] (y[i] - 1)   =   Σ_i x[i] (1 - y[i])
    -(a + b)   =   -a - b
    -2 (a - b) - c   =   2 (b - a) - c
    -x (y (a - b) + c)   =   x (y (b - a) - c)
    -(A - B)ᵀ·x   =   (B - A)ᵀ·x

Invariant: the formula that is given back is the negative of the one that was given, and no longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from combdiff.printing.documents import (
    BigSum,
    Division,
    Doc,
    ElementProduct,
    Juxtaposition,
    Marked,
    MatrixProduct,
    Signed,
)


def with_sign(negative: bool, doc: Doc) -> Doc:
    """A formula, or its negative: by turning a difference in it, by a minus before each term, or by one before it."""
    if not negative:
        return doc
    if isinstance(doc, Signed) and not any(minus for minus, _ in doc.terms):
        return added((True, term) for _, term in doc.terms)
    return negated(doc) or Signed(((True, doc),))


def added(terms: Iterable[tuple[bool, Doc]]) -> Signed:
    """A sum of formulas with their signs: a positive one first, made so by turning differences where there is none."""
    ordered = list(terms)
    if all(negative for negative, _ in ordered):
        turned = [(term, negated(term)) for _, term in ordered]
        ordered = [(other is None, other or term) for term, other in turned]
    first = next((n for n, (negative, _) in enumerate(ordered) if not negative), 0)
    return Signed((ordered[first], *ordered[:first], *ordered[first + 1 :]))


def negated(doc: Doc) -> Doc | None:
    """The negative of a formula without a sign before it; None where it has no difference that could be turned."""
    match doc:
        case Signed():
            return _turned(doc)
        case Marked():
            body = negated(doc.body)
            return body and Marked(body, doc.sign)
        case BigSum():
            body = negated(doc.body)
            return body and replace(doc, body=body)
        case Division():
            above, below = negated(doc.numerator), negated(doc.denominator)
            if above or below:
                return Division(above or doc.numerator, doc.denominator if above else below or doc.denominator)
        case Juxtaposition() | MatrixProduct():
            for n, factor in enumerate(doc.factors):
                if other := negated(factor):
                    return type(doc)((*doc.factors[:n], other, *doc.factors[n + 1 :]))
        case ElementProduct():
            for n, factor in enumerate(doc.above):
                if other := negated(factor):
                    return ElementProduct((*doc.above[:n], other, *doc.above[n + 1 :]), doc.below)
    return None


def _turned(doc: Signed) -> Doc | None:
    """`b - a` for `a - b`, what is positive first; a sum without a minus, and without one that a term could take, keeps
    the one before it."""
    turned = added((not negative, term) for negative, term in doc.terms)
    if turned.terms[0][0]:
        return None
    return turned if len(turned.terms) > 1 else turned.terms[0][1]
