"""The command line, run in this process and in its own."""

from __future__ import annotations

import io
import json
import os
import shlex
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import combdiff
from combdiff import api, cli
from combdiff.api.language import Derivation, derivation, derive
from combdiff.cli import main
from combdiff.dialects import DIALECTS

ROOT = Path(combdiff.__file__).parent.parent
TEXT = "declare A 2 x 1 expression A *(ij,j->i) sin(x) derivative wrt x"


@cache
def printed() -> str:
    """What is printed of it."""
    return str(derive(TEXT))


def process(*arguments: str, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """`python -m combdiff` with its output captured."""
    command = [sys.executable, "-m", "combdiff", *arguments]
    return subprocess.run(
        command, input=given, capture_output=True, cwd=ROOT, env={**os.environ, **environment}, timeout=60, check=False
    )


def test_it_prints_the_derivative(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([TEXT]) == 0
    assert capsys.readouterr() == (printed() + "\n", "")


def test_it_prints_latex(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--latex", TEXT]) == 0
    assert capsys.readouterr().out == derive(TEXT).latex() + "\n"


def test_it_prints_matrix_notation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--matrix", "declare A 2 symmetric x 1 expression x *(i,i->) (A *(ij,j->i) x) derivative wrt x"]) == 0
    assert capsys.readouterr().out == "2·A·x\n"


def test_the_source_runs_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--source", "numpy", "--check", TEXT]) == 0
    (tmp_path / "alone.py").write_text(capsys.readouterr().out, encoding="utf-8")
    names: dict[str, object] = {}
    exec((tmp_path / "alone.py").read_text(encoding="utf-8"), names)
    (function,) = (value for name, value in names.items() if name.startswith("jacobian"))
    assert callable(function)
    matrix, x = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    np.testing.assert_allclose(function(matrix, x), matrix * np.cos(x))


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_the_source_names_its_backend(capsys: pytest.CaptureFixture[str], backend: str) -> None:
    assert main(["--source", backend, TEXT]) == 0
    assert capsys.readouterr().out == derive(TEXT).source(backend) + "\n"
    assert main(["--source", "fortran", TEXT]) == 2
    assert "'fortran' (choose from" in capsys.readouterr().err


def test_it_offers_every_dialect() -> None:
    """Their names stand in the command line, too, which is there before any dialect is imported."""
    assert set(cli.BACKENDS) == set(DIALECTS)


def test_it_explains_the_derivative(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--explain", TEXT]) == 0
    out = capsys.readouterr().out
    assert out == f"{derive(TEXT).explain()}\n"
    assert "δ meets Σ" in out
    assert main(["--explain", "--json", TEXT]) == 0
    assert json.loads(capsys.readouterr().out)["explanation"] == str(derive(TEXT).explain())


def test_it_prints_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    table = str(derive(TEXT).cost(n=100, m=20))
    assert main(["--cost", "n=100,m=20", TEXT]) == 0
    assert capsys.readouterr().out == f"{printed()}\n{table}\n"
    assert "total 2,0" in table
    assert main(["--cost", "n=100", "--source", "numpy", TEXT]) == 0
    assert "\n# total " in capsys.readouterr().out
    assert main(["--cost", "n=100,m=20", "--json", TEXT]) == 0
    assert json.loads(capsys.readouterr().out)["cost"]["sizes"] == {"m": 20, "n": 100}
    assert main(["--cost", "q=100", TEXT]) == 2
    assert "'q'" in capsys.readouterr().err


@pytest.mark.parametrize("sizes", ["", "n", "n=", "n=x", "n=-1", "n=1e3", "=3", "n=3,", "n=9999999999999999999"])
def test_what_is_no_size_is_refused(capsys: pytest.CaptureFixture[str], sizes: str) -> None:
    assert main(["--cost", sizes, TEXT]) == 2
    assert "is not a size such as n=100" in capsys.readouterr().err


def test_a_size_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cost", "n=5,n=6", TEXT]) == 2
    assert "the size n is given twice" in capsys.readouterr().err


def test_it_checks_by_central_differences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", TEXT]) == 0
    shown, line = capsys.readouterr().out.splitlines()
    assert shown == printed()
    assert line.startswith("largest error: ")
    assert float(line.split()[-1]) < 1e-6


def test_a_check_that_fails_has_status_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(text_: str, wrt: list[str]) -> Derivation:
        right, other = derivation(text_, wrt), derivation(text_.replace("sin", "cos"), wrt)
        return Derivation((right.steps[0], other.steps[-1]), right.names)

    monkeypatch.setattr(api, "derivation", wrong)
    assert main(["--check", TEXT]) == 1
    assert capsys.readouterr().err.startswith("combdiff: error: check failed: the derivative differs from central")


def test_a_check_that_cannot_tell_has_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "declare x 1 expression log(-x) derivative wrt x"]) == 1
    assert "not finite at the values tried" in capsys.readouterr().err


def test_every_wrt_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "declare A 2 x 1 expression A *(ij,j->i) x^2 derivative wrt x wrt A, x"]) == 0
    assert "largest error" in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--check", "--source", "numpy", TEXT]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text"] == TEXT
    assert found["derivative"] == printed()
    assert found["latex"] == derive(TEXT).latex()
    assert found["matrix"] == derive(TEXT).matrix()
    assert found["parameters"] == [
        {"name": "A", "axes": ["n", "m"], "dtype": "float"},
        {"name": "x", "axes": ["m"], "dtype": "float"},
    ]
    assert found["check"]["passed"] is True
    assert found["source"] == derive(TEXT).source("numpy")


def test_it_reads_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text(f"# a comment\n{TEXT}\n", encoding="utf-8-sig")
    assert main(["--file", str(file)]) == 0
    assert capsys.readouterr().out == printed() + "\n"


def test_it_reads_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert main(["-"]) == 0
    assert capsys.readouterr().out == printed() + "\n"
    assert process(given=TEXT.encode()).stdout.decode() == printed() + "\n"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--wrt", "x", "A symmetric (n, n), x (n); x'*A*x", "--matrix"], "2·A·x\n"),
        (["--wrt", "x", "--wrt", "x", "x -> sum_i x[i]^3"], "x ↦ (a, d) ↦ 6 δ(a, d) x[a]\n"),
        (["--wrt", "x", "declare x 1 expression x derivative wrt x"], "x ↦ (a<n, b<n, d<n) ↦ 0\n"),
    ],
)
def test_it_takes_three_languages(capsys: pytest.CaptureFixture[str], arguments: list[str], printed: str) -> None:
    assert main(["--check", *arguments]) == 0
    assert capsys.readouterr().out.startswith(printed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x'*A*x"], "the text does not say what to differentiate by"),
        (
            ["x'*A*x", "--wrt", "A,y"],
            "3: 'y' is not a tensor of the expression\n  A,y\n    ^\n  hint: its tensors",
        ),
        (["x'*A*x", "--wrt", ""], "a name is missing"),
        (["x'*A*(x", "--wrt", "x"], "line 1, column 8"),
    ],
)
def test_mistakes_are_shown_at_their_place(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_without_an_expression_on_a_terminal_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert main([]) == 2
    assert "no expression is given" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text_", "message"),
    [
        ("declare x 1 expression y derivative wrt x", "line 1, column 24: 'y' is not declared"),
        ("", "line 1, column 1: the text ends"),
        ("declare x 1 expression " + "(" * 10_000, "nested more than 100 deep"),
        ("declare x 1 expression \x1b[2J", "\\x1b"),
    ],
)
def test_bad_input_has_status_2_and_one_message(capsys: pytest.CaptureFixture[str], text_: str, message: str) -> None:
    assert main([text_]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("combdiff: error: ")
    assert err.count("error") == 1
    assert message in err
    assert "\x1b" not in err


def test_unreadable_files_have_status_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--file", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main(["--file", str(tmp_path)]) == 2
    (tmp_path / "bytes").write_bytes(b"declare \xff")
    assert main(["--file", str(tmp_path / "bytes")]) == 2
    assert "not UTF-8" in capsys.readouterr().err
    (tmp_path / "long").write_bytes(b" " * (cli.MOST_BYTES + 1))
    assert main(["--file", str(tmp_path / "long")]) == 2
    assert "bytes" in capsys.readouterr().err


def test_a_port_that_another_program_has_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    shown = capsys.readouterr()
    assert f"the page cannot have port {port}: Address already in use" in shown.err
    assert "--port" in shown.err
    assert not shown.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["serve", "--port", "0"], "argument --port"),
        (["--latex", "--source", "numpy", TEXT], "--source: not allowed with argument --latex"),
        (["--matrix", "--latex", TEXT], "--latex: not allowed with argument --matrix"),
        ([TEXT, "more"], "unrecognized arguments: more"),
        (["-", "‹&-"], "unrecognized arguments: ‹&-"),
        (["--nope"], "unrecognized arguments: --nope"),
        (["check-rules", "--seed", "x"], "argument --seed: invalid int value: 'x'"),
    ],
)
def test_wrong_usage_is_an_error_that_names_the_place(
    capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("combdiff: error: ")
    assert named in err
    assert "\n  hint: combdiff" in err


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    main(["x"])
    assert capsys.readouterr().err.startswith("\x1b[1;31mcombdiff: error:\x1b[0m ")
    monkeypatch.setenv("NO_COLOR", "1")
    main(["x"])
    assert capsys.readouterr().err.startswith("combdiff: error: ")


def test_the_module_runs() -> None:
    ran = process(TEXT)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, printed() + "\n", b"")
    ran = process("-", given=b"declare x 1 expression \xff")
    assert ran.returncode == 2
    assert b"Traceback" not in ran.stderr
    ran = process(TEXT, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert b"\\u21a6" in ran.stdout


def test_version_and_help() -> None:
    assert process("--version").stdout.decode() == f"combdiff {combdiff.__version__}\n"
    shown = process("--help").stdout.decode()
    assert "examples:" in shown
    assert "exit status: 0; 1 if a check fails; 2 for bad input" in shown
    for option in ("--matrix", "--explain", "--cost", "check-rules"):
        assert option in shown


def test_the_examples_of_the_help_run(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [shlex.split(line.replace("echo ", "combdiff ").partition(" | ")[0]) for line in cli.EXAMPLES.splitlines()]
    runs = [line[1:] for line in lines if line[:1] == ["combdiff"] and len(line[-1]) > 20]
    assert len(runs) == 6
    for each in runs:
        assert main(["--check", *each]) == 0
    assert not capsys.readouterr().err


def test_a_check_has_as_many_entries_as_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--wrt", "x", "x[1e2]^2"]) == 0
    assert "2 δ(d, 100) x[100]" in capsys.readouterr().out
    assert main(["--check", "--wrt", "x", "x[1e9]"]) == 2
    assert "1000000001 entries or more, which are not compared one by one" in capsys.readouterr().err
