"""Long sums, simplified in groups of terms so that the work is linear in their number.

    2 x[d] + y[d] + … + 3 x[d] + …   →   (2 x[d] + y[d] + …) + (3 x[d] + …)   →   5 x[d] + y[d] + …

The cotangent of a tensor that every layer of a deep program uses has a term for each. Laws compare each term of a sum
with every other, which for all at once would cost a square of their number.

Invariant: the result equals the input in value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from combdiff.ir import Add, Names, Number, Term, add, factors_of, mul
from combdiff.simplification.normal_form.canonical import canonical
from combdiff.simplification.normal_form.contraction import normalise

MOST_TERMS = 12  # of a sum that are simplified together


def summands(term: Term) -> list[Term]:
    """The terms of a sum, those of the sums in it too; a sum that it has as a part more than once stays one."""
    inner = [node for node in _sums(term) if isinstance(node, Add)]
    uses = Counter(child for node in inner for child in node.terms if isinstance(child, Add))
    found: list[Term] = []
    todo = [term]
    while todo:
        part = todo.pop()
        if isinstance(part, Add) and uses[part] <= 1:
            todo += reversed(part.terms)
        else:
            found.append(part)
    return found


def _sums(term: Term) -> Iterator[Term]:
    """A sum and the sums that are terms of it, each once."""
    seen, todo = {term}, [term]
    while todo:
        part = todo.pop()
        yield part
        new = [child for child in dict.fromkeys(part.children) if isinstance(child, Add) and child not in seen]
        seen.update(new)
        todo += new


def groups(term: Term) -> list[Term]:
    """The sums of the terms of a sum that are simplified together; of any other term itself."""
    return _groups(summands(term))


def _groups(terms: list[Term]) -> list[Term]:
    return [add(*terms[n : n + MOST_TERMS]) for n in range(0, len(terms), MOST_TERMS)]


def simplify_sum(terms: list[Term], simplify: Callable[[Term], Term]) -> Term:
    """A sum of terms simplified by a function; a long one in groups, again as long as that makes it much shorter."""
    if len(terms) <= MOST_TERMS:
        return simplify(add(*terms))
    simple = _collected([part for group in _groups(terms) for part in summands(simplify(group))])
    return add(*simple) if len(simple) > len(terms) // 2 else simplify_sum(simple, simplify)


def _collected(parts: list[Term]) -> list[Term]:
    """The terms of a sum with those that are equal up to numbers and names of bound indices made one."""
    forms: dict[object, int] = {}
    names = Names(*parts)
    kept: dict[Term, tuple[Term, Term]] = {}
    for part in parts:
        factors = factors_of(part)
        number, rest = (factors[0], mul(*factors[1:])) if isinstance(factors[0], Number) else (Number(1), part)
        form = canonical(normalise(rest, names), forms)
        held = kept.get(form)
        kept[form] = (number, rest) if held is None else (add(held[0], number), held[1])
    return summands(add(*(mul(number, rest) for number, rest in kept.values())))
