"""The text language and its command line at their edges: long chains, values out of range, streams that are closed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import combdiff
from combdiff import cli
from combdiff.api.language import derivation, derive, parse
from combdiff.api.transforms import jacobian
from combdiff.ir.substitution import subterms
from combdiff.testing.text_derivatives import largest_error
from combdiff.text.places import TextError

ROOT = Path(combdiff.__file__).parent.parent


@pytest.mark.thorough
@pytest.mark.parametrize("exponent", ["x", "(sin({}+x))"])
def test_chains_of_hundreds_of_powers_are_differentiated_in_linear_size(exponent: str) -> None:
    sizes = []
    for n in (125, 500):
        chain = "^".join(exponent.format(m) for m in range(n))
        started = time.process_time()
        program = derivation(f"declare x 1 expression {chain} derivative wrt x").steps[-1]
        assert time.process_time() - started < 30
        sizes.append(sum(1 for _ in subterms(program.term)))
    assert sizes[1] <= 5 * sizes[0]


@pytest.mark.parametrize(
    "constant", ["arcsin(2)", "exp(1e300)", "9^9^9^9", "(-1)^0.5", "0^-1", "log(0)", "1/0", "log(0-1)"]
)
def test_constants_out_of_range_are_no_warning(constant: str) -> None:
    """Warnings are errors in these tests."""
    program = derive(f"declare x 1 expression {constant} *(,i->i) x derivative wrt x")
    assert str(program)
    with np.errstate(all="ignore"):
        assert not np.any(np.isfinite(np.diag(program(np.ones(2)))))


@pytest.mark.parametrize(
    "text",
    [
        "declare x 1 expression x *({},i->) x",
        "declare x 1 expression x *(i,i->{}) x",
        "declare x 1 expression transpose({}->j) x",
    ],
)
def test_a_message_quotes_little_of_very_many_indices(text: str) -> None:
    with pytest.raises(TextError, match="i…'") as caught:
        parse(text.format("i" * 100_000))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("declare A 2 symmetric expression inv(A) *(ij,ij->) A derivative wrt A", "A"),
        ("declare x 1 expression 1e6 *(,i->i) x + sin(x) - 1e6 *(,i->i) x derivative wrt x", "x"),
        ("declare x 1 expression (x - 1.5)^-3 derivative wrt x", "x"),
    ],
)
def test_a_check_is_exact_beside_a_pole_and_where_large_values_cancel(text: str, name: str) -> None:
    assert largest_error(*derivation(text).steps, (name,)) < 1e-6


def test_a_check_still_finds_a_small_error() -> None:
    (right,) = derivation("declare x 1 expression sin(x) derivative wrt x").steps[:1]
    wrong = jacobian(parse("declare x 1 expression sin(x) + 1e-5 *(,i->i) x"), "x")
    assert largest_error(right, wrong, ("x",)) > 5e-6


# --- the command line ----------------------------------------------------------------------------------------------


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """A line of a shell in which $C is the command."""
    environment = {"C": f"{sys.executable} -m combdiff", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, env=environment, timeout=120, check=False, cwd=ROOT
    )


TEXT = "'declare x 1 expression x derivative wrt x'"


def test_closed_streams_are_no_traceback() -> None:
    for line in (f"$C {TEXT} >&-", "$C bad 2>&-"):
        ran = shell(line)
        assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "")


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_one_message() -> None:
    ran = shell(f"$C {TEXT} >/dev/full")
    assert ran.returncode == 2
    assert ran.stderr == "combdiff: error: standard output: No space left on device\n"


def test_comments_and_lines_from_standard_input() -> None:
    ran = shell(r"printf 'declare x 1 # (\nexpression x # (\n *(i,i->) x derivative # c\n wrt x' | $C -")
    assert (ran.returncode, ran.stdout) == (0, "x ↦ d ↦ 2 x[d]\n")


def test_a_missing_rule_file_is_named_without_a_python_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check-rules", "/nowhere.egg"]) == 2
    message = "the rule file '/nowhere.egg' cannot be read: No such file or directory"
    assert capsys.readouterr().err == f"combdiff: error: {message}\n"


def test_a_mistake_in_a_rule_file_keeps_its_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.egg").write_text("(rewrite (foo", "utf-8")
    assert cli.main(["check-rules", str(tmp_path / "mine.egg")]) == 2
    assert "mine.egg:1:14: unexpected end of file" in capsys.readouterr().err


def test_help_starts_without_numpy_in_under_a_third_of_a_second() -> None:
    """Processor time, which other processes do not stretch."""
    code = "import os, sys\nfrom combdiff import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass\n"
    code += "assert 'numpy' not in sys.modules and 'lark' not in sys.modules\n"
    code += "print(sum(os.times()[:2]), file=sys.stderr)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
        for _ in range(5)
    ]
    assert all("examples:" in run.stdout for run in runs)
    assert min(float(run.stderr) for run in runs) < 0.3


# --- signs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("arcsin(x/2)", "x ↦ (a, d) ↦ δ(a, d) / (2 sqrt(1 - 1/4 x[d]²))"),
        ("sum(i->) (x - 3)^2", "x ↦ d ↦ 2 (x[d] - 3)"),
        ("sum(i->) (3 - x)^2", "x ↦ d ↦ 2 (x[d] - 3)"),
        ("-sum(i->) (x - 3)^2", "x ↦ d ↦ 2 (3 - x[d])"),
    ],
)
def test_a_minus_goes_into_a_difference(text: str, shown: str) -> None:
    assert str(derive(f"declare x 1 expression {text} derivative wrt x")).replace("(d, a)", "(a, d)") in (
        shown,
        shown.replace("x[d]²", "x[a]²"),
    )
