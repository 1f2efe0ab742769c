"""What one waits for before the first gradient: importing combdiff, and deriving the Hartree-Fock gradient.

Both are compared with `import egglog`, of which combdiff loads the compiled module alone. Every figure comes from a new
process, so that no cache of combdiff is warm, but with compiled modules on disk, as pip leaves them. The processes of
the measurements alternate, so that a busy spell of the machine falls on all of them; medians are compared.
Run: python benchmarks/startup.py [repeats]
"""

import os
import statistics
import subprocess
import sys

IMPORT_COMBDIFF = """
import time, numpy
start = time.perf_counter()
from combdiff import *  # each public name, with the module that defines it
print(time.perf_counter() - start)
"""

IMPORT_EGGLOG = """
import time, numpy
start = time.perf_counter()
import egglog
print(time.perf_counter() - start)
"""

DERIVE = """
import time, numpy
import combdiff as cd
from combdiff import *

Core = cd.Space("N", "N", dtype=complex, symmetry=["h[p,q] = conj(h[q,p])"])
Repulsion = cd.Space("N", "N", "N", "N", dtype=complex,
                     symmetry=["J[p,q,r,s] = J[r,s,p,q]", "J[p,q,r,s] = conj(J[q,p,s,r])"])
Orbitals = cd.Space("N", "Ne", dtype=complex)

@cd.program
def coulomb(J: Repulsion, C: Orbitals):
    return cd.sum(lambda i, j, p, q, r, s:
                  cd.conj(C[p, i]) * C[q, i] * cd.conj(C[r, j]) * C[s, j] * J[p, q, r, s])

@cd.program
def energy(h: Core, J: Repulsion, C: Orbitals):
    core = cd.sum(lambda i, p, q: cd.conj(C[p, i]) * h[p, q] * C[q, i])
    exchange = cd.sum(lambda i, j, p, q, r, s:
                      cd.conj(C[p, i]) * C[q, j] * cd.conj(C[r, j]) * C[s, i] * J[p, q, r, s])
    return 2 * core + 2 * coulomb(J, C) - exchange

start = time.perf_counter()
str(cd.grad(OBJECTIVE, wrt="C"))
print(time.perf_counter() - start)
"""

MEASUREMENTS = {
    "import egglog": IMPORT_EGGLOG,
    "import combdiff beyond numpy": IMPORT_COMBDIFF,
    "derive the Coulomb gradient": DERIVE.replace("OBJECTIVE", "coulomb"),
    "derive the whole HF gradient": DERIVE.replace("OBJECTIVE", "energy"),
}


def seconds(code: str) -> float:
    """The seconds that one fresh process reports."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return float(run.stdout)


def main(repeats: int = 7) -> None:
    """Measure and print one row per measurement, with its ratio to `import egglog`."""
    seconds(IMPORT_COMBDIFF)  # compiles what is not compiled yet
    runs: dict[str, list[float]] = {name: [] for name in MEASUREMENTS}
    for _ in range(repeats):
        for name, code in MEASUREMENTS.items():
            runs[name].append(seconds(code))
    unit = statistics.median(runs["import egglog"])
    print(f"{'median of ' + str(repeats):<30} {'seconds':>8} {'least':>8} {'most':>8} {'ratio':>7}")
    for name, times in runs.items():
        middle = statistics.median(times)
        print(f"{name:<30} {middle:8.3f} {min(times):8.3f} {max(times):8.3f} {middle / unit:7.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
