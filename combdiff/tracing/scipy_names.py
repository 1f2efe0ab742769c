"""Functions of numbers alone, of SciPy's and of NumPy's polynomials, and what a program writes in place of each.

    scipy.linalg.coshm(A)     asks A for its numbers; refused: write (cd.expm(A) + cd.expm(-A)) / 2

Invariant: what is written in place of a function gives its values; tests run all that are formulas.
"""

from __future__ import annotations

from types import FrameType

# What functions of scipy.special are made of, by the names that they give their arguments.
SPELLED = {
    "binom": "np.exp(-cd.betaln(n - k + 1, k + 1)) / (n + 1)",
    "boxcox": "np.expm1(l * np.log(x)) / l",
    "boxcox1p": "np.expm1(l * np.log1p(x)) / l",
    "comb": "np.exp(-cd.betaln(n - k + 1, k + 1)) / (n + 1)",
    "cosdg": "np.cos(np.deg2rad(x))",
    "cosm1": "-2 * np.sin(x / 2) ** 2",
    "erfcinv": "cd.erfinv(1 - x)",
    "exp10": "10**x",
    "exprel": "np.expm1(x) / x",
    "factorial": "cd.gamma(n + 1)",
    "gammasgn": "np.sign(cd.gamma(x))",
    "huber": "np.where(np.abs(r) <= d, r**2 / 2, d * (np.abs(r) - d / 2))",
    "inv_boxcox": "np.exp(np.log1p(l * y) / l)",
    "loggamma": "cd.gammaln(x), where x > 0",
    "poch": "np.exp(cd.gammaln(z + m) - cd.gammaln(z))",
    "pseudo_huber": "d**2 * (np.sqrt(1 + (r / d) ** 2) - 1)",
    "powm1": "np.expm1(y * np.log(x))",
    "rgamma": "1 / cd.gamma(x)",
    "round": "np.round(x)",
    "sindg": "np.sin(np.deg2rad(x))",
    "tandg": "np.tan(np.deg2rad(x))",
}
# Derivatives of f(a, b, …, x) by x, of what a rule file may add (Digital Library of Mathematical Functions, 6 to 25).
DERIVED = {
    "betainc": "x**(a - 1) * (1 - x) ** (b - 1) / beta(a, b)",
    "dawsn": "1 - 2 * x * dawsn(x)",
    "ellipe": "(ellipe(x) - ellipk(x)) / (2 * x)",
    "ellipk": "(ellipe(x) / (1 - x) - ellipk(x)) / (2 * x)",
    "erfi": "2 * exp(x**2) / sqrt(pi)",
    "eval_chebyt": "a * eval_chebyu(a - 1, x)",
    "eval_laguerre": "-eval_genlaguerre(a - 1, 1, x)",
    "eval_legendre": "a * (x * eval_legendre(a, x) - eval_legendre(a - 1, x)) / (x**2 - 1)",
    "exp1": "-exp(-x) / x",
    "expi": "exp(x) / x",
    "expn": "-expn(a - 1, x)",
    "gammainc": "x**(a - 1) * exp(-x) / gamma(a)",
    "gammaincc": "-(x ** (a - 1)) * exp(-x) / gamma(a)",
    "gammaincinv": "gamma(a) * exp(gammaincinv(a, x)) * gammaincinv(a, x) ** (1 - a)",
    "hyp0f1": "hyp0f1(a + 1, x) / a",
    "hyp1f1": "a / b * hyp1f1(a + 1, b + 1, x)",
    "hyp2f1": "a * b / c * hyp2f1(a + 1, b + 1, c + 1, x)",
    "k0": "-k1(x)",
    "k1": "-k0(x) - k1(x) / x",
    "kn": "-(kn(a - 1, x) + kn(a + 1, x)) / 2",
    "kv": "-(kv(a - 1, x) + kv(a + 1, x)) / 2",
    "kve": "kve(a, x) - (kve(a - 1, x) + kve(a + 1, x)) / 2",
    "spence": "log(x) / (1 - x)",
    "wrightomega": "wrightomega(x) / (1 + wrightomega(x))",
    "y0": "-y1(x)",
    "y1": "y0(x) - y1(x) / x",
    "yn": "(yn(a - 1, x) - yn(a + 1, x)) / 2",
    "yv": "(yv(a - 1, x) - yv(a + 1, x)) / 2",
    "zeta": "-a * zeta(a + 1, x)",
}
_SPECIAL = {f"special.{name}": text for name, text in SPELLED.items()} | {
    f"special.{name}": f"a rule file adds it by its derivative by the last argument x, {text}: rules/README.md"
    for name, text in DERIVED.items()
}
# What functions of scipy.linalg are made of, by the names that they give their arguments; n is the size of a matrix.
LINALG = {
    "cosm": "cd.expm(1j * A).real",
    "coshm": "(cd.expm(A) + cd.expm(-A)) / 2",
    "expm": "cd.expm(A)",
    "cho_factor": "np.linalg.cholesky(A)",
    "circulant": "c[(np.arange(n)[:, None] - np.arange(n)) % n]",
    "dft": "np.exp(-2j * np.pi / n * np.outer(np.arange(n), np.arange(n)))",
    "diagsvd": "np.diag(s)",
    "eigvalsh": "np.linalg.eigvalsh(A)",
    "fiedler": "abs(c[:, None] - c)",
    "hankel": "cd.tensor(lambda i, j: cd.where(i + j < n, c[i + j], 0), i=n, j=n)",
    "inv": "np.linalg.inv(A)",
    "det": "np.linalg.det(A)",
    "norm": "np.linalg.norm(A)",
    "orthogonal_procrustes": "(lambda u, s, vh: u @ vh)(*np.linalg.svd(A.T @ B))",
    "pinv": "np.linalg.pinv(A)",
    "pinvh": "np.linalg.pinv(A)",
    "polar": "(lambda u, s, vh: (u @ vh, vh.T @ np.diag(s) @ vh))(*np.linalg.svd(A, full_matrices=False))",
    "signm": "A @ np.linalg.inv(cd.sqrtm(A @ A))",
    "sinhm": "(cd.expm(A) - cd.expm(-A)) / 2",
    "sinm": "cd.expm(1j * A).imag",
    "solve": "np.linalg.solve(A, b)",
    "solve_continuous_lyapunov": (
        "np.linalg.solve(np.kron(A, np.eye(n)) + np.kron(np.eye(n), A), Q.ravel()).reshape(n, n)"
    ),
    "solve_discrete_lyapunov": "np.linalg.solve(np.eye(n * n) - np.kron(A, A), Q.ravel()).reshape(n, n)",
    "solve_sylvester": "np.linalg.solve(np.kron(A, np.eye(n)) + np.kron(np.eye(n), B.T), Q.ravel()).reshape(n, n)",
    "solve_triangular": "np.linalg.solve(L, b)",
    "cho_solve": "np.linalg.solve(L.T, np.linalg.solve(L, b))",
    "sqrtm": "cd.sqrtm(A)",
    "svdvals": "np.linalg.svd(A, compute_uv=False)",
    "tanhm": "np.linalg.solve(cd.expm(A) + cd.expm(-A), cd.expm(A) - cd.expm(-A))",
    "tanm": "np.linalg.solve(cd.expm(1j * A).real, cd.expm(1j * A).imag)",
    "toeplitz": "c[abs(np.arange(n)[:, None] - np.arange(n))]",
}
_BY_EIGENVALUES = "V @ np.diag({}) @ V.T with w, V = np.linalg.eigh(A), for a symmetric matrix"
_NOT_UNIQUE = "it is not unique, and has no derivative: np.linalg.cholesky, qr, eigh and svd are there"
_BANDED = "write the matrix, cd.tensor(lambda i, j: cd.where(i == j, d[i], 0)), for np.linalg.solve, cholesky or eigh"
_ASKED = "it is a question about numbers, which is to be asked outside"
_MADE = "make it outside: its elements are known before the program is given any"
_BY_QR = "np.linalg.qr of the matrix as it is then"
_LINALG = {
    **{f"linalg.{name}": text for name, text in LINALG.items()},
    **{f"linalg.{name}": f"np.linalg.{name}" for name in ("cholesky", "eigh", "lstsq", "qr", "svd")},
    "linalg.funm": _BY_EIGENVALUES.format("f(w)"),
    "linalg.logm": _BY_EIGENVALUES.format("np.log(w)"),
    "linalg.fractional_matrix_power": _BY_EIGENVALUES.format("w**p"),
    "linalg.expm_frechet": "cd.pushforward of a program with cd.expm",
    **dict.fromkeys(
        ("linalg.eig", "linalg.eigvals"),
        "np.linalg.eigh of symmetric matrices; those of others are complex, and collide",
    ),
    **dict.fromkeys(
        ("linalg.lu", "linalg.lu_factor", "linalg.lu_solve"),
        "np.linalg.solve and np.linalg.slogdet, for which a plan has it",
    ),
    **dict.fromkeys(
        ("linalg.solve_continuous_are", "linalg.solve_discrete_are"), "cd.root of what is 0 for the solution"
    ),
    **dict.fromkeys(
        ("linalg.null_space", "linalg.orth"),
        "the vectors of np.linalg.svd(A): how many there are would depend on the numbers",
    ),
    "linalg.block_diag": "np.block([[A, np.zeros((2, 3))], [np.zeros((3, 2)), B]])",
    "linalg.companion": "cd.tensor(lambda i, j: cd.where(i == 0, -a[j + 1] / a[0], i == j + 1), i=n, j=n)",
    "linalg.khatri_rao": "cd.tensor(lambda i, j, k: A[i, k] * B[j, k]), and np.reshape",
    "linalg.leslie": "cd.tensor(lambda i, j: cd.where(i == 0, f[j], cd.where(i == j + 1, s[j], 0)), i=n, j=n)",
    "linalg.rq": "Q, R of np.linalg.qr(A[::-1].T), as R.T[::-1, ::-1] and Q.T[::-1]",
    "linalg.subspace_angles": "np.arccos(np.linalg.svd(P.T @ Q, compute_uv=False)), P and Q from np.linalg.qr",
    **{
        f"linalg.{name}": text
        for text, names in {
            _NOT_UNIQUE: (
                "cdf2rdf",
                "cossin",
                "hessenberg",
                "ldl",
                "matrix_balance",
                "ordqz",
                "qz",
                "rsf2csf",
                "schur",
            ),
            _BANDED: (
                *("cho_solve_banded", "cholesky_banded", "eig_banded", "eigh_tridiagonal", "eigvals_banded"),
                *("eigvalsh_tridiagonal", "solve_banded", "solveh_banded"),
            ),
            _ASKED: ("bandwidth", "expm_cond", "find_best_blas_type", "getter", "ishermitian", "issymmetric"),
            _MADE: ("hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"),
            _BY_QR: ("qr_delete", "qr_insert", "qr_multiply", "qr_update"),
        }.items()
        for name in names
    },
}
# What to write for SciPy's functions that are not taken; for those of a module without one, its own.
_FOR_SCIPY = {
    **{f"special.{name}": f"cd.{name}" for name in ("logsumexp", "softmax", "polygamma")},
    "special.log_softmax": "x - cd.logsumexp(x)",
    "special.multigammaln": "the sum of cd.gammaln(a - j / 2) over j < d, plus d (d - 1) / 4 log π",
    "special.lambertw": "cd.root(lambda w: w * np.exp(w) - x, np.log1p(x)), where x ≥ 0",
    **{
        f"special.{name}": "it has several results: compute those at given points outside, or np.interp between them"
        for name in ("airy", "airye", "ellipj", "fresnel", "kelvin", "shichi", "sici")
    },
    **_LINALG,
    "signal.convolve2d": "cd.tensor(lambda i, j: cd.sum(lambda k, l: x[i + k, j + l] * w[k, l]))",
    **_SPECIAL,
    "special": "the function of cd or NumPy, or a rule file with a ufunc of scipy.special and its derivative",
    "linalg": "np.linalg has others",
    "signal": "np.convolve and np.correlate, or cd.sum over the shifts",
    "stats": "write out the density: scipy.special has its functions, xlogy, gammaln, ndtr, …",
}

_OF_POLYNOMIALS = (
    "np.polyval(c[::-1], x) for powers; else the basis at known points, np.polynomial.chebyshev.chebvander(x, 3) @ c"
)
_LIBRARIES = ("scipy", "numpy", __name__.partition(".")[0])


def numbers_function(frame: FrameType | None) -> tuple[str, str] | None:
    """The function of numbers alone in which a frame runs, and what to write in its place; None where there is none."""
    found = None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        path, name = frame.f_globals["__name__"].split("."), frame.f_code.co_name
        if path[:3] == ["scipy", "_lib", "_util"] and "f" in frame.f_locals:  # a function that is made to take stacks
            wrapped = frame.f_locals["f"]
            path, name = wrapped.__module__.split("."), wrapped.__name__
        if not name.startswith(("_", "<")) and path[1:2] and path[1] in _FOR_SCIPY:
            found = f"scipy.{path[1]}.{name}", in_place_of(f"{path[1]}.{name}")
        elif not name.startswith(("_", "<")) and path[:2] == ["numpy", "polynomial"]:
            found = f"{'.'.join(path)}.{name}", _OF_POLYNOMIALS
        frame = frame.f_back
    return found


def in_place_of(name: str) -> str:
    """What to write in place of a function of SciPy's, as `special.zeta`."""
    return _FOR_SCIPY.get(name) or _FOR_SCIPY.get(name.partition(".")[0], "compute it outside")
