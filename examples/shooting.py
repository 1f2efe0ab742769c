"""A pendulum swung up by shooting: the forces of all steps are the unknowns, and SciPy minimises what they cost.

    v[t+1] = v[t] + dt (u[t] − g sin x[t] − c v[t]),    x[t+1] = x[t] + dt v[t+1]
    cost = Σ_t w u[t]² + (x[T] − π)² + v[T]²

The motor is weaker than gravity, so that the pendulum has to swing back first. The gradient by all forces is one
recurrence backward in time, and so is each product with the Hessian, which `trust-ncg` asks for.
"""

import numpy as np
from scipy.optimize import minimize

import combdiff as cd

Forces = cd.Space("T")
dt, gravity, friction, weight = 0.05, 9.81, 0.1, 0.002


@cd.program
def cost(u: Forces):
    def step(state, force):
        x, v = state
        v = v + dt * (force - gravity * np.sin(x) - friction * v)
        return (x + dt * v, v), force**2

    (x, v), squares = cd.scan(step, (0.0, 0.0), u)
    return weight * squares.sum() + (x - np.pi) ** 2 + v**2


print(cost)
print("\nits gradient:")
print(cd.grad(cost))

start = 2 * np.sin(5 * dt * np.arange(80))
objective = cd.interop.scipy_objective(cost, wrt="u", u=start)
found = minimize(
    objective.fun, objective.x0, jac=objective.jac, hessp=objective.hessp, method="trust-ncg", options={"maxiter": 300}
)


def swing(u):
    """The angle after each step."""
    x, v, angles = 0.0, 0.0, []
    for force in u:
        v = v + dt * (force - gravity * np.sin(x) - friction * v)
        x = x + dt * v
        angles.append(x)
    return np.array(angles)


angles = swing(found.x)
print(f"\ncost {cost(start):.3f} at the start, {found.fun:.3f} at the end")
print(f"largest force {np.abs(found.x).max():.1f}, where gravity pulls with {gravity}")
print(f"the pendulum swings to {np.degrees(angles.min()):.0f}° first, and ends at {np.degrees(angles[-1]):.0f}°")
assert abs(angles[-1]) - np.pi < 0.1
