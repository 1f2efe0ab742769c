"""Laws tested on numbers: the built-in ones hold, false ones are named with a counter-example."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from law_mutants import CLAIMS, MISTAKES, mutants
from law_mutants import TRUE as TRUE_ONES

import combdiff as cd
from combdiff.cli import main
from combdiff.simplification.laws import loading
from combdiff.simplification.laws.loading import BUILT_IN, rule_directory
from combdiff.simplification.laws.syntax import law_names
from combdiff.testing import laws

README = (Path(__file__).parents[2] / "rules" / "README.md").read_text(encoding="utf-8")


pytestmark = pytest.mark.usefixtures("primitive_table")


@pytest.mark.thorough
def test_all_built_in_laws_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other instances than those on which some are broken below, a dozen of each; .ci/run tries all of them."""
    monkeypatch.setattr(laws, "GRAPHS", 1)
    found = cd.testing.check_rules(seed=1)
    names = [verdict.name for verdict in found]
    assert len(names) > 100
    assert {"δ meets Σ", "like terms", "f(z*) = f(z)*", "replace in an access", "expand to free a δ"} <= set(names)
    assert all(verdict.matches > 0 for verdict in found)


@pytest.mark.parametrize("block", [0, 1])
def test_the_laws_of_the_page_hold(block: int, rule_file: Any) -> None:
    blocks = README.split("```lisp\n")[1:]
    assert cd.testing.check_rules(rule_file(blocks[block].split("```")[0]))


FALSE = [
    # functions
    '(rewrite (Fn "tanh" v) (Fn "sin" v))',
    '(rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x)',  # true for reals
    '(rewrite (Fn "sqrt" (vec-of (Prod (multiset-of x x)))) x)',
    '(rewrite (Fn "sqrt" (vec-of (Prod (multiset-of x x)))) x :when ((real x)))',  # |x|
    '(rewrite (Fn "abs" (vec-of x)) x :when ((real x)))',
    '(rewrite (Fn "exp" (vec-of (Conj x))) (Fn "exp" (vec-of x)))',
    '(rewrite (Fn "real" (vec-of (Fn f v))) (Fn f v) :when ((mirror f)))',
    "(rewrite (Conj (Fn f v)) (Fn f v) :when ((mirror f)))",
    # sums and products
    "(rewrite (Times x x) x)",
    "(rewrite (Plus x y) x)",
    "(rewrite (Scale a b x) (Scale a (neg b) x))",
    "(rewrite (Scale a b (Conj x)) (Conj (Scale a b x)))",
    "(rewrite (Conj x) x)",
    "(rewrite (Times x (Conj y)) (Times (Conj x) y))",
    # indices
    "(rewrite (Delta i j k) (Num $one $zero))",
    "(rewrite (Sum bs v) v)",
    "(rewrite (Sum bs (Prod ms)) (Prod ms))",
    "(rewrite (Where i m) (Where (Neg i) m))",
    "(rewrite (At t (vec-of i j)) (At t (vec-of j i)))",  # without asking for a symmetry
    "(rewrite (At (T A) (vec-of i j)) (At (T A) (vec-of j i)) :when ((antisymmetric A 0 1)))",
    "(rewrite (At (T A) (vec-of i j)) (At (T A) (vec-of j i)) :when ((hermitian A 0 1)))",
    '(rewrite (Conj (At (T A) v)) (At (T A) v) :when ((tensor A 2 "complex")))',
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("law", FALSE)
def test_a_false_law_is_found(law: str, rule_file: Any) -> None:
    path = rule_file(law[:-1] + ' :name "the false law")')
    with pytest.raises(cd.RuleError, match="the false law is false: ") as raised:
        cd.testing.check_rules(path)
    assert str(raised.value).startswith(f"{path}:1:1: ")
    assert " = " in str(raised.value)
    assert ", but " in str(raised.value)


TRUE = [
    '(rewrite (Fn "log" (vec-of (Fn "exp" (vec-of x)))) x :when ((real x)))',
    '(rewrite (Fn "sqrt" (vec-of (Prod (multiset-of x x)))) (Fn "abs" (vec-of x)) :when ((real x)))',
    '(rewrite (Times x (Conj x)) (Prod (multiset-of (Fn "abs" (vec-of x)) (Fn "abs" (vec-of x)))))',
    "(rewrite (At (T A) (vec-of i j)) (At (T A) (vec-of j i)) :when ((symmetric A 0 1)))",
    "(rewrite (At (T A) (vec-of i j)) (Conj (At (T A) (vec-of j i))) :when ((hermitian A 0 1)))",
    "(rewrite (At (T A) (vec-of i j)) (Scale (neg $one) $zero (At (T A) (vec-of j i))) :when ((antisymmetric A 0 1)))",
    '(rewrite (Conj (At (T A) v)) (At (T A) v) :when ((tensor A n "float")))',
    '(birewrite (Fn "tanh" (vec-of x)) (Scale $zero (neg $one) (Fn "tan" (vec-of (Scale $zero $one x)))))',
    '(rewrite (Fn "maximum" (vec-of x y)) (Fn "maximum" (vec-of y x)))',
    '(rewrite (Fn "relu" (vec-of x)) (Times x (Fn "step" (vec-of x))))',
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("law", TRUE)
def test_a_true_law_holds(law: str, rule_file: Any) -> None:
    found = cd.testing.check_rules(rule_file(law))
    assert found
    assert all(verdict.status == "holds" and verdict.matches for verdict in found)


@pytest.mark.thorough
def test_mistakes_and_claims_are_found(rule_file: Any) -> None:
    """Some of them all, and each that once passed."""
    passed = [claim for claim in CLAIMS if not claim.startswith("(rewrite") or "5" in claim or "symmetric" in claim]
    found = list(cd.testing.verdicts(rule_file(mutants(MISTAKES[::6], passed))))
    assert len(found) > 25
    assert [verdict.name for verdict in found if verdict.status != "false"] == []


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_every_mistake_and_claim_is_found_and_nothing_true_refused(rule_file: Any, seed: int) -> None:
    found = list(cd.testing.verdicts(rule_file(mutants(MISTAKES, CLAIMS)), seed))
    assert len(found) == len(MISTAKES) + len(CLAIMS) >= 60
    assert [verdict.name for verdict in found if verdict.status != "false"] == []
    true = cd.testing.check_rules(rule_file(mutants([], TRUE_ONES)), seed=seed)
    assert len(true) == len(TRUE_ONES)


def test_a_false_fact_is_blamed_and_not_what_rests_on_it(rule_file: Any) -> None:
    true = '(rewrite (Fn "exp" (vec-of (Conj x))) (Fn "exp" (vec-of x)) :when ((real x)) :name "true")'
    false = '(rule ((= e (Conj x))) ((real x)) :ruleset facts :name "false")'
    found = {v.name: v.status for v in cd.testing.verdicts(rule_file(f"{false}\n{true}"))}
    assert found == {"false": "false", "true": "holds"}


def test_a_counter_example_is_one(rule_file: Any) -> None:
    """The numbers printed are those of the two sides."""
    law = '(rewrite (Fn "exp" (vec-of x)) (Fn "cosh" (vec-of x)) :name "exp is cosh")'
    with pytest.raises(cd.testing.FalseLaw) as raised:
        cd.testing.check_rules(rule_file(law))
    message = str(raised.value)
    assert "exp(" in message
    assert "cosh(" in message


@pytest.mark.thorough
def test_a_law_that_nothing_meets_is_reported(rule_file: Any) -> None:
    path = rule_file('(rewrite (Fn "exp" v) $null :when ((= $zero $one)) :name "never")')
    with pytest.raises(cd.testing.FalseLaw, match="never could not be tested: no random instance meets its conditions"):
        cd.testing.check_rules(path)


def test_a_law_of_matrices_that_do_not_fit_is_untested(rule_file: Any) -> None:
    """A row of a matrix function of numbers has no transpose, the largest of complex numbers no value."""
    path = rule_file('(rewrite (At (Transposed (MatrixFn g u)) v) $null :name "numbers in a row")')
    with pytest.raises(cd.testing.FalseLaw, match="numbers in a row"):
        cd.testing.check_rules(path)


BROKEN = [
    (
        "like terms",
        "(Scale (bigrat (bigint n) (bigint 1)) $zero x)",
        "(Scale (bigrat (bigint 1) (bigint 1)) $zero x)",
    ),
    ("δ meets Σ", "(Subst (I i k) (I j k) (Prod rest))", "(Prod rest)"),
    ("conjugate of a product", '(unstable-multiset-map (unstable-fn "Conj") ms)', "ms"),
    ("Σ of Σ", ":when ((= 0 (set-length (set-intersect bs cs))))", ""),
    ("replace in δ", "(SubstIndex i j b)", "b"),
    ("a real factor leaves Re and Im", "(real r)", ""),
    ("minus a step", "(By (neg c) i)", "(By c i)"),
]


def test_broken_built_in_laws_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each law runs alone, so that one does not hide or blame another; the others are tried by the first test."""
    texts = {name: (rule_directory() / name).read_text("utf-8") for name in BUILT_IN}
    for law, text, changed in BROKEN:
        (name,) = (name for name, source in texts.items() if f':name "{law}"' in source)
        before, middle, after = texts[name].partition(f':name "{law}"')
        start = max(before.rfind(f"\n({kind} ") for kind in ("rule", "rewrite")) + 1
        assert text in before[start:]
        texts[name] = before[:start] + before[start:].replace(text, changed) + middle + after
    for name, source in texts.items():
        (tmp_path / name).write_text(source, "utf-8")
    monkeypatch.setattr(loading, "rule_directory", lambda: tmp_path)
    loading.built_in_files.cache_clear()
    found: list[cd.testing.Verdict] = []
    try:
        files, broken = loading.built_in_files(), {law for law, _, _ in BROKEN}
        checker = laws._Checker(files, (), 0)
        for file in files:
            chosen = tuple(command for command in file.commands if broken & set(law_names([command])))
            found += checker.laws(replace(file, commands=chosen))
    finally:
        loading.built_in_files.cache_clear()
    assert {verdict.name for verdict in found if verdict.status != "holds"} == broken == {v.name for v in found}


# --- primitives ----------------------------------------------------------------------------------------------------

COSH = '(primitive "mine" "") (definition "mine" (Fn "cosh" (vec-of (Argument 0)))) '
RIGHT = '(derivative "mine" 0 (Fn "sinh" (vec-of (Argument 0))))'


def test_a_right_derivative_holds(rule_file: Any) -> None:
    found = cd.testing.check_rules(rule_file(COSH + RIGHT + '(mirror "mine")'))
    assert [str(v.name) for v in found] == ["the derivative of mine", "what is said of mine"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            '(derivative "mine" 0 (Fn "cosh" (vec-of (Argument 0))))',
            "the derivative of mine is false: by argument 0 the ",
        ),
        (
            RIGHT + '(conjugate-derivative "mine" 0 (Argument 0))',
            "the derivative of mine is false: by argument 0 the ",
        ),
        (RIGHT + '(real-valued "mine")', "what is said of mine is false: it is said to be real, but mine("),
    ],
)
def test_a_false_declaration_is_found(said: str, words: str, rule_file: Any) -> None:
    with pytest.raises(cd.RuleError) as raised:
        cd.testing.check_rules(rule_file(COSH + said))
    assert words in str(raised.value)


def test_a_false_mirror_is_found(rule_file: Any) -> None:
    turned = "(Scale $zero $one (Argument 0))"
    text = f'(primitive "turn" "") (definition "turn" {turned}) (derivative "turn" 0 (Num $zero $one)) (mirror "turn")'
    with pytest.raises(cd.RuleError, match="it is said to take conjugates to conjugates, but turn"):
        cd.testing.check_rules(rule_file(text))


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_the_command_checks_files(rule_file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = rule_file(TRUE[0], "good.egg"), rule_file(FALSE[0] + "\n" + TRUE[0], "bad.egg")
    assert main(["check-rules", good]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all 1 hold"
    assert main(["check-rules", good, bad]) == 1
    printed = capsys.readouterr().out
    assert f"{bad}:1:1: bad.egg:1:1 is false: " in printed
    assert f"{bad}:2:1: bad.egg:2:1: holds (" in printed
    assert printed.splitlines()[-1] == "3 laws and derivatives, 1 wrong or untested"


def test_the_command_shows_mistakes(rule_file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = rule_file("(rewrite (Conj x) y)")
    assert main(["check-rules", path]) == 2
    assert f"{path}:1:19: Unbound symbol y, in 'y'" in capsys.readouterr().err


def test_the_same_seed_draws_the_same_instances(rule_file: Any) -> None:
    path = rule_file(FALSE[1])
    messages = set()
    for _ in range(2):
        with pytest.raises(cd.RuleError) as raised:
            cd.testing.check_rules(path, seed=3)
        messages.add(str(raised.value))
    assert len(messages) == 1


def test_any_whole_number_is_a_seed(rule_file: Any) -> None:
    path = rule_file(f'{TRUE[0]} (mirror "sin") {COSH} {RIGHT}')
    for seed in (-1, 10**40):
        assert {verdict.status for verdict in cd.testing.check_rules(path, seed=seed)} == {"holds"}


@pytest.mark.thorough
def test_a_law_may_compare_a_coefficient_with_a_global(tmp_path: Path) -> None:
    path = tmp_path / "log.egg"
    path.write_text(
        """(rule ((= e (Fn "log" v)) (= (Scale a $zero x) (vec-get v 0)) (> a $zero) (!= a $one))
      ((union e (Add (multiset-of (Fn "log" (vec-of (Num a $zero))) (Fn "log" (vec-of x))))))
      :ruleset laws :name "log of a positive multiple")
""",
        "utf-8",
    )
    cd.testing.check_rules(path)
    path.write_text(path.read_text("utf-8").replace("(Num a $zero)", "(Num $one $zero)"), "utf-8")
    with pytest.raises(cd.RuleError, match="log of a positive multiple is false"):
        cd.testing.check_rules(path)
