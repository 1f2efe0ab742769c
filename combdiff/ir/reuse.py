"""Numbers that a program computes once and uses again stay one object while it is traced.

    y = a*b + c;  y*(1 − y)         traced    Mul(⟨y⟩, 1 − ⟨y⟩)        with ⟨y⟩ = Apply(Lambda((), a*b + c), ())
                                    settled   t·(1 − t), t = a*b + c    where y is long, else as it stands

Sums and products are joined with those inside of them, so a number that is used twice would be there twice, and after
n steps of a loop 2ⁿ times. Therefore an operand of arithmetic is held: an abstraction of nothing, applied to nothing,
as the elements of computed tensors are abstractions applied. Once the program is traced it is known what is used again.

Invariant: what stays held in a settled term is long and used more than once; written as a tree, a settled term is as
long as its graph is large, up to a factor.
"""

from __future__ import annotations

from collections import Counter

from combdiff.ir.remainders import read_around
from combdiff.ir.substitution import subterms
from combdiff.ir.terms import Add, Apply, Lambda, Mul, Term
from combdiff.ir.types import dtype_of, is_domain

MOST_REPEATED = 18  # symbols up to which an element of a tensor is written again wherever it is used
MOST_REPEATED_NUMBER = (
    7  # the same for a number without indices: r·x·(1 − x) has 8, and doubles with each step of a loop
)


def held(term: Term) -> Term:
    """A number as an operand: as one object, where arithmetic would open it. Integers stay index expressions."""
    compound = isinstance(term, Add | Mul) and dtype_of(term) is not int
    return Apply(Lambda((), term), ()) if compound else term


def released(term: Term) -> Term:
    """What is held, or the term itself."""
    return term.function.body if is_held(term) else term  # type: ignore[attr-defined]


def is_held(term: Term) -> bool:
    """Whether a term is a number that is held."""
    return isinstance(term, Apply) and isinstance(term.function, Lambda) and not term.function.parameters


def settled(term: Term) -> Term:
    """The term with numbers released that are short or used once."""
    return settled_parts(term)[term]


def settled_parts(term: Term) -> dict[Term, Term]:
    """For each part of a term what it is in the settled term."""
    parts = list(subterms(term))
    if not any(map(is_held, parts)):
        return {part: part for part in parts}
    uses = Counter(child for part in parts for child in part.children)
    done: dict[Term, Term] = {}
    lengths: dict[Term, int] = {}
    for part in parts:
        if is_held(part):
            inside = released(part)
            often = uses[part] + uses[inside] > 2  # read bare, too, where it is all of a Σ or an argument
            most = MOST_REPEATED if any(is_domain(v.type) for v in inside.free) else MOST_REPEATED_NUMBER
            done[part] = held(done[inside]) if often and lengths[done[inside]] > most else done[inside]
        else:
            done[part] = part.with_children(tuple(done[child] for child in part.children))
        _measure(done[part], lengths)
    return done


def repeated_in(parts: list[Term]) -> set[Term]:
    """What occurs several times among the parts of a term, from the leaves up, and is a long number at each index."""
    uses = Counter(child for part in parts for child in part.children)
    lengths: dict[Term, int] = {}
    for part in parts:
        _measure(part, lengths)
    return {
        part
        for part in parts
        if uses[part] > 1 and lengths[part] > MOST_REPEATED and any(is_domain(v.type) for v in part.free)
    }


def _measure(term: Term, lengths: dict[Term, int]) -> None:
    """Notes how many symbols a term takes to print; an element of a computed tensor, or what is held, is a name.

    So is what is read around an axis.
    """
    named = (isinstance(term, Apply) and isinstance(term.function, Lambda)) or read_around(term) is not None
    for child in term.children:
        if child not in lengths:  # what arithmetic has made anew
            _measure(child, lengths)
    lengths[term] = 1 + sum(1 if named else lengths[child] for child in term.children)
