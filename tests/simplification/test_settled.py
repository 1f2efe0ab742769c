"""What is not asked of the e-graph would have had no answer: terms that no law changes, laws that find no match."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from textbook import entries

import combdiff as cd
from combdiff.ir import Names, Number, Space, Term, Var, add, function, mul, power, raised
from combdiff.simplification import load, pipeline, run_text, symbols
from combdiff.simplification.egraph import saturation
from combdiff.simplification.egraph.encoding import Codec
from combdiff.simplification.egraph.extraction import price
from combdiff.simplification.egraph.saturation import STEP, apart, session, unsaturated
from combdiff.simplification.egraph.settled import is_settled, multiplied, words_in
from combdiff.simplification.laws.reach import reached
from combdiff.simplification.laws.syntax import law_names, trusted

EACH = 90  # an entry of the table of textbooks is looked at, and so many are not
LONGEST = 40  # symbols


@cache
def met() -> tuple[Term, ...]:
    """Terms that are simplified for derivatives of textbooks."""
    found: dict[Term, None] = {}
    simplify = pipeline._affordable

    def kept(term: Term, *further: Any) -> Term:
        found.setdefault(term)
        return simplify(term, *further)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "simplified_once", lambda term, rules, known, do: do(term, rules, known))
        patch.setattr(pipeline, "body_once", lambda body, rules, stage, do: do())
        patch.setattr(pipeline, "_affordable", kept)
        for entry in entries()[::EACH]:
            assert entry.derivative.term
    return tuple(term for term in found if symbols(term) <= LONGEST)


@pytest.mark.thorough
def test_saturation_finds_nothing_cheaper_for_a_settled_term() -> None:
    x, v = Var("x", cd.Space()), Var("v", cd.Space())
    cubic = add(x, mul(Number(-3), power(x, Number(2)), v), power(add(x, v), Number(3)))
    terms = (*met(), cubic)
    cheaper = {term: price(saturation.simplify(term)) < price(unsaturated(multiplied(term))) for term in terms}
    settled = [term for term in terms if is_settled(multiplied(term), load())]
    assert len(settled) > 5
    assert cubic in settled
    assert any(cheaper.values())
    assert not any(cheaper[term] for term in settled)


@pytest.mark.thorough
def test_a_law_that_is_left_out_finds_no_match() -> None:
    """All laws are applied to each term, and those that fire are among those that were to be reached."""
    every = sum(len(law_names(file.commands)) for file in load())
    for term in met():
        laws = reached(load(), words_in(term)).names
        assert len(laws) < every
        codec = Codec()
        with session(()) as egraph:
            parts, start = codec.written(apart(term, Names(term)))
            run_text(egraph, f"{codec.tensor_laws()}\n{parts}\n(let $root {start})")
            own = {name for command in trusted(codec.tensor_laws()) for name in law_names([command])}
            for _ in range(4):
                (ran,) = run_text(egraph, STEP)
                fired = {name for name, count in ran.report.num_matches_per_rule.items() if count}
                assert fired <= laws | own, term


@pytest.mark.thorough
def test_files_of_users_are_asked_of_every_term(tmp_path: Any) -> None:
    """They may say anything of sums and products."""
    file = tmp_path / "own.egg"
    file.write_text('(rewrite (At (T "x") v) (Conj (At (T "x") v)) :name "x is real")\n', "utf-8")
    files = load([file])
    assert not any(is_settled(term, files) for term in met())
    assert {"x is real", "sin² + cos² = 1"} <= reached(files, frozenset()).names


def test_an_egraph_with_more_laws_serves_until_too_many_of_them_were_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saturation, "_local", type(saturation._local)())
    many, few = frozenset({"power", "exp", "Conj", "Delta"}), frozenset({"power"})
    larger = saturation._base_egraph(load(), many)
    laws = [len(reached(load(), words).names) for words in (many, few)]
    uses = int(saturation.MOST_IDLE * laws[1] / (laws[0] - laws[1]))
    assert uses > 3
    served = [saturation._base_egraph(load(), few) for _ in range(uses + 2)]
    assert served[:uses] == [larger] * uses
    assert larger not in served[uses:]
    assert served[uses] is served[uses + 1]


def test_an_egraph_with_the_laws_of_two_takes_the_place_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has many laws more than some terms ask for is made beside that of few: it would be slow for them."""
    monkeypatch.setattr(saturation, "_local", type(saturation._local)())
    first, second, large = frozenset({"exp"}), frozenset({"abs"}), frozenset({"power", "log", "inv", "det", "maximum"})
    made = {saturation._base_egraph(load(), words) for words in (first, second, large)}
    both, many = saturation._local.egraphs
    assert [both.words, many.words] == [first | second, large]
    assert made > {both.egraph, many.egraph}
    served = [saturation._base_egraph(load(), words) for words in (first, second, frozenset(), large)]
    assert served == [both.egraph] * 3 + [many.egraph]


def test_an_egraph_for_what_is_foreseen_is_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saturation, "_local", type(saturation._local)())
    x, rare = Var("x", Space()), frozenset({"exp", "log", "sin", "cos", "inv", "det"})
    with saturation.foreseen([function("exp", x), raised(x, -1)]):
        made = saturation._base_egraph(load(), frozenset({"exp"}))
        assert saturation._base_egraph(load(), frozenset({"power"})) is made
        assert saturation._base_egraph(load(), rare) is not made
    assert not saturation._local.foreseen


def test_what_is_not_in_terms_brings_no_laws_along() -> None:
    plain, starred, solved = (reached(load(), frozenset({"exp", *more})).names for more in ((), ("Conj",), ("Delta",)))
    assert {"conjugate twice", "f(z*) = f(z)*", "an element of a real tensor"} <= starred - plain
    assert {"δ meets Σ", "replace in a product", "an indicator squared"} <= solved - plain
    assert "Re of a real" not in starred | solved
    assert "Re of a real" in reached(load(), frozenset({"real"})).names
