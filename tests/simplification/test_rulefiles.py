"""Rule files of users: laws, primitives, installed files, and what is refused and where."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import TORCH, converted, on

import combdiff as cd
from combdiff.ir.interpreter import evaluate
from combdiff.ir.primitives import TABLE
from combdiff.ir.terms import Var, conj
from combdiff.simplification.egraph.saturation import simplify
from combdiff.simplification.laws import loading

ROOT = Path(__file__).parents[2]
README = (ROOT / "rules" / "README.md").read_text(encoding="utf-8")
LISP = re.findall(r"```lisp\n(.*?)```", README, re.DOTALL)
Vector = cd.Space("n")
Number = cd.Space()
Complex = cd.Space(dtype=complex)


pytestmark = pytest.mark.usefixtures("primitive_table")


@pytest.fixture
def activations(rule_file: Any) -> str:
    """The example of rules/README.md."""
    return str(rule_file(LISP[0], "activations.egg"))


# --- the page ------------------------------------------------------------------------------------------------------


def test_the_worked_example_prints_what_it_shows(
    activations: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ((code, expected),) = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", README, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "rules/README.md", "exec"), {"__name__": "readme"})
    assert printed.getvalue().strip() == expected.strip()


def test_every_word_of_the_page_is_in_the_vocabulary() -> None:
    language = (ROOT / "rules" / "language.egg").read_text(encoding="utf-8")
    declared = set(re.findall(r"\((?:constructor|relation|function|ruleset) ([\w-]+)", language))
    used = set(re.findall(r"\(([A-Z]\w*)", README)) - {"MultiSet"}
    assert used <= declared, used - declared
    public = {
        "Num",
        "Float",
        "Scale",
        "Conj",
        "Prod",
        "Add",
        "Sum",
        "At",
        "Delta",
        "Where",
        "Fn",
        "Opaque",
        "I",
        "Affine",
    }
    assert public <= used
    for fact in (
        "primitive",
        "numpy",
        "definition",
        "derivative",
        "real-only",
        "valid",
        "symmetric",
        "hermitian",
        "tensor",
        "real",
    ):
        assert fact in declared
        assert f"({fact} " in README


def test_the_laws_of_the_page_hold(rule_file: Any) -> None:
    rules = [rule_file(LISP[1])]

    @cd.program
    def logs(x: Number, z: Complex):
        return cd.real(cd.log(cd.exp(x)) + cd.log(cd.exp(z)) + cd.log(cd.exp(2 * x) * cd.exp(3 * x)))

    assert str(cd.simplify(logs, rules=rules)) == "(x, z) ↦ Re(6 x + log(exp(z)))"


SPACES = {
    "plain": cd.Space("n", "n"),
    "odd": cd.Space("n", "n", symmetry=["A[i,j] = -A[j,i]"]),
    "even": cd.Space("n", "n", symmetry=["A[i,j] = A[j,i]"]),
    "hermitian": cd.Space("n", "n", dtype=complex, symmetry=["A[i,j] = conj(A[j,i])"]),
    "cyclic": cd.Space(cd.Cyclic("n"), cd.Cyclic("n")),
}
HOLDS_IN = {
    "(antisymmetric A 0 1)": {"odd"},
    "(symmetric A 0 1)": {"even"},
    "(hermitian A 0 1)": {"hermitian"},
    '(tensor A 2 "complex")': {"hermitian"},
    '(axis A 0 k) (domain k "cyclic")': {"cyclic"},
    '(axis A 1 "n")': {"plain", "odd", "even", "hermitian"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("condition", HOLDS_IN)
@pytest.mark.usefixtures("results_not_compared")  # the laws are false
def test_side_conditions_see_symmetries_types_and_domains(condition: str, rule_file: Any) -> None:
    """A false law shows by its effect where its condition holds, and only there."""
    rules = [rule_file(f"(rewrite (At (T A) v) $null :when ({condition}))")]
    for name, space in SPACES.items():

        @cd.program
        def trace(A: space):
            return cd.real(cd.sum(lambda i: A[i, i]))

        vanishes = str(cd.simplify(trace, rules=rules)) == "A ↦ 0"
        assert vanishes == (name in HOLDS_IN[condition] or name == "odd"), name


@pytest.mark.thorough
def test_rules_reach_every_transform(rule_file: Any) -> None:
    """log(exp(x)) = x, which no built-in law says."""
    rules = [rule_file(LISP[1])]

    @cd.program
    def f(x: Vector):
        return cd.sum(lambda i: cd.log(cd.exp(x[i])) * cd.log(cd.exp(x[i])))

    assert str(cd.simplify(f, rules=rules)) == "x ↦ Σ_i x[i]²"
    for transform in (cd.grad, cd.value_and_grad, cd.pullback, cd.pushforward):
        assert "log" in str(transform(f))
        assert "log" not in str(transform(f, rules=rules)), transform


# --- primitives ----------------------------------------------------------------------------------------------------

X = np.array([0.3, -1.2, 2.0])


@pytest.mark.thorough
def test_a_primitive_is_differentiated_on_every_route(activations: str) -> None:
    softplus = cd.primitive("softplus", [activations])

    @cd.program
    def loss(x: Vector):
        return (softplus(2 * x) * x).sum()

    sigmoid = 1 / (1 + np.exp(-2 * X))
    expected = np.log1p(np.exp(2 * X)) + 2 * X * sigmoid
    (x,) = loss.parameters
    for gradient in (cd.grad(loss), cd.grad(loss, simplify=False), cd.grad(loss, rules=[activations])):
        np.testing.assert_allclose(gradient(X), expected, rtol=1e-12)
        np.testing.assert_allclose(evaluate(gradient.term.body, {x: X}, {"n": 3}), expected, rtol=1e-12)
        scope: dict[str, Any] = {}
        exec(gradient.source(), scope)
        np.testing.assert_allclose(scope[gradient.name](X), expected, rtol=1e-12)
    assert cd.testing.check_grad(loss, x=X) < 1e-8
    hessian = cd.hessian(loss)(X)
    np.testing.assert_allclose(np.diag(hessian), 4 * sigmoid + 4 * X * sigmoid * (1 - sigmoid), rtol=1e-12)
    assert "softplus" in str(loss)
    assert cd.read(str(loss)) == loss
    assert r"\operatorname{softplus}" in loss.latex()
    assert r"\sigma(" in cd.grad(loss).latex()


@pytest.mark.parametrize("library", ["jax", TORCH])
def test_a_primitive_runs_on_every_library(library: str, activations: str) -> None:
    softplus, log1p = (cd.primitive(name, rules=[activations]) for name in ("softplus", "log1p"))

    @cd.program
    def f(x: Vector, y: Vector):
        return cd.sum(lambda i: softplus(x[i] * y[i]) + log1p(x[i] ** 2))

    x, y = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    gradient, given = cd.grad(f, wrt="x"), converted(library, (x, y))
    result = on(library, gradient)(*given)
    assert type(result) is type(given[0])
    assert np.allclose(np.asarray(result), gradient(x, y), rtol=1e-5)


def test_a_primitive_of_complex_arguments(activations: str) -> None:
    softplus = cd.primitive("softplus", [activations])

    @cd.program
    def loss(z: cd.Space("n", dtype=complex)):
        return cd.real((softplus(z * z) * z.conj()).sum())

    assert cd.testing.check_grad(loss, z=X + 0.3j * X[::-1]) < 1e-7


def test_a_primitive_that_is_not_holomorphic(rule_file: Any) -> None:
    """|z|² by a definition, with both derivatives."""
    rules = [
        rule_file(
            '(primitive "intensity" "\\\\left|{}\\\\right|^2") (real-valued "intensity")\n'
            '(definition "intensity" (Times (Argument 0) (Conj (Argument 0))))\n'
            '(derivative "intensity" 0 (Conj (Argument 0))) (conjugate-derivative "intensity" 0 (Argument 0))'
        )
    ]
    intensity = cd.primitive("intensity", rules)

    @cd.program
    def power(z: cd.Space("n", dtype=complex)):
        return (intensity(z) * intensity(1j * z + 1)).sum()

    assert cd.testing.check_grad(power, z=X + 0.3j * X[::-1]) < 1e-8
    assert "|^2" in power.latex()


def test_a_primitive_of_two_real_arguments(rule_file: Any) -> None:
    over = '(Fn "power" (vec-of (Fn "length2" (vec-of (Argument 0) (Argument 1))) (Num (neg $one) $zero)))'
    rules = [
        rule_file(
            '(primitive "length2" "") (numpy "length2" "hypot") (real-only "length2")\n'
            f'(derivative "length2" 0 (Times (Argument 0) {over})) (derivative "length2" 1 (Times (Argument 1) {over}))'
        )
    ]
    hypot = cd.primitive("length2", rules)

    @cd.program
    def length(x: Vector, y: Vector):
        return hypot(x, y).sum()

    assert cd.testing.check_grad(length, ("x", "y"), x=X, y=X + 1) < 1e-8
    with pytest.raises(cd.TypeMismatchError, match="length2 takes real arguments"):

        @cd.program
        def wrong(z: Complex):
            return hypot(z, z)


def test_on_arrays_a_primitive_is_what_it_computes(activations: str) -> None:
    softplus = cd.primitive("softplus", [activations])
    np.testing.assert_allclose(softplus(X), np.log1p(np.exp(X)))
    assert softplus(0.0) == pytest.approx(np.log(2))
    np.testing.assert_array_equal(cd.primitive("exp")(X), np.exp(X))


@pytest.mark.thorough
def test_a_pickled_program_brings_its_primitives(activations: str) -> None:
    softplus = cd.primitive("softplus", [activations])

    @cd.program
    def loss(x: Vector):
        return softplus(x).sum()

    code = (
        "import pickle, sys, combdiff as cd; e = pickle.load(sys.stdin.buffer); print(str(e).splitlines()[0]);"
        "f, h = pickle.load(sys.stdin.buffer); print(f); print(cd.grad(f)); print(float(f([0.0, 0.0])));"
        "print(h.diag())"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(cd.hvp(loss).explain()) + pickle.dumps((loss, cd.hessian(loss))),
        capture_output=True,
        check=True,
        env=environment,
    )
    assert run.stdout.decode().splitlines() == [
        str(cd.hvp(loss).explain()).splitlines()[0],
        "x ↦ Σ_i softplus(x[i])",
        "x ↦ d ↦ sigmoid(x[d])",
        str(float(np.log(4))),
        str(cd.hessian(loss).diag()),
    ]


def test_a_name_means_one_function(activations: str, rule_file: Any) -> None:
    cd.primitive("softplus", [activations])
    other = rule_file('(primitive "softplus" "") (numpy "softplus" "exp") (derivative "softplus" 0 (Argument 0))')
    with pytest.raises(cd.RuleError, match=r"mine.egg:1: the primitive softplus means something else in .*activations"):
        cd.primitive("softplus", [other])
    again = rule_file(LISP[0], "copy.egg")
    with pytest.raises(cd.RuleError, match="there is a law 'σ"):
        cd.simplify(_identity(), rules=[activations, again])
    assert cd.primitive("softplus", [again])(0.0) == pytest.approx(np.log(2))


def _identity() -> cd.Program:
    @cd.program
    def identity(x: Number):
        return x

    return identity


def test_an_unknown_primitive_is_named() -> None:
    with pytest.raises(cd.RuleError, match="no primitive is called 'softmax'"):
        cd.primitive("softmax")


# --- installed files -----------------------------------------------------------------------------------------------


def installed(folder: Path, value: str, laws: str) -> dict[str, str]:
    """The environment in which a package with an entry point is installed; importing the package fails."""
    (folder / "mypackage" / "data").mkdir(parents=True)
    (folder / "mypackage" / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "mypackage" / "data" / "laws.egg").write_text(laws, "utf-8")
    information = folder / "mypackage-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mypackage\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[combdiff.rules]\nmine = {value}\n")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONIOENCODING": "utf-8"}


CODE = """
import combdiff as cd
@cd.program
def f(x: cd.Space()): return cd.log(cd.exp(x))
try: print(cd.simplify(f))
except cd.RuleError as error: print(error)
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("mypackage.data:laws.egg", "x ↦ x"),
        ("mypackage:laws.egg", "the entry point mine = 'mypackage:laws.egg' of combdiff.rules names no file"),
    ],
)
def test_an_installed_file_holds_without_being_named(value: str, printed: str, tmp_path: Path) -> None:
    environment = installed(tmp_path, value, LISP[1])
    run = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, encoding="utf-8", env=environment, cwd=tmp_path, check=True
    )
    assert printed in run.stdout
    assert "imported" not in run.stderr


# --- what is refused -----------------------------------------------------------------------------------------------

FOO = '(primitive "foo" "") '


@pytest.mark.sample(20)
@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("; Σ\n(rewrite (Conj (Conj x)) y)", "2:26", "Unbound symbol y, in 'y'"),
        ("(rewrite (Conj x) (Nonsense x))", "1:19", "Nonsense is not in the vocabulary of laws, in '(Nonsense x)'"),
        ("(rewrite (Conj x)\n  (Prod x))", "2:9", "Expect expression x to have type Values, but get type Value"),
        ("(rewrite (Conj 1) $null)", "1:16", "Expect expression 1 to have type Value, but get type i64, in '1'"),
        ("(rewrite (Conj x x) x)", "1:10", "Arity mismatch, expected 1 args: (Conj x x), in '(Conj x x)'"),
        ("(rewrite (Conj x)", "1:18", "unexpected end of file"),
        ("(rewrite (Conj x) x))", "1:21", "unexpected `)`, in ')'"),
        ('(rewrite (Conj x) "abc', "1:19", "string is missing end quote"),
        ("(rewrite x (Conj x))", "1:1", "ungrounded"),
        ("(constructor Conj (Value) Value)", "1:1", "Function already bound Conj"),
        ("(rewrite (Conj x) x :ruleset mine)", "1:1", "no schedule runs the ruleset mine"),
        ('(rewrite (Conj (Conj x)) x :name "conjugate twice")', "1:1", "there is a law 'conjugate twice' already"),
        ('(rewrite (Fn "sofplus" v) $null)', "1:10", "sofplus is not a primitive"),
        ('(rewrite (Part "max" x) $null)', "1:10", "max is not a primitive"),
        ('(rewrite (Part "power" x) $null)', "1:10", "power takes 2 arguments, not 1"),
        ("(rewrite (Times x) $null)", "1:10", "Times takes 2 arguments, not 1"),
        ('(rewrite (Conj x) (Fn "exp" (vec-of x x)))', "1:19", "exp takes 1 arguments, not 2"),
        ("(run 3)", "1:1", "a rule file cannot run, read or write anything, in '(run 3)'"),
        ('(include "other.egg")', "1:1", "cannot run, read or write"),
        ('(input member "numbers.csv")', "1:1", "cannot run, read or write"),
        ('(output "stolen.txt" $null)', "1:1", "cannot run, read or write"),
        ("(push)", "1:1", "cannot run, read or write"),
        ("(check (= $null $null))", "1:1", "cannot run, read or write"),
        ('(rewrite (Conj x) (py-eval "1"))', "1:19", "a rule file cannot call Python"),
        ('(let $x (py-from-string "1"))', "1:9", "a rule file cannot call Python"),
        ('(rule ((= e (Conj x))) ((panic "no")))', "1:1", "a law cannot panic"),
        ("(rewrite (Conj (Plus x y)) $null)", "1:16", "Plus stands inside a pattern"),
        ("(rewrite (Sum (set-of i j) x) x)", "1:15", "a set of several members stands in a pattern"),
        (FOO, "1:1", "the derivative of foo is not given for each argument"),
        (FOO + '(derivative "foo" 1 (Argument 0))', "1:1", "the derivative of foo is not given for each argument"),
        (FOO + '(derivative "foo" 0 (Argument 0))', "1:1", "how to compute foo is not said"),
        (FOO + '(derivative "foo" 0 (Argument 1)) (numpy "foo" "exp")', "1:1", "more arguments are used"),
        (FOO + '(derivative "foo" 0 (Argument 0)) (numpy "foo" "os")', "1:1", "no element-wise function 'os'"),
        (FOO + '(derivative "foo" 0 (Argument 0)) (numpy "foo" "a.b")', "1:1", "no element-wise function 'a.b'"),
        (FOO + '(derivative "foo" 0 (Argument 0)) (numpy "foo" "load")', "1:1", "no element-wise function 'load'"),
        (FOO + '(derivative "foo" 0 (Argument 0)) (numpy "foo" "hypot")', "1:1", "np.hypot takes 2 arguments"),
        (FOO + '(derivative "foo" 0 (At (T "A") (vec-empty)))', "1:42", "this cannot stand in a derivative"),
        (FOO + FOO, "1:22", "the primitive foo is declared twice"),
        (
            FOO + '(derivative "foo" 0 (Argument 0)) (definition "foo" (Fn "foo" (vec-of (Argument 0))))',
            "1:1",
            "back to foo",
        ),
        ('(derivative "bar" 0 (Argument 0))', "1:1", "bar is not declared"),
        ('(primitive "a b" "") (derivative "a b" 0 (Argument 0)) (numpy "a b" "exp")', "1:1", "'a b' is not a name"),
        ('(primitive "exp" "") (derivative "exp" 0 (Argument 0)) (numpy "exp" "exp")', "1", "means something else"),
    ],
)
def test_a_mistake_is_shown_with_its_place(text: str, place: str, words: str, rule_file: Any) -> None:
    path = rule_file(text)
    with pytest.raises(cd.RuleError) as raised:
        cd.simplify(_identity(), rules=[path])
    assert str(raised.value).startswith(f"{path}:{place}: ")
    assert words in str(raised.value)
    assert "foo" not in TABLE


@pytest.mark.parametrize(
    ("law", "place", "words"),
    [
        ("(rewrite (Conj (Conj x)) y)", "1:26", "Unbound symbol y, in 'y'"),
        ("(rewrite (Conj x) x))", "1:21", "unexpected `)`"),
    ],
)
def test_a_mistake_in_a_built_in_file_is_shown_with_its_place(
    law: str, place: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in loading.BUILT_IN:
        text = (loading.rule_directory() / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(f"{law}\n{text}" if name == "algebra.egg" else text, encoding="utf-8")
    monkeypatch.setattr(loading, "rule_directory", lambda: tmp_path)
    loading.built_in_files.cache_clear()
    try:
        with pytest.raises(cd.RuleError) as raised:
            simplify(conj(Var("z", cd.Space(dtype=complex))))
    finally:
        loading.built_in_files.cache_clear()
    assert str(raised.value).startswith(f"{tmp_path / 'algebra.egg'}:{place}: {words}")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.egg").write_bytes(b"\xff\xfe")
    with pytest.raises(cd.RuleError, match="is not UTF-8"):
        cd.simplify(_identity(), rules=[str(tmp_path / "a.egg")])
    with pytest.raises(cd.RuleError, match="cannot be read: Is a directory"):
        cd.simplify(_identity(), rules=[str(tmp_path)])


def test_a_string_for_a_list_of_files(rule_file: Any) -> None:
    with pytest.raises(cd.RuleError, match="but a list is expected"):
        cd.simplify(_identity(), rules=rule_file(""))


@pytest.mark.thorough
@pytest.mark.usefixtures("results_not_compared")  # the laws are false
def test_a_file_that_is_changed_is_read_again(rule_file: Any) -> None:
    @cd.program
    def f(x: Number):
        return cd.tanh(x)

    path = rule_file('(rewrite (Fn "tanh" v) (Fn "sin" v))')
    assert str(cd.simplify(f, rules=[path])) == "x ↦ sin(x)"
    rule_file('(rewrite (Fn "tanh" v) $null)')
    assert str(cd.simplify(f, rules=[path])) == "x ↦ 0"
    rule_file("")
    assert str(cd.simplify(f, rules=[path])) == "x ↦ tanh(x)"
