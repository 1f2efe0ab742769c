"""Extraction against exhaustive search: on small e-graphs every term of a class is written out, and none is cheaper."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from elements import at

import combdiff as cd
from combdiff.ir.domains import Range, Space
from combdiff.ir.indices import size_of_axis
from combdiff.ir.primitives import function, power
from combdiff.ir.substitution import Names
from combdiff.ir.terms import Number, Sum, Term, Var, add, conj, mul, negate, total
from combdiff.simplification.egraph import extraction, saturation
from combdiff.simplification.egraph.encoding import Codec
from combdiff.simplification.egraph.extraction import Classes, Extractor, cost, read

n = Range("n")
i, j, k, d = (Var(name, n) for name in "ijkd")
x, y = Var("x", Space("n")), Var("y", Space("n"))
z = Var("z", Space("n", dtype=complex))
A = Var("A", Space("n", "n", symmetry=["A[i,j] = A[j,i]"]))
B = Var("B", Space("n", "n"))
r, s, c = Var("r", Space()), Var("s", Space()), Var("c", Space(dtype=complex))


TERMS = [
    add(mul(r, s), mul(r, s)),
    add(mul(Number(2), r), negate(r), s),
    mul(add(r, s), add(r, s)),
    power(add(r, s), Number(2)),
    mul(function("sqrt", r), function("sqrt", r), s),
    add(function("sin", r), function("exp", function("log", s))),
    total((i,), mul(at(A, i, d), at(x, i))),
    total((i, j), mul(at(A, i, j), at(x, i), at(x, j))),
    total((i, j), mul(at(B, i, j), at(x, i), at(y, j))),
    add(total((i,), mul(at(A, i, d), at(x, i))), total((j,), mul(at(A, d, j), at(x, j)))),
    conj(mul(at(z, d), conj(at(z, d)))),
    function("real", mul(at(x, d), at(z, d))),
    total((i,), mul(at(x, i), add(at(x, i), at(y, i)))),
    mul(total((i,), at(x, i)), total((j,), at(x, j))),
    power(function("exp", mul(r, s)), Number(2)),
    add(mul(r, r), power(r, Number(2))),
    mul(conj(function("exp", c)), function("exp", conj(c))),
    mul(Number(2), power(mul(Number(2), r), Number(-1))),
    mul(r, power(mul(Number(2), r), Number(-1)), s),
]
MOST = 4000  # terms of one class


def every_term(classes: Classes, extractor: Extractor, class_: Any, above: frozenset[Any]) -> set[Term]:
    """Every term of a class in which no class lies inside itself."""
    if class_ in above:
        return set()
    inside, found = above | {class_}, set[Term]()
    for name, payload in classes.values.get(class_, ()):
        if name in ("Num", "Float", "At", "Opaque", "Delta", "Where"):
            found.update(extractor._terms(name, payload))
            continue
        parts = {"Conj": lambda p: (p,), "Scale": lambda p: (p[2],), "Fn": lambda p: p[1], "Sum": lambda p: (p[1],)}
        children = parts.get(name, tuple)(payload)
        options = [sorted(every_term(classes, extractor, c, inside), key=cost)[:12] for c in children]
        for chosen in itertools.islice(itertools.product(*options), MOST):
            found.add(written(extractor, name, payload, chosen))
    return found


def written(extractor: Extractor, name: str, payload: Any, parts: tuple[Term, ...]) -> Term:
    """The term of a node over chosen parts."""
    match name:
        case "Conj":
            return conj(parts[0])
        case "Scale":
            return mul(Number(payload[0], payload[1]), parts[0])
        case "Fn":
            return function(payload[0], *parts)
        case "Sum":
            return total(sorted((extractor.index_terms[c] for c in payload[0]), key=lambda v: v.name), parts[0])
        case "Prod":
            return mul(*parts)
    return add(*parts)


@pytest.mark.sample(24)
@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("term", TERMS, ids=str)
def test_no_term_of_a_small_e_graph_is_cheaper(term: Term, steps: int) -> None:
    codec = Codec()
    with saturation.session(()) as egraph:
        parts, start = codec.written(saturation.apart(term, Names(term)))
        saturation.run_text(egraph, f"{codec.tensor_laws()}\n{parts}\n(let $root {start})")
        for _ in range(steps):
            saturation.run_text(egraph, saturation.STEP)
        classes = read(egraph, codec)
        extractor = Extractor(classes, codec)
        root = egraph.lookup_function("$root", [])
        _, best = extractor.best_of_all()[root]
        terms = every_term(classes, extractor, root, frozenset())
    assert terms
    assert cost(best) <= min(map(cost, terms))


# --- what a product costs --------------------------------------------------------------------------------------------


def looked_at_anew(factors: tuple[frozenset[Var], ...], summed: frozenset[Var]) -> float:
    """The same cost with every pair looked at before each product, every order tried of few factors."""
    others = tuple(filter(None, factors))
    numbers = len(factors) - len(others) if others else 0
    pool = list(dict.fromkeys(others if numbers else factors))
    work = sum(map(extraction.volume, factors)) - numbers - sum(map(extraction.volume, pool))
    try_all = len(pool) <= extraction.FEW_FACTORS
    more, least = in_every_order(pool, summed) if try_all else greedily(pool, summed)
    if len(pool) == 1 and not work and summed:  # nothing is multiplied that would be summed on the way
        more, least = extraction.volume(pool[0] | summed), extraction.volume(pool[0] - summed)
    return work + more + (numbers - 1 + least if numbers else 0)


def in_every_order(pool: list[frozenset[Var]], summed: frozenset[Var]) -> tuple[float, float]:
    """The least work of all orders of multiplying two by two, and the size of the smallest tensor in that order."""
    if len(pool) == 1:
        return 0, extraction.volume(pool[0])
    ways = []
    for a, b in itertools.combinations(range(len(pool)), 2):
        rest = [each for n, each in enumerate(pool) if n not in (a, b)]
        left = frozenset(i for i in pool[a] | pool[b] if i not in summed or any(i in each for each in rest))
        work, least = in_every_order([left, *rest], summed)
        least = min(least, *map(extraction.volume, pool))
        ways.append((work + extraction.volume(pool[a] | pool[b]), least))
    return min(ways)


def greedily(pool: list[frozenset[Var]], summed: frozenset[Var]) -> tuple[float, float]:
    """The work where each time those two are multiplied that leave the smallest tensor, and the smallest on the way."""
    work, least = 0, min(map(extraction.volume, pool))

    def left(a: int, b: int) -> frozenset[Var]:
        rest = [each for n, each in enumerate(pool) if n not in (a, b)]
        return frozenset(i for i in pool[a] | pool[b] if i not in summed or any(i in each for each in rest))

    def key(pair: tuple[int, int]) -> tuple[int, int, int, int]:
        one, other = (pool[n] for n in pair)
        grown = extraction.volume(left(*pair)) - extraction.volume(one) - extraction.volume(other)
        return grown, extraction.volume(one | other), *pair

    while len(pool) > 1:
        a, b = min(itertools.combinations(range(len(pool)), 2), key=key)
        work += extraction.volume(pool[a] | pool[b])
        pool = [*(each for n, each in enumerate(pool) if n not in (a, b)), left(a, b)]
        least = min(least, extraction.volume(pool[-1]))
    return work, least


@pytest.mark.parametrize("seed", range(4))
def test_a_product_costs_what_its_cheapest_pairs_do(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(20):
        indices = [Var(f"i{n}", Range(draw.choice(["n", 2, 3, 100]))) for n in range(draw.randint(1, 9))]
        draws = [draw.sample(indices, draw.randint(0, min(len(indices), 4))) for _ in range(draw.randint(2, 9))]
        factors, summed = tuple(map(frozenset, draws)), frozenset(i for i in indices if draw.random() < 0.6)
        assert extraction.contraction_cost(factors, summed) == looked_at_anew(factors, summed)


def test_what_is_summed_first_makes_a_product_cheap() -> None:
    """Σ_{i,j} L[d,j,e] s[d,j,i] u[d,i] sums over i first: a greedy search takes the two large tensors."""
    (d, e, i, j) = (Var(name, Range(10)) for name in "deij")
    factors = (frozenset((d, j, e)), frozenset((d, j, i)), frozenset((d, i)))
    assert extraction.contraction_cost(factors, frozenset((i, j))) == 2000


def test_a_number_is_multiplied_by_a_sum_in_front_of_it_or_behind() -> None:
    """n additions and a product: Σ_i r x[i] counts as r Σ_i x[i], of which the latter is printed."""
    assert cost(Sum((i,), mul(r, at(x, i)))) == cost(mul(r, total((i,), at(x, i))))
    found = cd.simplify(cd.read("x (n), y (n)\n(x, y, t) ↦ Σ_i t (x[i] - y[i])"))
    assert str(found) == "(x, y, t) ↦ t Σ_i (x[i] - y[i])"


def test_the_number_of_values_of_an_index_costs_less_than_a_sum_over_it() -> None:
    """What nothing under a Σ reads is a factor: Σ_i a/b is n a/b."""
    quotient = mul(r, power(s, Number(-1)))
    assert cost(mul(size_of_axis(n), quotient)) < cost(Sum((i,), quotient))
    assert cost(mul(r, total((i,), mul(at(x, i), at(y, i))))) < cost(Sum((i,), mul(r, at(x, i), at(y, i))))


def test_the_pairs_of_a_long_product_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain of n matrices: n² of them, where all of them before each product would be n³."""
    volume, counted = extraction.volume, Counter[int]()

    def chain(length: int) -> None:
        def counting(indices: Iterable[Var]) -> int:
            counted[length] += 1
            return volume(indices)

        monkeypatch.setattr(extraction, "volume", counting)
        indices = [Var(f"j{n}", Range("n")) for n in range(length + 1)]
        factors = tuple(frozenset(pair) for pair in itertools.pairwise(indices))
        extraction.contraction_cost.__wrapped__(factors, frozenset(indices[1:]))

    chain(15)
    chain(60)
    assert counted[60] < 24 * counted[15]
