"""Small programs, each of which some law, step of the normal form or pass of the planner is there for."""

from __future__ import annotations

import combdiff as cd

Vector, Matrix = cd.Space("n"), cd.Space("n", "n")
Symmetric = cd.Space("n", "n", symmetry=["S[i,j] = S[j,i]"])
Odd = cd.Space("n", "n", symmetry=["A[i,j] = -A[j,i]"])
Hermitian = cd.Space("n", "n", dtype=complex, symmetry=["H[i,j] = conj(H[j,i])"])
Complex = cd.Space("n", dtype=complex)


def quadratic_form(x: Vector, A: Matrix):
    return x @ A @ x


def symmetric_form(x: Vector, S: Symmetric):
    return x @ S @ x


def antisymmetric_form(x: Vector, A: Odd):
    return x @ A @ x


def hermitian_form(z: Complex, H: Hermitian):
    return cd.real(z.conj() @ H @ z)


def squares(x: Vector):
    return (x * x).sum() + 2 * (x * x).sum()


def nested(x: Vector, A: Matrix):
    return cd.sum(lambda i: x[i] * (1 + 2 * (x[i] + cd.sum(lambda j: A[i, j] * (x[j] + 1)))))


def entropy(x: Vector):
    return cd.sum(lambda i: (1 + x[i]) / 2 * cd.log((1 + x[i]) / 2))


def log_sum_exp(x: Vector):
    return cd.log(cd.exp(x).sum())


def moebius(x: Vector):
    return cd.sum(lambda i: x[i] / (1 + x[i]))


def length(x: Vector):
    return cd.sqrt(x @ x) * cd.sqrt(x @ x) + cd.sqrt(x @ x)


def circle(x: Vector):
    return cd.sum(lambda i: cd.sin(x[i]) ** 2 + cd.cos(x[i]) ** 2 + cd.sin(x[i]) * cd.cos(x[i]))


def rectified(x: Vector):
    return cd.sum(lambda i: cd.maximum(x[i], 0) ** 3)


def modulus(z: Complex):
    return cd.sum(lambda i: cd.abs(z[i]) ** 3)


def wave(z: Complex, x: Vector):
    return cd.real(cd.sum(lambda i: 1j * x[i] * cd.conj(cd.exp(z[i] * x[i]))))


def windows(x: cd.Space("m"), w: cd.Space("k")):
    return cd.sum(lambda i, j: (x[2 * i + j] * w[j]) ** 2, i="n")


def around(x: cd.Space(cd.Cyclic("n")), y: cd.Space(cd.Cyclic("n"))):
    return cd.sum(lambda i, j: x[-i - j] * y[i] * y[j])


def error_function(x: Vector):
    return cd.sum(lambda i: x[i] * (cd.erf(x[i]) + cd.erfc(x[i])))


def log_determinant(x: cd.Space(), A: Matrix):
    return cd.logdet(x * (A.T @ A))


def determinant(A: Matrix, B: Matrix):
    return cd.det(A @ B.T)


def inverse_times(A: Matrix, x: Vector):
    return x @ cd.inv(A.T) @ A.T @ x


def adjugate(A: Matrix):
    return cd.log(cd.det(A)) + cd.det(A)


def powers(x: Vector):
    return cd.sum(lambda i: x[i] ** x[i] + x[i] ** 3 / x[i])
