"""Derivatives of scans within a memory limit: the same values, the promised peak, few steps done again."""

from __future__ import annotations

import re
from functools import cache, partial
from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import pytest
from known_programs import driven_pendulum
from measuring import measured

import combdiff as cd
from combdiff.kernels.schedules import _kept_before, _way_back
from combdiff.planning.operations.iterations import advances

V, M, R = cd.Space("n"), cd.Space("n", "n"), cd.Space()
Steps, U = cd.Space("T"), cd.Space("T", "n")
OVERHEAD = 6000  # bytes of the interpreter's own objects: frames, views, numbers


@cd.program
def network(A: M, x0: V, u: U):
    last, states = cd.scan(lambda x, v: (np.tanh(A @ x + np.exp(v)), x), x0, u)
    return (last * last).sum() + (states * u).sum()


@cd.program
def oscillator(k: R, x0: cd.Space(2)):
    """A state of which the components have formulas of their own: the tensor of all states is read by component."""

    def step(x, _):
        return np.stack([x[0] + 0.1 * x[1], x[1] - 0.1 * k * np.sin(x[0])]), None

    return (cd.scan(step, x0, length=64)[0] ** 2).sum()


rng = np.random.default_rng(0)
ARGUMENTS = {
    "oscillator": (1.3, np.array([0.3, 0.1])),
    "network": (rng.normal(size=(3, 3)) / 3, rng.normal(size=3), rng.normal(size=(97, 3))),
    "pendulum": (1.3, 0.2, 0.1 * rng.normal(size=97)),
}


@cache
def derivative(name: str) -> cd.Program:
    f = {"network": network, "pendulum": driven_pendulum, "oscillator": oscillator}[name]
    return cd.value_and_grad(f, wrt=tuple(p.name for p in f.parameters))


def leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["network", "pendulum", "oscillator"])
def test_every_limit_gives_the_same_within_itself_and_the_least_is_told(name: str) -> None:
    f, arguments = derivative(name), ARGUMENTS[name]
    expected, full = measured(partial(f, *arguments))
    with pytest.raises(cd.MemoryLimitError) as caught:
        f.compile(memory_limit=1)(*arguments)
    least = int(re.findall(r"memory_limit=(\d+)", str(caught.value))[0])
    assert least < full / 2
    for limit in (full, (full + 3 * least) // 4, least):
        found, used = measured(partial(f.compile(memory_limit=limit), *arguments))
        assert used <= limit + OVERHEAD
        for one, two in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)
    with pytest.raises(cd.MemoryLimitError, match="is too small"):
        f.compile(memory_limit=least - 1)(*arguments)


@pytest.mark.thorough
def test_a_hundred_thousand_steps_fit_in_300_kilobytes() -> None:
    f = cd.grad(driven_pendulum, "g")
    table = f.cost(T=100_000, memory_limit="300KB")
    assert table.peak_bytes <= 300_000 < f.cost(T=100_000).peak_bytes
    assert table.flops < 3 * f.cost(T=100_000).flops
    assert "sweep back" in str(table)
    arguments = (1.3, 0.2, 0.1 * rng.normal(size=4000))
    found, used = measured(partial(f.compile(memory_limit="40KB"), *arguments))
    assert used <= 40_000 + OVERHEAD < f.cost(T=4000).peak_bytes
    np.testing.assert_allclose(found, f(*arguments), rtol=1e-8)


@pytest.mark.thorough
def test_what_conditions_of_data_choose_goes_by_blocks_too() -> None:
    @cd.program
    def leaky(a: R, x0: R, u: Steps):
        return cd.scan(lambda x, v: (np.where(x > v, np.tanh(a * x), 0.5 * x - v), None), x0, u)[0]

    f, arguments = cd.grad(leaky, "a"), (0.8, 1.2, rng.normal(size=400))
    np.testing.assert_allclose(f.compile(memory_limit=f.cost(T=400).peak_bytes // 3)(*arguments), f(*arguments))


def test_values_need_no_states_but_those_of_a_block() -> None:
    arguments = ARGUMENTS["network"]
    table = network.cost(T=97, n=3, memory_limit=1500)
    assert table.flops < 1.3 * network.cost(T=97, n=3).flops
    np.testing.assert_allclose(network.compile(memory_limit=1500)(*arguments), network(*arguments))


@pytest.mark.needs("torch")
def test_torch_keeps_to_limits_too() -> None:
    import torch

    f, arguments = derivative("network"), [torch.tensor(a) for a in ARGUMENTS["network"]]
    expected = leaves(f(*ARGUMENTS["network"]))
    for one, two in zip(leaves(f.compile("torch", memory_limit=6000)(*arguments)), expected, strict=True):
        np.testing.assert_allclose(one.numpy(), two, rtol=1e-10, atol=1e-12)


def test_jax_refuses_a_limit() -> None:
    with pytest.raises(cd.UnsupportedError, match="its arrays never change"):
        derivative("pendulum").compile("jax", memory_limit=3000)(*ARGUMENTS["pendulum"])


@pytest.mark.parametrize("kept", [2, 3, 5, 9])
def test_the_schedule_is_griewanks(kept: int) -> None:
    for blocks in range(1, 70):
        held, back = _kept_before(blocks, kept), []
        assert all(one < two for one, two in pairwise(held))
        most, forward, done = len(held), blocks - 1, dict.fromkeys(range(blocks), 1)
        for first, last, is_back in _way_back(blocks, kept):
            assert held[-1] == first
            if is_back:
                back.append(held.pop())
                continue
            held.append(last)
            most, forward = max(most, len(held)), forward + last - first
            done.update({n: done[n] + 1 for n in range(first, last)})
        assert back == list(reversed(range(blocks)))
        assert most <= kept
        assert forward == advances(blocks, kept)
        repeats = next(r for r in range(blocks + 1) if comb(kept - 1 + r, r) >= blocks)
        assert max(done.values()) <= max(repeats, 1)
