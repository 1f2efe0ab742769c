"""Spellings of NumPy's users, of each function that is taken: the value is NumPy's, and so are, by its central
differences, slopes and Hessian-vector products; of complex numbers, too, where NumPy takes them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from backends import TORCH, convert, quiet

import combdiff as cd
from combdiff.tracing.numpy_protocol import HANDLERS, REFUSED

R = np.random.default_rng(0)
ARRAYS = {
    "x": R.normal(size=5),
    "y": R.normal(size=5),
    "A": R.normal(size=(3, 4)),
    "B": R.normal(size=(3, 4)),
    "S": R.normal(size=(4, 4)),
    "T": R.normal(size=(2, 3, 4)),
    "p": np.abs(R.normal(size=5)) + 0.5,
    "C": R.normal(size=(4, 2)),
    "v3": R.normal(size=3),
    "w3": R.normal(size=3),
    "x6": R.normal(size=6),
    "X2": R.normal(size=4) * 0.5,
}
SCOPE = {"np": np, "cd": cd, "xs": np.sort(R.normal(size=6)), "R2": R.normal(size=6)}

SPELLINGS = """
np.nan_to_num(x)
np.gradient(x)
np.gradient(x, 2.0)
np.gradient(A, axis=0)
np.gradient(A)[1]
np.gradient(x, axis=0, edge_order=2)
np.convolve(x, v3)
np.convolve(x, v3, 'same')
np.convolve(x, v3, mode='valid')
np.correlate(x, v3)
np.correlate(x, v3, 'full')
np.interp(x, xs, R2)
np.interp(X2, xs, x6)
np.vander(x)
np.vander(x, 3, increasing=True)
np.cov(A)
np.cov(A, rowvar=False, bias=True)
np.cov(x, y)
np.corrcoef(A)
np.corrcoef(x, y)
np.block([[A, B],[B, A]])
np.insert(x, 1, 3.0)
np.insert(A, 1, 2.0, axis=1)
np.delete(x, 1)
np.delete(A, [0,2], axis=1)
x.astype(float)
np.add.reduce(A)
np.add.reduce(A, axis=1)
np.multiply.reduce(x)
np.maximum.reduce(A, axis=1)
np.minimum.reduce(A)
np.logaddexp.reduce(x)
np.logaddexp.reduce(x, initial=0.5)
np.logaddexp.reduce(A, axis=1, where=A > 0, initial=-1.0)
np.add.reduce(A, where=A > 0)
np.multiply.reduce(A, axis=(0, 1), initial=2.0)
np.add.accumulate(x)
np.multiply.accumulate(x)
np.maximum.accumulate(x)
np.minimum.accumulate(A, axis=1)
np.logaddexp.accumulate(A)
np.hypot.accumulate(x)
np.multiply.outer(x, y)
np.add.outer(x, y)
np.subtract.outer(x, y)
np.hypot.outer(x,y)
np.roll(A, 1)
np.roll(A, (1,2), axis=(0,1))
np.roll(A, 1, axis=(0,1))
np.repeat(A,[1,2,1],axis=0)
np.unwrap(x)
np.polyval(v3, x)
np.polyadd(x, v3)
np.polysub(x,v3)
np.polymul(x, v3)
np.polyder(x)
np.polyint(x)
np.poly(x)
np.polyfit(x,y,2)
np.choose(np.array([0,1,0,1,1]), [x, y])
np.piecewise(x,[x<0,x>=0],[lambda t: t**2, lambda t: t**3])
np.piecewise(x,[x<0],[1.0, lambda t: t])
np.percentile(x, 30)
np.percentile(x,[10,50])
np.quantile(A, [.1,.5], axis=1)
np.nanmean(x)
np.nanmax(x)
np.nanmin(x)
np.nanvar(x)
np.nanstd(x)
np.nanprod(x)
np.nancumsum(x)
np.apply_along_axis(lambda r: (r**2).sum(), 1, A)
np.apply_over_axes(np.sum, T, [0,2])
np.meshgrid(x, v3)[0]
np.meshgrid(x, v3, indexing='ij')[1]
np.meshgrid(x, v3, sparse=True)[1]
np.einsum('ij,jk,kl->il',A,C,C.T, optimize=True)
np.outer(x,y)
np.outer(A,x)
np.linalg.norm(x,1)
np.linalg.norm(x,np.inf)
np.linalg.norm(x,-np.inf)
np.linalg.norm(x,3)
np.linalg.norm(A,1)
np.linalg.norm(A,np.inf)
np.linalg.norm(A,-1)
np.linalg.norm(A,-np.inf)
np.linalg.norm(A,2)
np.linalg.norm(A,-2)
np.linalg.norm(A,'nuc')
np.linalg.norm(A,'fro')
np.linalg.norm(T,axis=(0,1))
np.linalg.norm(T,'fro',axis=(1,2))
np.linalg.norm(T,1,axis=(0,2))
np.linalg.norm(A,3,axis=1)
np.linalg.norm(A,np.inf,axis=0,keepdims=True)
np.linalg.norm(T,2,axis=(0,2))
np.linalg.norm(x,0.5)
np.trace(S,offset=1)
np.trace(T,axis1=1,axis2=2)
S.trace(-1)
np.diagflat(x)
x % 2
np.mod(x, p)
np.fmod(x,2)
divmod(x,2)[1]
np.divmod(x,2)[1]
np.ravel(A,'F')
np.reshape(A,(4,3),order='F')
np.sort(A,axis=None)
np.compress([True,False,True],A,axis=0)
np.sum(A, where=A>0)
np.mean(A,where=A>0)
np.sum(A,initial=2.0)
np.max(x,initial=0.)
np.sum(x,dtype=float)
np.cumsum(x,dtype=float)
np.i0(x)
np.copysign(x,y)
np.ldexp(x,2)
np.modf(x)[0]
np.vecmat(v3,A)
np.matvec(A,S[0])
np.unstack(A)[1]
A.mT
np.linalg.vector_norm(x,ord=3)
np.linalg.matrix_norm(A,ord=1)
np.linalg.outer(x,y)
np.linalg.trace(S)
np.linalg.diagonal(S)
np.linalg.cross(v3,w3)
np.linalg.tensordot(A,C,axes=1)
np.linalg.matmul(A,C)
np.cumulative_sum(x)
np.cumulative_sum(x,include_initial=True)
np.cumulative_prod(x)
np.linalg.cond(S)
np.linalg.svd(A,compute_uv=False)
np.linalg.svdvals(A)
np.linalg.lstsq(S,S[0],rcond=None)[0]
np.linalg.tensorsolve(S,S[0])
np.linalg.tensorinv(np.reshape(S,(2,2,2,2)))
np.pad(x,(1,2),mode='edge')
np.pad(x,2,mode='reflect')
np.pad(x,2,mode='symmetric')
np.pad(x,2,mode='wrap')
np.dsplit(T,2)[0]
np.resize(x,7)
np.ediff1d(x)
np.diff(x,prepend=0.)
np.broadcast_arrays(A,A[0])[1]
np.lib.stride_tricks.sliding_window_view(x,3)
np.abs(A)
np.arccos(X2 / 3)
np.arccosh(p + 1)
np.max(A, axis=1)
np.min(A, axis=(0, 1))
np.angle(x)
np.append(x, y)
np.arange(3) * v3
np.arcsin(X2 / 3)
np.arcsinh(x)
np.arctan(x)
np.arctan2(x, p)
np.arctanh(X2 / 3)
np.take_along_axis(A, np.argmax(A, axis=1, keepdims=True), 1)
np.take_along_axis(A, np.argmin(A, axis=0, keepdims=True), 0)
np.take_along_axis(x, np.argsort(x), 0)
np.bincount([0, 2, 1, 0, 2], weights=x)
np.bincount(np.array([3, 0, 0, 1, 5]), x, minlength=8)
np.add.reduceat(x, [0, 1, 4])
np.add.reduceat(T, np.array([1, 3]), axis=-1)
np.array_split(x, 2)[1]
np.atleast_1d(x[0]) * x
np.atleast_2d(x)
np.atleast_3d(A)
np.average(A, axis=1, weights=p[:4])
np.average(A, axis=0)
np.where((x > 0) & (y < 1), x * y, x)
np.where((x > 0) | ~(y < 1), x * y, x)
np.where(np.bitwise_xor(x > 0, y < 1), x * y, x)
np.where(np.any(A > 0, axis=1, keepdims=True), A, A * A)
np.where(np.all(A > 0, axis=0), A, A * A)
np.where(np.allclose(x, x * 1), x, x * y)
np.broadcast_to(x, (2, 5))
np.cbrt(p)
np.ceil(x) * x
np.clip(x, -0.5, y)
np.column_stack([x, A[0, 0] * y])
np.concatenate([A, B], axis=1)
np.conj(x)
np.copy(x)
np.cos(x)
np.cosh(x)
np.cross(v3, w3)
np.cumprod(x)
np.cumprod(A, axis=1)
np.deg2rad(x)
np.diag(x)
np.diag(S, 1)
np.diagonal(S, offset=-1)
np.divide(x, p)
np.dot(A, S)
np.dot(v3, w3)
np.dstack([A, B])
np.empty_like(A).shape[0] * A
np.where(np.equal(np.arange(5), 2), x, y)
np.exp(x)
np.exp2(x)
np.expand_dims(A, (0, 2))
np.expm1(x)
np.eye(3) @ A
np.fabs(x)
np.flip(A, 1)
np.fliplr(A)
np.flipud(A)
np.float_power(p, y)
np.floor(x) * x
np.floor_divide(x, 0.3) * x
np.fmax(x, y)
np.fmin(x, y)
np.full((5,), 2.0) * x
np.full_like(x, 3.0) * x
np.where(np.greater(x, y), x, y * x)
np.where(np.greater_equal(x, y), x, y * x)
np.heaviside(x, 0.5) * x
np.hsplit(A, 2)[1]
np.hstack([A, B])
np.identity(4) @ S
np.imag(x) + x
np.inner(A, B)
np.where(np.isfinite(x), x * x, y)
np.where(np.isinf(x), x * x, y)
np.where(np.isposinf(x), x * x, y)
np.where(np.isneginf(x), x * x, y)
np.where(np.isreal(x), x * x, y)
np.where(np.iscomplex(x), x * x, y)
np.where(np.isnan(x), x, y * x)
np.where(np.isrealobj(x), x, y)
np.where(np.iscomplexobj(x), x, y)
np.kron(A, C)
np.where(np.less(x, y), x, y * x)
np.where(np.less_equal(x, y), x, y * x)
np.linalg.cholesky(S @ S.conj().T + np.eye(4))
np.linalg.det(S)
np.linalg.eigh(S @ S.conj().T)[0]
np.linalg.eigh(S @ S.conj().T, UPLO='U')[0]
np.abs(np.linalg.eigh(S @ S.conj().T)[1])
np.linalg.eigvalsh(S @ S.conj().T)
np.linalg.inv(S)
np.linalg.matrix_power(S, 3)
np.linalg.matrix_power(S, -2)
np.linalg.matrix_transpose(T)
np.linalg.multi_dot([A, C, C.T, S])
np.linalg.pinv(A)
np.linalg.pinv(C)
np.linalg.qr(C)[1]
np.linalg.qr(C)[0]
np.linalg.slogdet(S)[1]
np.linalg.solve(S, C)
np.linalg.solve(S, A[0])
np.linalg.vecdot(A, B)
np.linspace(0, 1, 5) * x
np.logspace(x[0], 1, 3, base=2)
np.geomspace(1 + x[0] ** 2, 3, 4, endpoint=False)
np.astype(x, float) * y
np.log(p)
np.log10(p)
np.log1p(p)
np.log2(p)
np.logaddexp(x, y)
np.logaddexp2(x, y)
np.where(np.logical_and(x > 0, y < 1), x * y, x)
np.where(np.logical_or(x > 0, y < 1), x * y, x)
np.where(np.logical_xor(x > 0, y < 1), x * y, x)
np.where(np.logical_not(x > 0), x * y, x)
np.matmul(T, C)
np.median(x)
np.median(A, axis=0)
np.moveaxis(T, 0, -1)
np.maximum(x, y)
np.minimum(x, y)
np.nancumprod(x)
np.nansum(A, axis=0)
np.ndim(A) * A
np.negative(x)
np.where(np.not_equal(np.arange(5), 2), x, y)
np.ones((5,)) * x
np.ones_like(A) * A
np.permute_dims(T, (2, 0, 1))
np.positive(x)
np.power(p, y)
np.power(x, 3)
np.prod(A, axis=1)
np.prod(x)
np.ptp(A, axis=0)
np.rad2deg(x)
np.real(x)
np.real_if_close(x)
np.reciprocal(p)
np.rollaxis(T, 2)
np.fft.fft(x)
np.fft.fft(x, 3)
np.fft.fft(x6, 9, norm='ortho')
np.fft.fft(T, axis=1, norm='forward')
np.fft.ifft(A)
np.fft.ifft(x, n=8, norm='forward')
np.fft.rfft(x)
np.fft.rfft(T, 5, axis=0)
np.fft.rfft(x6)[1:-1]
np.fft.irfft(x)
np.fft.irfft(np.fft.rfft(x), 5)
np.fft.irfft(T, 4, axis=1)
np.fft.irfft(x, 20, norm='ortho')
np.fft.hfft(x, norm='ortho')
np.fft.hfft(A, 3, axis=0)
np.fft.ihfft(x6, 7)
np.fft.ihfft(A, axis=0, norm='forward')
np.fft.fft2(A)
np.fft.fft2(T, (2, 6), axes=(0, -1))
np.fft.ifft2(T, norm='ortho')
np.fft.rfft2(T)
np.fft.irfft2(A, (4, 5))
np.fft.fftn(T)
np.fft.fftn(T, axes=(2, 0))
np.fft.ifftn(T, (3, 2), axes=(0, 1))
np.fft.rfftn(T, axes=(0, 1))
np.fft.irfftn(T, norm='forward')
np.fft.ifft(np.fft.fft(x) * np.fft.fft(y)).real
np.fft.fftshift(np.fft.fft(x))
np.fft.fftshift(x)
np.fft.fftshift(T)
np.fft.ifftshift(T, (0, 1))
np.fft.ifftshift(x, axes=-1)
np.rot90(A)
np.select([x > 0, y > 0], [x * y, y], x)
np.shape(A)[0] * A
np.sign(x) * x
np.where(np.signbit(x), x * x, x)
np.sin(x)
np.sinc(x)
np.sinh(x)
np.size(A) * A
np.split(A, 2, axis=1)[0]
np.sqrt(p)
np.square(x)
np.squeeze(A[:, None])
np.stack([A, B], axis=-1)
np.std(A, axis=0)
np.std(x, ddof=1)
np.var(A, axis=1, keepdims=True)
np.swapaxes(T, 0, 2)
np.take(A, [0, 2], axis=1)
np.tan(X2)
np.tanh(x)
np.tensordot(T, B, axes=[[1, 2], [0, 1]])
np.tile(A, (2, 1))
np.transpose(T, (1, 2, 0))
np.trapezoid(A, axis=1)
np.trapezoid(x, y)
np.tri(4) * S
np.tril(S, -1)
np.triu(A)
np.true_divide(x, p)
np.trunc(x) * x
np.vdot(A, B)
np.vecdot(A, B)
np.vsplit(A, 3)[1]
np.vstack([A, B])
np.zeros((5,)) + x
np.zeros_like(A) + A
np.sum(A, axis=0)
np.mean(A, axis=1)
np.cumsum(A, axis=1)
np.diff(A, axis=1)
np.argmax(x) * x
np.argmin(x) * x
np.argsort(x) * x
np.angle(x + 1) * x
np.sort(x)
np.hypot(x, y)
np.mod(x, 2) * x
np.linalg.cross(A[:, :3], A[:, 1:])
np.amax(A, axis=0)
np.amin(A, axis=1)
np.where(np.bitwise_and(x > 0, y < 1), x * y, x)
np.where(np.bitwise_or(x > 0, np.invert(y < 1)), x * y, x)
np.degrees(x)
np.radians(x)
np.matrix_transpose(T)
""".strip().split("\n")

FLAT = """
np.count_nonzero(x > 0)
np.round(x)
np.around(x, 1)
x.round(2)
np.rint(x)
np.fix(x)
x.astype(int)
x // 2
np.isclose(x,y)
""".strip().split("\n")  # constant between jumps


def _names(spelling: str) -> list[str]:
    return [name for name in ARRAYS if re.search(rf"(?<![\w.'\"]){name}(?![\w'\"=])", spelling)]


def _all_names(spellings: list[str]) -> list[str]:
    return sorted({name for spelling in spellings for name in _names(spelling)})


def _way(array: Any) -> Any:
    way = np.sin(np.arange(array.size) + 1).reshape(array.shape)
    return way + 1j * np.cos(2 * way) if np.iscomplexobj(array) else way


def _all_of(spellings: list[str], weights: list[Any], arrays: dict[str, Any]) -> Any:
    """Σ w·part·(1 + part) over all parts of all spellings, so that what is linear has second derivatives, too."""
    pairs = [
        (w, part)
        for spelling, some in zip(spellings, weights, strict=True)
        for w, part in zip(some, _evaluated(spelling, arrays), strict=True)
    ]
    return sum((w * part * (1 + part)).sum() if np.ndim(w) else w * part * (1 + part) for w, part in pairs)


def _weighed(spellings: list[str], weights: list[Any], arrays: dict[str, Any]) -> Any:
    """The real part where weights are complex."""
    found = _all_of(spellings, weights, arrays)
    is_complex = any(np.iscomplexobj(w) for some in weights for w in some)
    return found.real if is_complex else found


def _evaluated(spelling: str, arrays: dict[str, Any]) -> Any:
    found = eval(spelling, {**SCOPE, **arrays})
    return found if isinstance(found, tuple) else (found,)


def _program(spellings: list[str], weights: list[Any], dtype: type = float) -> cd.Program:
    """The weighed sum of spellings."""
    names = _all_names(spellings)
    listed = ", ".join(names)

    def total(arrays: dict[str, Any]) -> Any:
        return _weighed(spellings, weights, arrays)

    scope: dict[str, Any] = {"total": total}
    exec(f"def f({listed}):\n    return total(dict({', '.join(f'{n}={n}' for n in names)}))", scope)
    scope["f"].__annotations__ = {name: cd.Space(*ARRAYS[name].shape, dtype=dtype) for name in names}
    return cd.program(scope["f"])


def _weights(spelling: str, arrays: dict[str, Any] = ARRAYS) -> list[Any]:
    """Numbers for each element of each part; complex ones for what is complex."""
    parts = _evaluated(spelling, arrays)
    turns = [np.exp(0.4j) if np.iscomplexobj(part) else 1 for part in parts]
    return [
        turn * np.cos(np.arange(np.size(part)).reshape(np.shape(part)) + 1)
        for turn, part in zip(turns, parts, strict=True)
    ]


def _check_derivatives(group: list[str], weights: list[Any], given: dict[str, Any]) -> None:
    """Value, gradient and Hessian-vector product along a way, against NumPy and central differences."""
    names = _all_names(group)
    arrays = {name: given[name] for name in names}
    ways = {name: _way(array) for name, array in arrays.items()}
    f = _program(group, weights, complex if any(map(np.iscomplexobj, arrays.values())) else float)
    gradient, product = (transform(f, tuple(names), simplify=False) for transform in (cd.grad, cd.hvp))

    def at(step: float) -> dict[str, Any]:
        return {name: arrays[name] + step * ways[name] for name in names}

    with np.errstate(all="ignore"):
        value, *sides = (_weighed(group, weights, at(step)) for step in (0, 1e-6, -1e-6))
        assert f(**arrays) == pytest.approx(value, rel=1e-9)
        slope = sum(np.sum(np.conj(ways[name]) * part) for name, part in zip(names, gradient(**arrays), strict=True))
        assert slope.real == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-6)
        above, below = (gradient(**at(step)) for step in (1e-6, -1e-6))
        for part, *two in zip(product(*arrays.values(), *ways.values()), above, below, strict=True):
            expected = (two[0] - two[1]) / 2e-6
            np.testing.assert_allclose(part, expected, rtol=1e-4, atol=1e-5 * max(1, np.abs(expected).max()))


def _by_twelve(spellings: list[str]) -> list[list[str]]:
    return [spellings[n : n + 12] for n in range(0, len(spellings), 12)]


GROUPS = _by_twelve(SPELLINGS)


@pytest.mark.sample(1)
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_value_slopes_and_hessians_are_numpys(group: list[str]) -> None:
    _check_derivatives(group, [_weights(spelling) for spelling in group], ARRAYS)


COMPLEX = {
    name: array + 0.5j * np.cos(3 + np.arange(array.size)).reshape(array.shape) for name, array in ARRAYS.items()
}


def _is_refused_of_complex(spelling: str) -> bool:
    """Whether NumPy takes no complex numbers, or a program refuses to order them or to leave out a part of them."""
    try:
        weights = _weights(spelling, COMPLEX)
    except (TypeError, ValueError):
        return True
    try:
        _program([spelling], [weights], complex)
    except cd.CombdiffError as error:
        return bool(re.search("no order|takes real|imaginary parts", str(error)))
    return False


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.thorough
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_what_numpy_takes_of_complex_numbers_is_taken(group: list[str]) -> None:
    taken = [spelling for spelling in group if not _is_refused_of_complex(spelling)]
    if taken:
        turned = [[part * np.exp(0.4j) for part in _weights(spelling, COMPLEX)] for spelling in taken]
        _check_derivatives(taken, turned, COMPLEX)


def test_each_function_that_is_not_taken_says_why_in_its_own_words() -> None:
    """Those that NumPy hands over to the values they are called with; attributes of arrays, too."""
    places = [getattr(module, name) for module in (np, np.linalg, np.fft) for name in dir(module)]
    handed = [f for f in places if isinstance(f, np.ufunc) or hasattr(f, "_implementation")]
    assert len(handed) > 300
    assert [f.__name__ for f in handed if f not in HANDLERS and f not in REFUSED] == []
    said = [str(error) for name in dir(np.ndarray) if not name.startswith("_") and (error := _refused(name))]
    assert len(said) > 25
    assert [text for text in said if "write it with cd functions" in text] == []


def _refused(attribute: str) -> cd.UnsupportedError | None:
    """What a program says that reads an attribute of a tensor; None where it has one."""

    def f(x: cd.Space(3, 3)):
        getattr(x, attribute)
        return x

    try:
        cd.program(f)
    except cd.UnsupportedError as error:
        return error
    return None


def test_each_function_that_is_taken_is_spelled() -> None:
    spelled = set()
    for path in re.findall(r"np\.((?:linalg\.|fft\.|lib\.stride_tricks\.)?\w+)", "\n".join([*SPELLINGS, *FLAT])):
        function: Any = np
        for name in path.split("."):
            function = getattr(function, name)
        spelled.add(function)
    left = {function for function in HANDLERS if callable(function)} - spelled
    names = {
        f.__name__ for f in left if any(getattr(place, f.__name__, None) is f for place in (np, np.linalg, np.fft))
    }
    assert names == {"asarray"}  # which NumPy does not ask for


@pytest.mark.sample(1)
@pytest.mark.parametrize("library", [TORCH, "dask"])
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_values_on_other_libraries_are_numpys(group: list[str], library: str) -> None:
    weights = [_weights(spelling) for spelling in group]
    arrays = [convert(library, ARRAYS[name]) for name in _all_names(group)]
    with quiet(library):
        found = np.asarray(_program(group, weights)(*arrays))
    assert found == pytest.approx(_weighed(group, weights, ARRAYS), rel=1e-9)


def test_what_is_constant_between_jumps_has_the_derivative_0() -> None:
    weights = [_weights(spelling) for spelling in FLAT]
    f = _program(FLAT, weights)
    names = _all_names(FLAT)
    arrays = {name: ARRAYS[name] for name in names}
    assert f(**arrays) == pytest.approx(_weighed(FLAT, weights, ARRAYS))
    assert not any(np.any(part) for part in cd.grad(f, tuple(names))(**arrays))


@pytest.mark.parametrize("function", [f for f in REFUSED if callable(f)], ids=lambda f: f.__name__)
def test_what_is_refused_says_why_and_what_to_write(function: Any) -> None:
    assert function not in HANDLERS
    assert all(REFUSED[function])


def test_a_refusal_is_a_sentence_of_its_own() -> None:
    for spelling, reason in (
        ("np.unique(x)", "depends on the values"),
        ("np.linalg.eigvals(S)", "not symmetric"),
        ("x.tolist()", "Python's numbers"),
        ("np.searchsorted(x, y)", "jumps with the values"),
        ("np.exp(x, where=x > 0)", "undefined"),
    ):
        with pytest.raises(cd.CombdiffError, match=reason):
            _program([spelling], [[1]])


def test_slogdet_has_numpys_names_and_copies_are_the_tensor() -> None:
    @cd.program
    def f(A: cd.Space(3, 3)):
        return np.linalg.slogdet(A).logabsdet * np.linalg.slogdet(A).sign + np.copy(A).sum()

    A = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(f(A), np.prod(np.linalg.slogdet(A)) + A.sum())


def test_numbers_side_by_side_are_picked_out_by_sums() -> None:
    """A matrix of numbers is made of δ's: what is multiplied by it has no sums over ranges of one."""

    @cd.program
    def turned(a: cd.Space(), x: cd.Space(2), y: cd.Space(2)):
        return x @ np.block([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) @ y

    gradient = cd.grad(turned, "a")
    assert "Σ" not in str(gradient)
    assert "δ" not in str(gradient)
    x, y = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    assert gradient(0.0, x, y) == pytest.approx(x[1] * y[0] - x[0] * y[1])
    cd.testing.check_grad(turned, "a", a=0.3, x=x, y=y)
