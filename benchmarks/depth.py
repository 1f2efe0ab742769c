"""How the time to derive a gradient grows with the depth of a program: linearly, so that the last column stays level.

Three chains: numbers t ↦ (sin t + 1)·x, vectors t[j] ↦ sin(Σ_i t[i]) + x[j], and the layers of a perceptron
t[i] ↦ tanh(Σ_j W[n,i,j] t[j]) with all weights in one tensor. Processor time of this process is measured, so that a
busy machine disturbs little.
Run: python benchmarks/depth.py [depths]
"""

import sys
import time

import combdiff as cd
from combdiff.ir.substitution import subterms


def numbers(depth: int) -> cd.Program:
    """A chain of numbers."""

    @cd.program
    def chain(x: cd.Space()):
        t = x
        for _ in range(depth):
            t = (cd.sin(t) + 1) * x
        return t

    return chain


def vectors(depth: int) -> cd.Program:
    """A chain of vectors, every element of which depends on the sum of the one before."""

    def layer(t, x):
        return cd.tensor(lambda j: cd.sin(t.sum()) + x[j])

    @cd.program
    def chain(x: cd.Space("n")):
        t = x
        for _ in range(depth):
            t = layer(t, x)
        return t.sum()

    return chain


def perceptron(depth: int) -> cd.Program:
    """The layers of a perceptron."""

    def layer(n, W, t):
        return cd.tensor(lambda i: cd.tanh(cd.sum(lambda j: W[n, i, j] * t[j])))

    @cd.program
    def loss(W: cd.Space(depth, "m", "m"), x: cd.Space("m"), y: cd.Space("m")):
        t = x
        for n in range(depth):
            t = layer(n, W, t)
        return ((t - y) ** 2).sum()

    return loss


def main(depths):
    """One line per chain and depth."""
    cd.grad(numbers(1))  # loads egglog and reads the rules
    print(f"{'chain':<12}{'depth':>6}{'seconds':>10}{'nodes':>8}{'characters':>12}{'ms per layer':>14}")
    for make in (numbers, vectors, perceptron):
        for depth in depths:
            program = make(depth)
            start = time.process_time()
            gradient = cd.grad(program)
            seconds = time.process_time() - start
            nodes = sum(1 for _ in subterms(gradient.term))
            row = f"{make.__name__:<12}{depth:>6}{seconds:>10.2f}{nodes:>8}{len(str(gradient)):>12}"
            print(f"{row}{1000 * seconds / depth:>14.1f}", flush=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [8, 16, 32, 64])
