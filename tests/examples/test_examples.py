"""Every example prints what it is there to show; three run in processes of their own."""

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measuring import assert_keeps_to_the_least_limit, assert_takes_what_is_promised

import combdiff as cd
from combdiff.ir import Implicit, Scan, Space, subterms

ROOT = Path(__file__).parents[2]

# Parts of lines that an example must print, in this order.
SHOWN = {
    "kalman": [
        "state[t + 1] = p[0] (state[t] + t2[t] (y[t] - state[t]))",
        "its gradient:",
        "state3[T] = 0",
        "evidence 1228.1 at the start, 721.2 at the end",
        "a = 0.95, q = 0.09, r = 0.52",
        "the gradient is that of central differences",
    ],
    "lstm_text": ["step   1: 2.717 nats a letter", "step 300: 0.001", "'peter piper picked a peck of pickled pep'"],
    "shooting": [
        "state3[T] = 2 (state[T] - π)",
        "cost 11.060 at the start, 1.14",
        "the pendulum swings to -80° first, and ends at 175°",
    ],
    "pendulum": [
        "state[t<T + 1] = state[t] + 0.02 v[t]",
        "its gradient:",
        "state3[T] = 0",
        "g = 9.81, c = 0.30",
        "the gradient is that of central differences",
    ],
    "affine": [
        "dc:",
        "-δ(i, e) Σ_{j,k}",
        "dd:",
        "Σ_{k=max(0, i - 2)}^{min(4, i)}",
        "all four agree with central differences",
        "stride 2:",
        "⌊d/2⌋",
        "Lorenz-96:",
        "refused: axis 0 of d is read at i + k = 8 (for i = 3, k = 5), but it has the indices 0 … 7",
    ],
    "antisymmetric": ["(A, x) ↦ 0", "(A, x) ↦ d<n ↦ 0", "Σ_i A[d,i] y[i]", "agrees with central differences"],
    "coupled_cluster": [
        "1/4 Vvvoo[f,g,d,e]",
        "Alt_{f,g} Alt_{d,e} Σ_{i,a}",
        "every permutation written by hand",
    ],
    "cp_decomposition": [
        "T[i,j,k] - Σ_",  # the residual, bound to a name
        "with respect to X equals the closed form",
        "with respect to Y equals the closed form",
        "with respect to Z equals the closed form",
        "the error falls from",
    ],
    "conjugate_gradient": [
        "R unknown",
        "t[d] = r[d] + β p[d]",
        "t2 = ∇R(i ↦ x[i] + α t[i])",
        "(Σ_i t[i] t2[i], α Σ_i p[i] t2[i])",
        "agrees with the closed one",
        "at every step: conjugate gradients",
    ],
    "functionals": [
        "(H, ψ) ↦ d ↦ 2 ∫ H(d, x) ψ(x) dx",
        "(f, g, w) ↦ d ↦ ∫ g(t - d) w(t) dt",
        "f ↦ y ↦ f(y)",
        "f ↦ d ↦ 2 f(d)",
        "nothing over it can be evaluated with arrays",
    ],
    "hartree_fock": [
        "the Coulomb energy: one term, factor 4",
        "(J, C) ↦ (d, e) ↦ 4 Σ",
        "the whole energy: 4 F C",
        "three terms",
        "core guess orbitals",
        "agrees with central differences",
        "above PySCF",
        "combdiff + SciPy -74.96302313",
        "import egglog",
        "Coulomb energy",
        "terms: 1",
    ],
    "least_action": [
        "∫ L(r(t), D(r)(t)) dt",
        "∂₁L(r, D(r)) + Dᵀ(∂₂L(r, D(r)))",
        "m Dᵀ(D(r)) - k r",
        "nothing over it can be evaluated with arrays",
        "the cosine satisfies the discrete law",
    ],
    "matrix_factorisation": [
        "2 δ(a, d) Σ_j V[j,b] V[j,e]",
        "H[i,j,k,l] = core[j,l] δ[i,k]",
        "2 Σ_j V[j,b] V[j,e]",
        "0 unless i = k",
        "sweep  1: loss",
    ],
    "newton_logistic": [
        "Xᵀ·diag(",
        ")·X",
        "core1 δ[i,j] + Σ_{r}",
        "98.9% of the tumours",
        "agrees with central",
    ],
    "logistic": ["Σ_i log(1 + exp(-y[i] Σ_j X[i,j] w[j]))", "both agree with each other, with the closed form"],
    "perceptron": [
        "h = σ(i ↦ Σ_j W1[i,j] x[j])",
        "∂σ(t",
        "tanh(Σ_j W1[i,j] x[j])",
        "h2_bar[d] =",
        "both agree with backpropagation by hand, and with central differences",
        "ms per layer",
    ],
    "wave_packet": [
        "psi2[t + 1,l] = (Σ_j t2[t,j] exp(2π i j l / n)) / n",
        "psi3[40,j] = 2 psi2[40,j] x[j]²",
        "off by less than 1e-6",
        "2.00 without a potential, 0.35 with the one that was found",
    ],
    "quadratic_form": ["↦ d ↦ 2 Σ_i A[d,i] x[i]", "equals 2 A x", "equals (A + A†) x", "needs a real objective"],
    "wannier": [
        "one term, ρ shared",
        "↦ 4 Σ_b rho[e,b]* w[b] t[d,e,f,b]",
        "The whole spread and its gradient",
        "32 k points, 6 neighbours each, 2 functions",
        "|gradient|",
        "spread of the maximally localised functions 0.067018536",
    ],
    "sharding": [
        "one step that reads J",
        'jnp.einsum("abcd,dc->ab", J, t)',
        "cut along its first axis: each of 8 devices holds (2, 16, 16, 16) of (16, 16, 16, 16)",
        "exchanged: all-gather of (16, 16)",
        "cut along its third axis",
        "all-reduce of (16, 16)",
        "J itself never leaves its devices",
    ],
    "supersymmetric": ["δ(d, k)", "↦ d ↦ 3 Σ_{i,j} T[", "agrees with central differences"],
}


ALONE = ("quadratic_form", "hartree_fock", "sharding")  # the last asks JAX for eight devices before it starts
NEEDS = {
    "hartree_fock": pytest.mark.needs("pyscf"),
    "newton_logistic": pytest.mark.needs("sklearn"),
    "perceptron": pytest.mark.thorough,
}


def run(script: str, cwd: Path, *arguments: str) -> str:
    """What a script prints, run in another folder; it must exit with status 0."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": path}
    command = [sys.executable, str(ROOT / script), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=cwd, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def printed_by(example: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What an example prints: in this process, where modules are loaded and warnings are errors, or in its own."""
    if example in ALONE:
        return run(f"examples/{example}.py", folder)
    printed, call = io.StringIO(), cd.Program.__call__

    def recorded(self: cd.Program, /, *arguments: Any, **named: Any) -> Any:
        given = (*arguments, *named.values())
        if not self.inner and all(isinstance(each, np.ndarray | np.generic | float) for each in given):
            CALLED.setdefault(example, {})[self.term] = self
        return call(self, *arguments, **named)

    monkeypatch.setattr(sys, "argv", [example])
    monkeypatch.setattr(cd.Program, "__call__", recorded)
    with contextlib.redirect_stdout(printed), contextlib.chdir(folder):
        runpy.run_path(str(ROOT / "examples" / f"{example}.py"), run_name="__main__")
    return printed.getvalue()


CALLED: dict[str, dict[Any, cd.Program]] = {}
"""The programs that examples call with arrays, as far as they ran in this process."""


def test_every_example_is_tested() -> None:
    assert sorted(SHOWN) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param(n, marks=mark) for n in SHOWN for mark in [NEEDS.get(n, ())]])
def test_an_example_shows_what_it_is_there_for(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed, place = (hartree_fock() if name == "hartree_fock" else printed_by(name, tmp_path, monkeypatch)), 0
    for part in SHOWN[name]:
        place = printed.find(part, place)
        assert place >= 0, f"{part!r} is missing, or not where it should be, in:\n{printed}"


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # at random numbers of any size a value may have no meaning
@pytest.mark.parametrize("name", [pytest.param(n, marks=NEEDS.get(n, ())) for n in SHOWN if n not in ALONE])
def test_what_an_example_calls_takes_the_memory_that_is_promised(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every program of it that is called, at larger sizes; a new one is in it as soon as it is called."""
    if name not in CALLED:
        printed_by(name, tmp_path, monkeypatch)
        monkeypatch.undo()
    for program in CALLED.get(name, {}).values():
        searches = any(isinstance(part, Implicit) for part in subterms(program.term))  # of random numbers: in vain
        spaces = [p.type for p in program.term.parameters]
        if not searches and all(isinstance(space, Space) and cd.Real() not in space.axes for space in spaces):
            whole = cd.Program(program.term, program.name)  # what is fixed in it is larger, too
            assert_takes_what_is_promised(whole, room=2)  # a loop over parts that suit caches takes less
            if not any(isinstance(part, Scan) for part in subterms(program.term)):  # whose limits take minutes to find
                assert_keeps_to_the_least_limit(whole)


@lru_cache(maxsize=1)
def hartree_fock() -> str:
    """What the example prints: the same for the two tests that read it."""
    with tempfile.TemporaryDirectory() as folder:
        return run("examples/hartree_fock.py", Path(folder))


def without_figures(line: str) -> str:
    """A line without what depends on the machine: decimals, how many steps it took; not the numbers of a formula."""
    return re.sub(r"^ +\d+(?= #)", "#", re.sub(r"\s*-?\d+\.\d+(e[+-]\d+)?", " #", line))


@pytest.mark.needs("pyscf")
def test_the_readme_shows_what_the_demonstration_prints() -> None:
    """Line by line, in this order; between two lines with … there may be more."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(
        r"hartree-fock output: begin -->\n```\n(.*?)```\n<!-- hartree-fock output: end", readme, re.DOTALL
    )
    printed = [without_figures(line) for line in hartree_fock().splitlines()]
    paragraphs = [[without_figures(line) for line in part.splitlines()] for part in re.split(r"\n\n|\n *…\n", block)]
    place = 0
    for part in paragraphs:
        starts = [n for n in range(place, len(printed)) if printed[n : n + len(part)] == part]
        assert starts, f"not printed, or not here: {part}"
        place = starts[0] + len(part)


@pytest.mark.parametrize(
    ("example", "missing", "status", "message"),
    [
        ("hartree_fock", "pyscf", 1, "this example needs pyscf: run `make demo`"),
        ("sharding", "jax", 0, "this example needs JAX: pip install 'combdiff[jax]'"),  # `make examples` runs it, too
    ],
)
def test_an_example_says_what_to_install(example: str, missing: str, status: int, message: str, tmp_path: Path) -> None:
    """A module that fails to import stands in for a missing one."""
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('no {missing}', name='{missing}')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, str(ROOT / f"examples/{example}.py")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=tmp_path, env=environment, check=False)
    assert done.returncode == status
    assert message in done.stderr if status else done.stdout == f"{message}\n"


@pytest.mark.thorough
def test_an_evaluation_of_gradbench_is_compared_and_timed(tmp_path: Path) -> None:
    head, *rows = run("benchmarks/gradbench.py", tmp_path, "lse", "--repeats", "1").splitlines()
    assert "jax.jit" in head
    assert [row.split()[:2] for row in rows] == [["lse", "n=1000"], ["lse", "n=100000"]]


@pytest.mark.thorough
def test_the_startup_benchmark_prints_its_table(tmp_path: Path) -> None:
    rows = run("benchmarks/startup.py", tmp_path, "1").splitlines()
    assert len(rows) == 5
    assert rows[1].startswith("import egglog")
    assert rows[1].endswith("1.00")
