"""Rule files that would end the process or hang it are refused, or do nothing."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import examples

import combdiff as cd
from combdiff.simplification.laws.loading import rule_directory

pytestmark = pytest.mark.usefixtures("primitive_table")

Number = cd.Space()


@cd.program
def numbers(x: Number, A: cd.Space("n", "n")):
    return 3 * cd.exp(2 * x) + cd.sum(lambda i, j: A[i, j] * cd.log(x)) / 7 + 5


def simplified(path: str) -> str:
    """What is printed with the laws of a file, in little time."""
    with warnings.catch_warnings(), cd.budget(nodes=1000, seconds=3):
        warnings.simplefilter("ignore", cd.BudgetWarning if hasattr(cd, "BudgetWarning") else UserWarning)
        return str(cd.simplify(numbers, rules=[path]))


NINTH = "(* a (* a (* a (* a (* a (* a (* a (* a a))))))))"
SQUARES = " ".join(f"(= a{n + 1} (* a{n} a{n}))" for n in range(40))
REFUSED = {
    "(let $x (<< (bigint 1) 100000000000))": "<< is not in the vocabulary of laws",
    "(let $x (bigrat (bigint 1) (bigint 0)))": "a denominator is not a number that is written out, or is zero",
    "(let $x (log $zero))": "log is not in the vocabulary",
    "(let $x (multiset-pick (multiset-of)))": "multiset-pick is not in the vocabulary",
    "(let $x (pow $one $one))": "pow is not in the vocabulary",
    "(let $x (/ $one $zero))": "call of primitive / failed",
    '(let $x (from-string "one"))': "call of primitive from-string failed",
    "(rewrite (Conj x) (Prod (multiset-single x 1000000000)))": "multiset-single takes a number of copies",
    "(rewrite (At t v) (At t (vec-set v 9 (vec-get v 0))))": "vec-set is not in the vocabulary",
    "(rewrite v (vec-of $null) :subsume)": "takes its left side away, which is no node here",
    '(rewrite (Conj x) (Opaque "x" (vec-empty)))': "the right side names 'x', which no condition names",
    '(rewrite (Conj x) (At (T "nosuch") (vec-empty)))': "the right side names 'nosuch', which no condition names",
    "(rewrite (Opaque n v) (Opaque (+ n n) v))": "a law computes no texts",
    f"(rule ((= e (Num a0 b)) {SQUARES}) ((union e (Num a40 b))))": "a number of more than 4096 bits",
    "(function f (Value) BigRat :merge (* old new))": "two values of a function are merged by a computation",
    "(rewrite (Conj x) " + "(Conj " * 20000 + "x" + ")" * 20001: "more than 60 parentheses are open here",
    '(rewrite (Num a b) (Num (bigrat (from-string "' + "9" * 10**5 + '") (bigint 1)) b))': "100000 digits here",
    "(rewrite (Conj x) x)" * 2000: "the file has 2000 laws; 500 are read",
    "; " + "x" * 10**6: "characters; 400000 are read",
    "(rewrite (Conj x) (Prod (multiset-remove (multiset-of (Conj x)) x)))": "may fail on a right side",
    '(rewrite (Conj x) (Prod (unstable-multiset-map (unstable-fn "<<") (multiset-of x))))': "takes the name of a",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_would_end_the_process_is_refused_at_its_place(text: str, rule_file: Any) -> None:
    path = rule_file(text)
    with pytest.raises(cd.RuleError) as raised:
        simplified(path)
    assert re.match(rf"{re.escape(path)}:\d+:\d+: ", str(raised.value)) or "names" in str(raised.value)
    assert REFUSED[text] in str(raised.value)
    assert len(str(raised.value)) < 1000


HARMLESS = {
    "numbers that grow": f"(rewrite (Num a b) (Num {NINTH} b))",
    "multiples that grow": f"(rewrite (Scale a b x) (Scale {NINTH} b x) :ruleset collect)",
    "sums that grow": "(rewrite (Add ms) (Add (multiset-sum ms ms)))",
    "vectors that grow": "(rewrite (Fn f v) (Fn f (vec-append v v)))",
    "terms that grow": "(rewrite (Fn f v) (Conj (Conj (Plus (Fn f v) $null))))",
    "division by zero": "(rewrite (Scale a b x) (Scale (/ a (- a a)) b x))",
    "an element there is not": "(rewrite (Fn f v) (vec-get v 7))",
    "another number of arguments": "(rewrite (Fn f v) (Fn f (vec-empty)))",
    "another number of indices": "(rewrite (At t v) (At t (vec-empty)))",
    "a function there is not": "(rewrite (At (T name) v) (Fn name (vec-empty)))",
    "a domain there is not": '(rewrite (Fn f v) (Delta (I "i" "zzz") (I "j" "zzz") "zzz"))',
    "an index there is not": '(rewrite (At t v) (At t (vec-of (I "zzz" "n") (I "zzz" "n"))))',
    "a matrix function there is not": '(rewrite (At t v) (At (MatrixFn "zzz" t) v))',
    "half an index": "(rewrite (Fn f v) (Where (Affine (vec-empty) (bigrat (bigint 1) (bigint 2))) 7))",
    "a modulus there is not": "(rewrite (Fn f v) (Where (Affine (vec-empty) $one) -3))",
    "an unbound index": '(rewrite (At t v) (Sum (set-of (I "q" "n")) (At t v)))',
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", HARMLESS)
def test_what_cannot_be_is_not_taken(name: str, rule_file: Any) -> None:
    """Laws that grow meet a bound; what has no meaning is no term. (What false laws print is their doing.)"""
    path = rule_file(HARMLESS[name])
    try:
        assert simplified(path)
    except cd.CombdiffError as error:
        assert "\n" not in str(error).split("hint")[0].strip()  # noqa: PT017


BUILT_IN = "".join((rule_directory() / name).read_text("utf-8") for name in ("elementwise.egg", "algebra.egg"))
WORDS = sorted(set(re.findall(r'"(?:\\.|[^"])*"|[^\s()";]+', BUILT_IN)))[:400]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> str:
    """Nested lists of the words of the built-in files."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from([*WORDS, "x", "v", "1", '"exp"', "$zero"]))
    inside = draw(st.lists(expressions(depth - 1), min_size=1, max_size=4))
    return f"({' '.join(inside)})"


LAWS = re.findall(r"^\((?:rewrite|rule) .*?(?=^\(|^;|\Z)", BUILT_IN, re.MULTILINE | re.DOTALL)


@st.composite
def changed_laws(draw: st.DrawFn) -> str:
    """A built-in law with one word in place of another."""
    law = re.sub(r':name "[^"]*"', "", draw(st.sampled_from(LAWS)))
    words = list(re.finditer(r'"(?:\\.|[^"])*"|[^\s()";]+|\([^()]*\)', law))
    place = draw(st.sampled_from(words))
    return law[: place.start()] + draw(st.sampled_from(words))[0] + law[place.end() :]


@pytest.mark.thorough
@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(changed_laws(), changed_laws(), st.text(max_size=60), expressions().map("(rewrite {} x)".format)))
def test_any_text_is_a_rule_file_or_a_rule_error(text: str, rule_file: Any) -> None:
    try:
        simplified(rule_file(text))
    except cd.CombdiffError as error:
        assert str(error)  # noqa: PT017
