"""A potential that focuses a wave packet: Schrödinger's equation by split steps, and its gradient by the potential.

Each step turns the phase of the wave by the potential in space and by the kinetic energy in frequency, with NumPy's
Fourier transforms: sums of waves for the derivative, fast transforms for the plan.
"""

import numpy as np
from scipy.optimize import minimize

import combdiff as cd

N, STEPS, LENGTH, TIME = 128, 40, 20.0, 0.05
Wave, Field = cd.Space("n", dtype=complex), cd.Space("n")


@cd.program
def spread(V: Field, k: Field, psi: Wave, x: Field):
    """The mean square distance from the middle, after all steps."""
    in_space = np.exp(-1j * TIME * V)
    in_frequency = np.exp(-0.5j * TIME * k**2)

    def step(psi, _):
        return np.fft.ifft(in_frequency * np.fft.fft(in_space * psi)), None

    psi, _ = cd.scan(step, psi, length=STEPS)
    return np.sum(x**2 * np.abs(psi) ** 2)


gradient = cd.grad(spread, wrt="V")
print("The spread of a wave packet after", STEPS, "steps:")
print(spread)
print("\nIts gradient by the potential:")
print(gradient)

x = (np.arange(N) - N // 2) * LENGTH / N
k = 2 * np.pi * np.fft.fftfreq(N, LENGTH / N)
psi = np.exp(-(x**2) / 4).astype(complex)
psi /= np.linalg.norm(psi)

print("\nthe gradient is that of central differences:", end=" ")
error = cd.testing.check_grad(spread, wrt="V", V=0.1 * x**2, k=k, psi=psi, x=x)
print("off by less than 1e-6" if error < 1e-6 else f"off by {error:.1e}")

smooth = np.exp(-0.05 * k**2)  # a potential without high frequencies


def objective(V):
    """What SciPy minimises: the spread, with a small price for a high potential."""
    V = np.fft.ifft(smooth * np.fft.fft(V)).real
    value, slope = both(V, k, psi, x)
    return value + 1e-3 * V @ V, np.fft.ifft(smooth * np.fft.fft(slope + 2e-3 * V)).real


both = cd.value_and_grad(spread, wrt="V")
free = spread(np.zeros(N), k, psi, x)
found = minimize(objective, np.zeros(N), jac=True, method="L-BFGS-B", options={"maxiter": 60})
V = np.fft.ifft(smooth * np.fft.fft(found.x)).real
print(f"\nmean square distance {free:.2f} without a potential, {spread(V, k, psi, x):.2f} with the one that was found")
print("transforms in the plan of the gradient:", gradient.source().count("np.fft."))
