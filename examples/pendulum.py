"""A pendulum's gravity and friction from noisy measurements: a loop of 400 steps, derived once, fitted by Newton.

    v[t+1] = v[t] − dt (g sin x[t] + c v[t]),    x[t+1] = x[t] + dt v[t+1],    loss = Σ_t (x[t] − y[t])²

The gradient is a recurrence too, backward in time. Its own derivatives, the Hessian-vector products, are recurrences
again; none of them takes longer to derive for more steps.
"""

import numpy as np

import combdiff as cd

Measured = cd.Space("T")
Number = cd.Space()
dt = 0.02


@cd.program
def loss(g: Number, c: Number, y: Measured):
    def step(state, measured):
        x, v = state
        v = v - dt * (g * np.sin(x) + c * v)
        return (x + dt * v, v), (x - measured) ** 2

    _, squares = cd.scan(step, (1.0, 0.0), y)
    return squares.sum()


print(loss)
gradient = cd.grad(loss, wrt=("g", "c"))
print("\nits gradient:")
print(gradient)


def measured(g, c, steps, rng):
    """The angles of a simulated pendulum, with noise."""
    x, v, angles = 1.0, 0.0, []
    for _ in range(steps):
        angles.append(x)
        v = v - dt * (g * np.sin(x) + c * v)
        x = x + dt * v
    return np.array(angles) + 0.01 * rng.normal(size=steps)


y = measured(9.81, 0.3, 400, np.random.default_rng(0))
product = cd.hvp(loss, wrt=("g", "c"), simplify=False)
point = np.array([9.6, 0.2])
print(f"\nloss at the start: {loss(*point, y):.3f}")
for _ in range(8):
    slope = np.array(gradient(*point, y))
    hessian = np.array([product(*point, y, *direction) for direction in np.eye(2)])
    point = point - np.linalg.solve(hessian, slope)
print(f"loss at the end:   {loss(*point, y):.3f}")
print(f"g = {point[0]:.2f}, c = {point[1]:.2f}")

h = 1e-6
for n, name in enumerate("gc"):
    move = h * np.eye(2)[n]
    difference = (loss(*(point + move), y) - loss(*(point - move), y)) / (2 * h)
    assert abs(difference - gradient(*point, y)[n]) < 1e-5, name
print("the gradient is that of central differences")
