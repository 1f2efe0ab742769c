"""The symmetries of tensors act: as laws between the accesses of one e-graph, and in what makes terms one node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import combdiff as cd
from combdiff.simplification.egraph import encoding
from combdiff.simplification.memory import forget
from combdiff.simplification.normal_form import canonical

BY_LAWS = {  # what is real by a symmetry is a law's condition: canonical names say nothing of Im
    "H hermitian (n, n), x (n)\n(H, x) ↦ Σ_i x[i]² + Σ_i x[i] Im(H[i,i])": "d ↦ 2 x[d]",
    "H hermitian (n, n), x (n)\n(H, x) ↦ Σ_i x[i]² + Σ_i x[i] Im(exp(H[i,i]))": "d ↦ 2 x[d]",
}
BY_NAMES = {  # whose indices may be exchanged under Σ is a question of names
    "A antisymmetric (n, n), x (n)\n(A, x) ↦ Σ_{i,j} x[i] A[i,j] x[j] + Σ_i x[i]²": "d ↦ 2 x[d]",
}
BY_EITHER = {
    "A symmetric (n, n), x (n)\n(A, x) ↦ Σ_{i,j} x[i] A[i,j] x[j]": "2·A·x",
    "A symmetric (n, n), x (n), y (n)\n(A, x, y) ↦ exp(Σ_{i,j} x[i] A[i,j] y[j] + Σ_{i,j} y[i] A[i,j] x[j])": (
        "2·exp(2·yᵀ·A·x)·A·y"
    ),
}


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """What was simplified with all laws is not read where some are taken away, and the other way round."""
    forget()
    yield
    forget()


def gradient(text: str) -> str:
    found = cd.grad(cd.read(text), wrt="x")
    return found.matrix() if text in BY_EITHER else str(found).split(" ↦ ", 1)[1]


def without_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object, **__: object) -> Iterator[str]:
        return iter(())

    monkeypatch.setattr(encoding, "_laws_of", nothing)


def without_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "_group", lambda space: space.group[:1])


@pytest.mark.parametrize(("text", "expected"), {**BY_LAWS, **BY_NAMES, **BY_EITHER}.items())
def test_symmetries_shorten_derivatives(text: str, expected: str) -> None:
    assert gradient(text) == expected


@pytest.mark.parametrize("text", BY_LAWS)
def test_without_the_laws_of_tensors_they_are_longer(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_laws(monkeypatch)
    assert len(gradient(text)) > len(BY_LAWS[text])


@pytest.mark.parametrize("text", BY_NAMES)
def test_without_canonical_names_under_symmetries_they_are_longer(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_names(monkeypatch)
    assert len(gradient(text)) > len(BY_NAMES[text])


@pytest.mark.parametrize("text", BY_EITHER)
def test_without_both_they_are_longer(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without_laws(monkeypatch)
    without_names(monkeypatch)
    assert len(gradient(text)) > len(BY_EITHER[text])
