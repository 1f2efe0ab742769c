"""Contraction orders over a corpus of einsums: multiplications of opt_einsum's and cotengra's orders over combdiff's.

    python benchmarks/orders.py [--quick]

Counted, not timed. All orders are costed by the same exact count: opt_einsum and cotengra themselves count an index in
three or more operands wrongly, or differently (opt_einsum's issue 248). cotengra takes part where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from combdiff.planning.networks import Network, cost_of, from_path
from combdiff.planning.search import trees
from combdiff.runtime.execution import find_paths

HYPER = (
    ("ij,jk,kl,jl->il", {"i": 10, "j": 10**4, "k": 10, "l": 10}),
    ("ij,jk,kl,jl->il", {"i": 100, "j": 5, "k": 1000, "l": 10}),
    ("aj,bj,cj,dj->abcd", {"j": 100, "a": 3, "b": 3, "c": 3, "d": 3}),
    ("ab,ac,ad->bcd", {"a": 1000, "b": 4, "c": 5, "d": 6}),
    ("ijk,jl,jm,klm->i", {"i": 20, "j": 50, "k": 5, "l": 7, "m": 9}),
    ("ai,aj,ak,bi,bj,bk->ab", {"i": 5, "j": 6, "k": 7, "a": 40, "b": 50}),
    ("pi,qi,rj,sj,pqrs->", {"p": 24, "q": 24, "r": 24, "s": 24, "i": 6, "j": 6}),
)


def network(equation: str, sizes: dict[str, int]) -> Network:
    """The network of an einsum."""
    inputs, output = equation.split("->")
    number = {letter: n for n, letter in enumerate(sorted(set(equation) - set(",->")))}
    operands = tuple(frozenset(number[x] for x in part) for part in inputs.split(","))
    return Network(operands, frozenset(number[x] for x in output), {n: sizes[x] for x, n in number.items()})


def random_network(rng: random.Random, operands: int, labels: int) -> Network:
    """Operands of one to four labels; a label may be in any number of them."""
    extents = {label: rng.choice((2, 3, 5, 8, 20)) for label in range(labels)}
    chosen = tuple(frozenset(rng.sample(range(labels), rng.randint(1, min(4, labels)))) for _ in range(operands))
    used = sorted(frozenset[int]().union(*chosen))
    output = frozenset(rng.sample(used, rng.randint(0, min(3, len(used)))))
    return Network(chosen, output, {label: extents[label] for label in used})


def mixed_network(rng: random.Random, operands: int) -> Network:
    """Operands of no to four labels, some of them twice, with labels of extent 1, and parts that share no label."""
    labels = range(rng.randint(2, operands + 3))
    chosen: list[frozenset[int]] = []
    for _ in range(operands):
        repeated = chosen and rng.random() < 0.2
        fresh = frozenset(rng.sample(labels, min(len(labels), rng.choice((0, 1, 1, 2, 2, 3, 3, 4)))))
        chosen.append(rng.choice(chosen) if repeated else fresh)
    used = sorted(frozenset[int]().union(*chosen))
    output = frozenset(label for label in used if rng.random() < 0.25)
    return Network(tuple(chosen), output, {label: rng.choice((1, 2, 3, 8, 20, 50)) for label in used})


def corpus(counts: Iterable[int], seeds: int) -> Iterator[tuple[str, Network]]:
    """Networks: those of `HYPER`, and random ones of so many operands: plain, with labels in many operands, mixed."""
    from opt_einsum.testing import rand_equation

    yield from ((equation, network(equation, sizes)) for equation, sizes in HYPER)
    for count in counts:
        for seed in range(seeds):
            equation, _, sizes = rand_equation(count, 3, n_out=2, seed=seed, return_size_dict=True)
            yield f"regular, {count} operands, seed {seed}", network(equation, sizes)
            rng = random.Random(100 * count + seed)
            yield f"hyper-edges, {count} operands, seed {seed}", random_network(rng, count, count + 1)
            yield f"mixed, {count} operands, seed {seed}", mixed_network(rng, count)


def proposals(net: Network) -> Iterator[tuple[str, int]]:
    """The multiplications of the orders that others find."""
    from opt_einsum import paths

    finders: dict[str, Callable[..., Any]] = {"auto": paths.auto, "auto-hq": paths.auto_hq, "greedy": paths.greedy}
    if len(net.operands) <= 7:
        finders["optimal"] = paths.optimal
    if importlib.util.find_spec("cotengra") is not None:
        import cotengra

        finders["cotengra"] = cotengra.HyperOptimizer(methods=["greedy"], max_repeats=32, parallel=False, seed=0)
    for name, finder in finders.items():
        ordered = sorted if name == "cotengra" else frozenset
        path = finder(list(map(ordered, net.operands)), ordered(net.output), dict(net.extents))
        yield name, cost_of(net, from_path(path, len(net.operands)))[0]


def main() -> None:
    """Print how many more multiplications others need, in the least and the greatest case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small networks alone")
    quick = parser.parse_args().quick
    ratios: dict[str, list[float]] = {}
    for name, net in corpus((4, 6, 8) if quick else (4, 6, 8, 10, 14, 20, 40), 3):
        ours = cost_of(net, trees(net, find_paths)[0])[0]
        for finder, theirs in proposals(net):
            ratios.setdefault(finder, []).append(theirs / ours)
            if theirs < ours:
                print(f"worse than {finder} by {ours / theirs:.3f}: {name}", flush=True)
    print("multiplications over those of combdiff's orders: least, median, greatest")
    for finder, found in ratios.items():
        print(f"  {finder:<12} {min(found):8.3f} {statistics.median(found):8.3f} {max(found):10.1f}   ({len(found)})")


if __name__ == "__main__":
    main()
