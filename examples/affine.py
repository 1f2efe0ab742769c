"""Element-wise tensors with affine indices: four derivatives with exact ranges (theory.md §4; Urban & van der Smagt).

    f[i, j] = exp(−Σ_k ((a[i, k] + b[j, k])² c[i, i] + d[i + k]³))      a 3×5, b 4×5, c 3×3, d 8

Each derivative is pulled back with a cotangent v of f. `c[i, i]` leaves a δ before the sum, `d[i + k]` a sum with
closed bounds: no term of any sum is zero by an index alone.
"""

import numpy as np

import combdiff as cd


@cd.program
def f(a: cd.Space(3, 5), b: cd.Space(4, 5), c: cd.Space(3, 3), d: cd.Space(8)):
    return cd.tensor(
        lambda i, j: cd.exp(-cd.sum(lambda k: (a[i, k] + b[j, k]) ** 2 * c[i, i] + d[i + k] ** 3)), i=3, j=4
    )


rng = np.random.default_rng(0)
arrays = {"a": rng.random((3, 5)), "b": rng.random((4, 5)), "c": rng.random((3, 3)), "d": rng.random(8)}
v = rng.standard_normal((3, 4))


@cd.program
def weighted(a: cd.Space(3, 5), b: cd.Space(4, 5), c: cd.Space(3, 3), d: cd.Space(8), v: cd.Space(3, 4)):
    return cd.sum(lambda i, j: v[i, j] * f(a, b, c, d)[i, j])


for name in arrays:
    derivative = cd.pullback(f, wrt=name)
    print(f"d{name}: {derivative}")
    found = derivative(*arrays.values(), v)
    assert np.allclose(found, cd.grad(weighted, wrt=name)(**arrays, v=v), rtol=0, atol=1e-12)
    cd.testing.check_grad(weighted, name, **arrays, v=v)
print("all four agree with central differences")


# A two-dimensional convolution with stride 2, and its derivative by the image.
@cd.program
def strided(x: cd.Space(9, 9), w: cd.Space(3, 3), y: cd.Space(4, 4)):
    return cd.sum(lambda i, j, k, l: x[2 * i + k, 2 * j + l] * w[k, l] * y[i, j])  # noqa: E741


print("\nstride 2:", cd.grad(strided))
images = {"x": rng.random((9, 9)), "w": rng.random((3, 3)), "y": rng.random((4, 4))}
cd.testing.check_grad(strided, "x", **images)


# Lorenz-96 on a ring: the pullback runs round the ring as well.
@cd.program
def lorenz(x: cd.Space(cd.Cyclic("n")), F: cd.Space()):
    return cd.tensor(lambda i: (x[i + 1] - x[i - 2]) * x[i - 1] - x[i] + F)


print("\nLorenz-96:", cd.pullback(lorenz))


# An access that can leave its tensor is refused.
try:

    @cd.program
    def outside(d: cd.Space(8), y: cd.Space(4, 6)):
        return cd.sum(lambda i, k: d[i + k] * y[i, k])

except cd.CombdiffError as error:
    print("\nrefused:", error.message)
