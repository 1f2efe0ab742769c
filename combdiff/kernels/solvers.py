"""The solvers that emitted source carries with it: roots, minima and linear systems, from values and Jacobians.

    _search("root", "x", lambda x: (x**2 - 2, 2 * x), 1.0, float)     = 1.41421356…
    _solve("k", lambda k: (2 * k, 2.0), 3.0, 0, float)                = 1.5

Newton's method: SciPy brings the search near (`root` by Powell's hybrid method, `minimize` by trust regions), plain
steps finish it to the last digit, and what they tell about the solution is checked. A complex unknown counts as a pair
of real ones, since equations need not be holomorphic.

Other libraries have their arrays solved for with NumPy: `_on_host` brings them there and the solution back, without
taking part in a derivative of the library's own.

Invariant: what is returned solves the equation and is isolated; all else raises ArithmeticError with the residual.
"""

from __future__ import annotations

SYSTEM = '''\
def _system(name, system, shape, dtype, captures):
    """An equation in real numbers: arrays to vectors and back, the equation with its Jacobian, and a checked step.

    system(x, *captures) gives the equation and its Jacobian, by x and by conj(x) if dtype is complex; for a minimum
    the objective comes before its gradient and Hessian.
    """
    twice, size = np.dtype(dtype).kind == "c", int(np.prod(shape))

    def packed(z):
        flat = np.reshape(z, (*np.shape(z)[: np.ndim(z) - len(shape)], size))
        return np.concatenate([flat.real, flat.imag], -1).astype(float) if twice else flat.astype(float)

    def unpacked(v):
        parts = v[..., :size] + 1j * v[..., size:] if twice else v
        return parts.reshape((*v.shape[:-1], *shape)).astype(dtype)[()]

    def evaluated(v):
        with np.errstate(all="ignore"):
            z = v[:size] + 1j * v[size:] if twice else v
            parts = system(z.reshape(shape)[()], *captures)
        *objective, equation = parts[: -1 - twice]
        blocks = [np.reshape(block, (size, size)) for block in parts[-1 - twice :]]
        if twice:
            along, turned = blocks[0] + blocks[1], 1j * (blocks[0] - blocks[1])
            blocks = [np.block([[along.real, turned.real], [along.imag, turned.imag]])]
        return (*objective, packed(equation), blocks[0].astype(float))

    def step(matrix, right, where):
        condition = np.linalg.cond(matrix, 1) if np.all(np.isfinite(matrix)) else np.nan
        if not condition < 1e14:
            raise ArithmeticError(f"the Jacobian of the equation for {name} is singular{where}")
        return np.linalg.solve(matrix, right), condition

    return packed, unpacked, evaluated, step
'''

SOLVE = '''\
def _solve(name, system, given, order, dtype, *captures):
    """The k with H(k) = given for a linear map H; axes of given before the last `order` are systems of their own."""
    shape = np.shape(given)[np.ndim(given) - order :]
    packed, unpacked, evaluated, step = _system(name, system, shape, dtype, captures)
    right = packed(given)
    if not right.size:
        return np.zeros(np.shape(given), dtype)
    matrix = evaluated(np.zeros(right.shape[-1]))[-1]
    return unpacked(step(matrix, right.reshape(-1, right.shape[-1]).T, "")[0].T.reshape(right.shape))
'''

SEARCH = '''\
def _search(kind, name, system, given, dtype, *captures):
    """The root of an equation ("root") or the local minimum of an objective ("argmin") that is found from `given`."""
    packed, unpacked, evaluated, step = _system(name, system, np.shape(given), dtype, captures)
    v = _near(kind, evaluated, packed(given)) if np.size(given) else packed(given)
    before = np.inf
    for _ in range(10 * bool(v.size)):
        *_, residual, matrix = evaluated(v)
        found = f"the residual is {np.max(np.abs(residual)):.3g} (its largest entry) at {name} = {unpacked(v)}"
        move, condition = step(matrix, residual, f"; {found}")
        v = v - move
        size = np.max(np.abs(move)) / max(1.0, np.max(np.abs(v)))
        stalled = 0.8 * before < size < 1e-6  # rounding errors are left; near a multiple root steps shrink by half
        if size <= max(1e-12, 1e3 * np.finfo(float).eps * condition) or stalled:
            break
        before = size
    else:
        if v.size:
            raise ArithmeticError(f"no {'root' if kind == 'root' else 'minimum'} was found for {name}: {found}")
    if kind == "argmin" and v.size and not np.linalg.eigvalsh(matrix)[0] > 0:
        raise ArithmeticError(f"the gradient vanishes where there is no minimum: {found}")
    return unpacked(v)
'''

NEAR = '''\
def _near(kind, evaluated, start):
    """A point near a root or minimum, by SciPy."""
    from scipy import optimize

    known = {}

    def at(v):
        key = v.tobytes()
        if key not in known:
            known.clear()
            known[key] = evaluated(v)
        return known[key]

    with np.errstate(all="ignore"):
        if kind == "root":
            found = optimize.root(lambda v: at(v)[0], start, jac=lambda v: at(v)[1], method="hybr", tol=1e-13)
        else:
            found = optimize.minimize(
                lambda v: float(np.real(at(v)[0])),
                start,
                jac=lambda v: at(v)[1],
                hess=lambda v: at(v)[2],
                method="trust-exact",
                options={"gtol": 1e-9},
            )
    return found.x
'''

SOLVERS = {"_system": SYSTEM, "_solve": SOLVE, "_near": NEAR, "_search": SEARCH}

TORCH_HOST = '''\
def _on_host(solver, given, dtype, *captures):
    """A solution that NumPy finds for tensors, as a tensor of that type on their device."""
    tensors = [value for value in (given, *captures) if torch.is_tensor(value)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise NotImplementedError("an equation is solved with NumPy, which PyTorch does not differentiate")
    arrays = [
        value.detach().resolve_conj().resolve_neg().cpu().numpy() if torch.is_tensor(value) else value
        for value in (given, *captures)
    ]
    found = np.asarray(solver(arrays[0], np.dtype(str(dtype).removeprefix("torch.")), *arrays[1:]))
    return torch.as_tensor(found, dtype=dtype, device=tensors[0].device if tensors else None)
'''

JAX_HOST = '''\
def _on_host(solver, given, dtype, *captures):
    """A solution that NumPy finds for arrays, by a callback where they are traced, as an array of that type."""
    from jax import ShapeDtypeStruct, core, pure_callback

    def found(given, *captures):
        solution = solver(np.asarray(given), np.dtype(dtype), *[np.asarray(value) for value in captures])
        return np.asarray(solution, dtype)

    if any(isinstance(value, core.Tracer) for value in (given, *captures)):
        result = ShapeDtypeStruct(jnp.shape(given), dtype)
        return pure_callback(found, result, given, *captures, vmap_method="sequential")
    return jnp.asarray(found(given, *captures))
'''

DASK_HOST = '''\
def _on_host(solver, given, dtype, *captures):
    """A solution that NumPy finds for arrays, each as one chunk, when it is computed."""
    from dask import delayed

    def found(given, *captures):
        return np.asarray(solver(np.asarray(given), np.dtype(dtype), *captures), dtype)

    return da.from_delayed(delayed(found)(given, *captures), np.shape(given), np.dtype(dtype))
'''

CUPY_HOST = '''\
def _on_host(solver, given, dtype, *captures):
    """A solution that NumPy finds for arrays, which come from the GPU and go back to it."""
    found = solver(cp.asnumpy(given), np.dtype(dtype), *[cp.asnumpy(value) for value in captures])
    return cp.asarray(found, dtype)
'''
