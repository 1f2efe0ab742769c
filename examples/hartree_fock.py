"""Restricted Hartree-Fock for water, from the energy as one writes it on paper (theory.md §3, result 4).

With doubly occupied orbitals C and two-electron integrals in chemists' notation, J[p,q,r,s] = (pq|rs), the energy is

    E = 2 Σ C[p,i]* h[p,q] C[q,i]  +  2 Σ (ii|jj)  −  Σ (ij|ji)  +  E_nuc.

Its gradient is 4 F C with the Fock matrix F. This page derives it, compares it with the Fock matrix of PySCF, and
minimises the energy with SciPy from the orbitals of the bare nuclei to the energy PySCF converges to.
Run it with `make demo`.
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np

import combdiff as cd
from combdiff.ir.terms import Add, Lambda, Let

try:
    from pyscf import gto, scf
    from scipy.optimize import minimize
except ImportError as missing:
    sys.exit(f"this example needs {missing.name}: run `make demo`, or `pip install -e '.[demo]'`")

WATER = "O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692"  # in ångström


# 1. The energy. N atomic orbitals, Ne doubly occupied molecular orbitals; the programs hold for complex orbitals.

Orbitals = cd.Space("N", "Ne", dtype=complex)
OneElectron = cd.Space("N", "N", dtype=complex, symmetry=["h[p,q] = conj(h[q,p])"])
TwoElectron = cd.Space(
    "N", "N", "N", "N", dtype=complex, symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"]
)


@cd.program
def coulomb(J: TwoElectron, C: Orbitals):
    return cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])


@cd.program
def energy(h: OneElectron, J: TwoElectron, C: Orbitals):
    core = cd.sum(lambda i, p, q: cd.conj(C[p, i]) * h[p, q] * C[q, i])
    exchange = cd.sum(lambda i, j, p, q, r, s: cd.conj(C[p, i]) * C[q, j] * cd.conj(C[r, j]) * C[s, i] * J[p, q, r, s])
    return 2 * core + 2 * coulomb(J, C) - exchange


def heading(text):
    print(f"\n{text}\n{'-' * len(text)}")


heading("The energy without the repulsion of the nuclei")
print(energy)
print("\nin combinators:")
print(energy.combinators())

# 2. The gradient. The objective is found to be real from the symmetries of h and J.

heading("The gradient of the Coulomb energy: one term, factor 4")
start = time.perf_counter()
coulomb_gradient = cd.grad(coulomb, wrt="C")
print(coulomb_gradient)
coulomb_seconds = time.perf_counter() - start

heading("The gradient of the whole energy: 4 F C")
start = time.perf_counter()
gradient = cd.grad(energy, wrt="C")
print(gradient)
seconds = time.perf_counter() - start

heading("The Hessian of the Coulomb energy times a vector: three terms")
coulomb_hvp = cd.hvp(coulomb, wrt="C")
print(coulomb_hvp)

# 3. The integrals, and PySCF as the referee.

molecule = gto.M(atom=WATER, basis="sto-3g", verbose=0)
h = molecule.intor("int1e_kin") + molecule.intor("int1e_nuc")
J = molecule.intor("int2e")
S = molecule.intor("int1e_ovlp")
occupied = molecule.nelectron // 2
repulsion = molecule.energy_nuc()

values, vectors = np.linalg.eigh(S)
root = vectors / np.sqrt(values) @ vectors.T  # S^(-1/2): C = root @ Q is orthonormal in S where Q has QᵀQ = 1
guess = np.linalg.eigh(root @ h @ root)[1][:, :occupied]  # electrons that do not see each other

referee = scf.RHF(molecule)
referee.conv_tol = 1e-12
converged = referee.kernel()


def differences(C):
    """How far the energy, and the gradient from 4 F C, are from PySCF's at the orbitals C."""
    density = 2 * C @ C.conj().T
    coulomb_matrix, exchange_matrix = scf.hf.dot_eri_dm(J, density, hermi=1)
    fock = h + coulomb_matrix - exchange_matrix / 2
    expected = referee.energy_elec(density, h, coulomb_matrix - exchange_matrix / 2)[0]
    return abs(energy(h, J, C) - expected), np.abs(gradient(h, J, C) - 4 * fock @ C).max()


heading("Water in STO-3G, against PySCF")
rng = np.random.default_rng(0)
complex_guess = np.linalg.qr(rng.normal(size=guess.shape) + 1j * rng.normal(size=guess.shape))[0]
for name, Q in (("core guess", guess), ("random complex", complex_guess)):
    C = root @ Q
    in_energy, in_gradient = differences(C)
    cd.testing.check_grad(energy, "C", h=h, J=J, C=C)
    print(f"{name:>15} orbitals: |E − E_PySCF| = {in_energy:.1e}, max |∇E − 4 F C| = {in_gradient:.1e}")
    assert in_energy < 1e-9
    assert in_gradient < 1e-10
print("the gradient also agrees with central differences")

K, small = rng.normal(size=C.shape) + 1j * rng.normal(size=C.shape), 1e-5
quotient = (coulomb_gradient(J, C + small * K) - coulomb_gradient(J, C - small * K)) / (2 * small)
assert np.abs(coulomb_hvp(J, C, K) - quotient).max() < 1e-8 * np.abs(quotient).max()
print("and the Hessian-vector product with central differences of the gradient")

# 4. Minimise. X is any N × Ne matrix, X = Q R its factorisation, C = S^(-1/2) Q. The energy depends on the space that
#    the columns of Q span and not on the basis Q of it, so dE/dX = (1 − Q Qᵀ) S^(-1/2) dE/dC R^(-T), exactly.

step = cd.value_and_grad(energy, wrt="C")


def objective(x):
    Q, R = np.linalg.qr(x.reshape(guess.shape))
    value, slope = step(h, J, root @ Q)
    slope = root @ np.real(slope)
    tangent = slope - Q @ (Q.T @ slope)
    return float(np.real(value)) + repulsion, np.linalg.solve(R, tangent.T).T.ravel()


class Progress:
    """Prints a line per iteration."""

    def __init__(self):
        self.iteration = 0

    def __call__(self, intermediate_result):
        value, slope = objective(intermediate_result.x)
        print(f"{self.iteration:9d} {value:16.10f} {np.linalg.norm(slope):10.2e} {value - converged:12.2e}")
        self.iteration += 1


heading("Minimising with SciPy's BFGS from the core guess")
print("iteration           energy   |gradient|   above PySCF")
result = minimize(objective, guess.ravel(), jac=True, method="BFGS", callback=Progress(), options={"gtol": 1e-6})
print(f"combdiff + SciPy {result.fun:.10f}, PySCF {converged:.10f}, difference {abs(result.fun - converged):.1e}")
assert abs(result.fun - converged) < 1e-7

# 5. What it cost.


def import_seconds(module, after):
    """The median over five fresh processes of the seconds that importing all of a module takes after another import."""
    code = f"import time, {after}; t = time.perf_counter(); from {module} import *; print(time.perf_counter() - t)"
    # Compiled modules are kept on disk, as pip leaves them, so that importing does not mean compiling.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(5)]
    return statistics.median(float(run.stdout) for run in runs)


def count_terms(program):
    """How many terms the sum has that a program's last line states."""
    result = program.term.body
    while isinstance(result, Let | Lambda):
        result = result.body
    return len(result.terms) if isinstance(result, Add) else 1


heading("Figures")
egglog_seconds = import_seconds("egglog", after="numpy")
print(f"import egglog                            {egglog_seconds:7.3f} s")
print(f"import combdiff beyond import numpy      {import_seconds('combdiff', after='numpy'):7.3f} s")
for name, program, taken in (
    ("Coulomb energy", coulomb_gradient, coulomb_seconds),
    ("whole energy", gradient, seconds),
):
    ratio, terms = taken / egglog_seconds, count_terms(program)
    print(f"derive the gradient of the {name:<14}{taken:7.3f} s, {ratio:.2f} × import egglog, terms: {terms}")
