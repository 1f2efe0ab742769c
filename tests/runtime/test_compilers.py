"""Programs inside torch.compile with its default compiler, where there is one for C++."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import pytest

import combdiff as cd


@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a compiler for C++")
@pytest.mark.needs("torch")
def test_a_gradient_is_compiled_by_inductor_as_one_graph(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    @cd.program
    def f(A: cd.Space("n", "n"), x: cd.Space("n")):
        return cd.sum(lambda i, j: cd.exp(-x[i] * A[i, j]) * cd.sin(x[j]))

    both = cd.value_and_grad(f, wrt="x")
    generator = torch.Generator().manual_seed(0)
    A, x = (torch.rand(shape, dtype=torch.float64, generator=generator) for shape in ((9, 9), (9,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        compiled = torch.compile(both, fullgraph=True)
        found = compiled(A, x)
    for one, other in zip(found, both(A.numpy(), x.numpy()), strict=True):
        np.testing.assert_allclose(one.numpy(), other)
