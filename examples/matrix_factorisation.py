"""Newton's method on matrix factorisation, ‖T − U·Vᵀ‖², through the structure of its Hessian.

The Hessian by U has n·k·n·k elements, all but n·k·k of them zero, and those the same k×k matrix 2·VᵀV for every row of
U (Laue, Mitterreiter and Giesen, section 3). A Newton step by U, then by V, is two k×k systems.
"""

import numpy as np

import combdiff as cd

Target, Left, Right = cd.Space("n", "m"), cd.Space("n", "k"), cd.Space("m", "k")


@cd.program
def loss(T: Target, U: Left, V: Right):
    R = T - U @ V.T
    return (R * R).sum()


by_left, by_right = cd.hessian(loss, "U"), cd.hessian(loss, "V")
core, structure = by_left.compressed()
print(by_left)
print("\nits structure:", structure)
print("its core:     ", core)
print("its pattern:  ", by_left.sparsity())

rng = np.random.default_rng(0)
n, m, k = 40, 30, 4
T = rng.normal(size=(n, k)) @ rng.normal(size=(m, k)).T  # a matrix of rank k
U, V = rng.normal(size=(n, k)), rng.normal(size=(m, k))

step = by_left.solve(-cd.grad(loss, "U")(T, U, V), T, U, V)
dense = by_left(T, U, V).reshape(n * k, n * k)
assert np.allclose(step.ravel(), np.linalg.solve(dense, -cd.grad(loss, "U")(T, U, V).ravel()))

print("\nalternating Newton steps by U and V")
for sweep in range(1, 31):
    U = U + by_left.solve(-cd.grad(loss, "U")(T, U, V), T, U, V)
    V = V + by_right.solve(-cd.grad(loss, "V")(T, U, V), T, U, V)
    value = loss(T, U, V)
    if sweep in (1, 2, 3) or value < 1e-20:
        print(f"sweep {sweep:>2}: loss {value:.1e}")
    if value < 1e-20:
        break
assert value < 1e-20

blocks = cd.hessian(loss, ("U", "V"))
assert np.allclose(blocks(T, U, V)["V", "U"], blocks["U", "V"](T, U, V).transpose(2, 3, 0, 1))
print("\nthe mixed block at U, V:")
print(blocks["U", "V"])
