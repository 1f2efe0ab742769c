"""Breaks the package by hand, one place at a time, and tells whether the tests named for each place find it.

    make mutants                  all of them (about fifteen minutes on two cores)
    python tests/mutants.py sign  those with a word in their file or text

Each is applied to a copy of the repository, and of the tests named for it those that `make test` takes run there until
the first fails; without it they must pass. A mutant that LIVES is a hole in the suite: mend the tests, not this list.
One that is GONE has its text no more in the file: the code changed, and the break is to be written anew. FAILS: the
tests fail without it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutant:
    """One break: the text in a file of the package, what stands there instead, and the tests that must find it."""

    file: str
    old: str
    new: str
    tests: str


IR, DIFF, POLY = "tests/ir", "tests/differentiation", "tests/polyhedra"
MUTANTS = (
    # --- ir
    Mutant("ir/primitives.py", 'negate(function("sin", z))', 'function("sin", z)', f"{IR}/test_primitives.py"),
    Mutant("ir/primitives.py", "add(ONE, negate(square(z)))", "add(ONE, square(z))", f"{IR}/test_primitives.py"),
    Mutant(
        "ir/primitives.py",
        'mul(HALF, conj(function("sign", z))),',
        'mul(HALF, function("sign", z)),',
        f"{IR}/test_primitives.py",
    ),
    Mutant(
        "ir/domains.py",
        "return 2 * size_value(domain.bound, sizes) + 1",
        "return 2 * size_value(domain.bound, sizes)",
        f"{IR}/test_domains.py",
    ),
    Mutant(
        "ir/interpreter.py",
        "self.value(term.body, scope).conjugate()",
        "self.value(term.body, scope)",
        f"{IR}/test_reference.py",
    ),
    Mutant(
        "ir/interpreter.py",
        "c * self._variable(var, scope) for var, c in term.coefficients) + term.offset",
        "c * self._variable(var, scope) for var, c in term.coefficients)",
        f"{IR}/test_reference.py",
    ),
    # --- differentiation
    Mutant(
        "differentiation/pullback.py",
        "if is_complex(var) or not is_complex(cotangent):",
        "if True:",
        f"{DIFF}/test_pullback.py",
    ),
    Mutant(
        "differentiation/pullback.py",
        "self._pointwise((adjoint,), negate)",
        "adjoint",
        "tests/api/test_implicit.py -k gradient",
    ),
    Mutant(
        "differentiation/pullback.py",
        "return second if first is None else pointwise(self.names, (first, second), add)",
        "return second",
        f"{DIFF}/test_pullback.py",
    ),
    Mutant(
        "differentiation/wirtinger.py",
        "return conj(inner[0][1]), conj(inner[0][0])",
        "return conj(inner[0][0]), conj(inner[0][1])",
        "tests/hessians/test_hessians.py -k complex",
    ),
    Mutant(
        "differentiation/wirtinger.py",
        "else WirtingerMap(mul(Number(2), antiholomorphic))",
        "else WirtingerMap(antiholomorphic)",
        "tests/hessians/test_hessians.py -k complex",
    ),
    # --- polyhedra
    Mutant("polyhedra/affine.py", "low = max(ceil(", "low = max(floor(", f"{POLY}/test_affine.py"),
    Mutant("polyhedra/affine.py", "floor(scaled.constant)", "floor(scaled.constant) + 1", f"{POLY}/test_affine.py"),
    Mutant(
        "polyhedra/bounds_checks.py",
        "_sized(form.scale(-1) - 1, sizes)",
        "_sized(form.scale(-1), sizes)",
        f"{POLY}/test_accesses.py",
    ),
    # --- laws and normal form
    Mutant(
        "../rules/algebra.egg",
        "(Scale (- (* a c) (* b d)) (+ (* a d) (* b c)) x)",
        "(Scale (- (* a c) (* b d)) (- (* a d) (* b c)) x)",
        "tests/simplification/test_egraph.py",
    ),
    Mutant(
        "../rules/contraction.egg",
        "(rewrite (Delta i i k) (Num $one $zero)",
        "(rewrite (Delta i i k) (Num $zero $zero)",
        "tests/simplification/test_egraph.py",
    ),
    Mutant(
        "../rules/algebra.egg",
        '(union e (Add rest))) :ruleset collect :name "zero term"',
        '(union e $null)) :ruleset collect :name "zero term"',
        "tests/simplification/test_egraph.py",
    ),
    Mutant(
        "simplification/normal_form/canonical.py",
        "sign = prod(part.sign for part in parts)",
        "sign = 1 if all(part.sign for part in parts) else 0",
        "tests/simplification/test_canonical.py",
    ),
    Mutant(
        "simplification/normal_form/linear_systems.py",
        "        if any(column):\n            rows.append(column)",
        "        if True:\n            rows.append(column)",
        "tests/simplification/test_deltas.py",
    ),
    Mutant(
        "simplification/normal_form/symmetries.py",
        "(-1, negate(form))",
        "(-1, form)",
        "tests/simplification/test_common.py -k 'differences or heavy'",
    ),
    # --- stability
    Mutant(
        "ir/positivity.py",
        "return not term.imag and term.real > 0",
        "return not term.imag",
        "tests/stability/test_stable.py -k signs",
    ),
    Mutant(
        "stability/stabilisation.py",
        '_EXPONENTIAL = ("exp", "cosh", "sinh")',
        '_EXPONENTIAL = ("cosh", "sinh")',
        "tests/stability/test_stable.py",
    ),
    # --- planning and code
    Mutant(
        "kernels/numpy.py",
        "slice(first, max(high + 1, first))",
        "slice(first, max(high, first))",
        "tests/planning/test_lowering.py -k leave",
    ),
    Mutant(
        "kernels/positions.py",
        "inside = inside & (position % divisor == 0)",
        "inside = inside & (divisor > 0)",
        "tests/routes/test_windows.py tests/polyhedra/test_affine_accesses.py",
    ),
    Mutant(
        "planning/costs.py",
        "int(spent.flops) / int(total) if total",
        "int(spent.bytes) / int(total) if total",
        "tests/planning/test_costs.py",
    ),
    Mutant(
        "kernels/bands.py",
        "min(count, (size - 1 - first) // stride + 1)",
        "min(count, (size - 1 - first) // stride)",
        "tests/kernels/test_bands.py",
    ),
    Mutant(
        "kernels/running.py",
        "bound + (size if sign > 0 else 1)",
        "bound + (size if sign > 0 else 0)",
        "tests/kernels/test_kernels.py tests/stability/test_running_sums.py",
    ),
    Mutant(
        "dialects/numpy.py",
        "list(order) == identity[::-1]",
        "sorted(order) == identity",
        "tests/dialects/test_dialects.py",
    ),
    Mutant(
        "codegen/writer.py",
        "dict.fromkeys((*standard, *jax,",
        "dict.fromkeys((*jax,",
        "tests/codegen/test_plain_sources.py",
    ),
    Mutant("pictures/drawing.py", "line[: most - 1]", "line[:most]", "tests/pictures -k cut"),
    Mutant(
        "page/application.py",
        "if host not in self.hosts:",
        "if not host:",
        "tests/page -k host",
    ),
    Mutant(
        "testing/differences.py",
        'for direction in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):',
        "for direction in (1.0,):",
        "tests/testing",
    ),
    # --- runtime, Hessians, printing, front ends
    Mutant("runtime/limits.py", '"KIB": 2**10', '"KIB": 10**3', "tests/runtime/test_memory.py -k units"),
    Mutant(
        "hessians/sparsity.py",
        "found |= allowed",
        "found = allowed",
        "tests/hessians/test_hessians.py -k 'cores or sparsity'",
    ),
    Mutant(
        "hessians/real_systems.py",
        "return real_pair(mixed + pure.conj(), mixed - pure.conj())",
        "return real_pair(mixed + pure, mixed - pure)",
        "tests/hessians/test_newton.py tests/hessians/test_hessians.py -k complex",
    ),
    Mutant(
        "hessians/newton.py",
        "return 2 * (self.mixed.product(columns.conj())",
        "return 2 * (self.mixed.product(columns)",
        "tests/hessians/test_schur.py",
    ),
    Mutant(
        "hessians/newton.py",
        "solve(columns.conj() / 2).conj()",
        "solve(columns / 2).conj()",
        "tests/hessians/test_newton.py",
    ),
    Mutant(
        "printing/signs.py",
        "turned = added((not negative, term)",
        "turned = added((negative, term)",
        "tests/printing/test_printing.py",
    ),
    Mutant(
        "text/translation.py",
        "[*letters[:n], letters[n + 1], letters[n], *letters[n + 2 :]]",
        "letters",
        "tests/text/test_text.py",
    ),
    Mutant(
        "tracing/functions.py",
        "/ wrap(arrays.count(lift(a), axis))",
        "/ wrap(arrays.count(lift(a)))",
        "tests/tracing/test_whole_arrays.py",
    ),
    Mutant(
        "api/transforms.py",
        "return lambda_(indices, conj(apply(gradient, indices)))",
        "return gradient",
        "tests/api/test_program.py",
    ),
    Mutant(
        "api/interop.py",
        'turn = jnp.conj if convention == "jax"',
        'turn = jnp.conj if convention != "jax"',
        "tests/api/test_interop.py -k jax",
    ),
    # --- seams: what counts as one of several, and what is replaced in turn
    Mutant(
        "stability/hypotenuses.py",
        "rest = factors_beside(factor, term)",
        "rest = [other for other in factors_of(term) if other is not factor]",
        "tests/routes/test_repeated_factors.py",
    ),
    Mutant(
        "ir/terms.py",
        "return total((*_renamed(indices, body), *body.indices), body.body)",
        "return total((*indices, *body.indices), body.body)",
        "tests/routes/test_same_names.py",
    ),
    Mutant(
        "planning/lowering/graph.py",
        "return self.constant(Number(operation.number.real, -operation.number.imag))",
        "pass",
        "tests/planning/test_lowering.py",
    ),
    Mutant(
        "planning/lowering/guarded_factors.py",
        "return tuple(every) if None not in found and not",
        "return tuple(every) if None not in found and len(every) < 9 and not",
        "tests/planning/test_guarded_factors.py",
    ),
    Mutant(
        "simplification/egraph/saturation.py",
        "for n, indices in enumerate(moved) for index in indices for place in range(n)]",
        "for n, indices in enumerate(moved) for index in indices for place in range(0)]",
        "tests/simplification/test_program_classes.py",
    ),
)


def copied(folder: Path) -> Path:
    """What the tests need, in a folder."""
    for name in ("combdiff", "rules", "tests", "examples", "benchmarks", "docs"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@cache
def unbroken(folder: Path, tests: str) -> bool:
    """Whether these tests pass where nothing is broken: otherwise they tell nothing."""
    return not fails(folder, tests)


def fails(folder: Path, tests: str) -> bool:
    """Whether some of these tests fail in a copy. Raises RuntimeError where there are none."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-x", "--no-header", "-m", "not thorough"]
    command += shlex.split(tests)
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 2):  # passed, failed, or could not be imported
        raise RuntimeError(f"no test of `make test` ran: pytest {tests}\n{done.stdout}{done.stderr}")
    return done.returncode != 0


def verdict(mutant: Mutant, folder: Path) -> str:
    """Whether the tests find one break; the copy is as it was afterwards."""
    path = (folder / "combdiff" / mutant.file).resolve()
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return "GONE"
    if not unbroken(folder, mutant.tests):
        return "FAILS"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        return "found" if fails(folder, mutant.tests) else "LIVES"
    finally:
        path.write_text(text, encoding="utf-8")


def main(words: list[str]) -> int:
    """Tries every mutant that has all the words; the exit status is the number of those that were not found."""
    chosen = [m for m in MUTANTS if all(word in f"{m.file} {m.old} {m.tests}" for word in words)]
    missed = 0
    with tempfile.TemporaryDirectory() as place:
        folder = copied(Path(place))
        for number, mutant in enumerate(chosen, 1):
            found = verdict(mutant, folder)
            missed += found != "found"
            print(f"{number:3} of {len(chosen)}  {found:6} {mutant.file}: {mutant.old[:60]!r}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} breaks were found")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
