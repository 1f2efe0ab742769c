"""Spellings of NumPy's users: the value is NumPy's, and so are the slopes, by its central differences."""

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
    return np.sin(np.arange(array.size) + 1).reshape(array.shape)


def _weighed(spellings: list[str], weights: list[Any], arrays: dict[str, Any]) -> Any:
    """Σ w·part over all parts of all spellings."""
    return sum(
        (w * part).sum() if np.ndim(w) else w * part
        for spelling, some in zip(spellings, weights, strict=True)
        for w, part in zip(some, _evaluated(spelling, arrays), strict=True)
    )


def _evaluated(spelling: str, arrays: dict[str, Any]) -> Any:
    found = eval(spelling, {**SCOPE, **arrays})
    return found if isinstance(found, tuple) else (found,)


def _program(spellings: list[str], weights: list[Any]) -> cd.Program:
    """The weighed sum of spellings."""
    names = _all_names(spellings)
    listed = ", ".join(names)

    def total(arrays: dict[str, Any]) -> Any:
        return _weighed(spellings, weights, arrays)

    scope: dict[str, Any] = {"total": total}
    exec(f"def f({listed}):\n    return total(dict({', '.join(f'{n}={n}' for n in names)}))", scope)
    scope["f"].__annotations__ = {name: cd.Space(*ARRAYS[name].shape) for name in names}
    return cd.program(scope["f"])


def _weights(spelling: str) -> list[Any]:
    return [np.cos(np.arange(np.size(part)).reshape(np.shape(part)) + 1) for part in _evaluated(spelling, ARRAYS)]


GROUPS = [SPELLINGS[n : n + 12] for n in range(0, len(SPELLINGS), 12)]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_value_and_slopes_are_numpys(group: list[str]) -> None:
    weights = [_weights(spelling) for spelling in group]
    f = _program(group, weights)
    names = _all_names(group)

    def total(step: float) -> Any:
        moved = {name: ARRAYS[name] + step * _way(ARRAYS[name]) for name in names}
        return _weighed(group, weights, ARRAYS | moved)

    arrays = {name: ARRAYS[name] for name in names}
    assert f(**arrays) == pytest.approx(total(0), rel=1e-9)
    gradient = cd.grad(f, tuple(names), simplify=False)(**arrays)
    slope = sum(np.sum(_way(part) * part) for part in gradient)
    assert slope == pytest.approx((total(1e-6) - total(-1e-6)) / 2e-6, rel=1e-5)


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
