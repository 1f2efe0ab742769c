"""A long short-term memory network that learns a text letter by letter: its loop is a scan, and so is its gradient.

    f, i, o, g = σ, σ, σ, tanh of W·(letter, h) + b,    c ← f c + i g,    h ← o tanh c,    logits = V h

Trained by Adam on the first line of a tongue-twister, it knows that by heart: given six letters it writes the others.
"""

import numpy as np

import combdiff as cd

TEXT = "peter piper picked a peck of pickled peppers. "
LETTERS = sorted(set(TEXT))
HIDDEN = 24

Letters = cd.Space("T", "a")


def sigmoid(z):
    """1 between 0 and 1."""
    return 1 / (1 + np.exp(-z))


@cd.program
def loss(
    W: cd.Space(4, "h", "a"),
    U: cd.Space(4, "h", "h"),
    b: cd.Space(4, "h"),
    V: cd.Space("a", "h"),
    x: Letters,
    y: Letters,
):
    def step(state, letter):
        h, c = state
        gates = [W[n] @ letter + U[n] @ h + b[n] for n in range(4)]
        c = sigmoid(gates[0]) * c + sigmoid(gates[1]) * np.tanh(gates[3])
        h = sigmoid(gates[2]) * np.tanh(c)
        return (h, c), V @ h

    start = b[0] * 0
    _, logits = cd.scan(step, (start, start), x)
    return (cd.logsumexp(logits, 1) - (y * logits).sum(1)).sum() / x.shape[0]


learn = cd.value_and_grad(loss, wrt=("W", "U", "b", "V"))

rng = np.random.default_rng(0)
size = len(LETTERS)
weights = [
    rng.normal(size=(4, HIDDEN, size)) / 4,
    rng.normal(size=(4, HIDDEN, HIDDEN)) / 8,
    np.zeros((4, HIDDEN)),
    rng.normal(size=(size, HIDDEN)) / 4,
]
letters = np.eye(size)[[LETTERS.index(letter) for letter in TEXT]]
x, y = letters, np.roll(letters, -1, axis=0)

first = [np.zeros_like(w) for w in weights]
second = [np.zeros_like(w) for w in weights]
for n in range(1, 301):
    value, gradients = learn(*weights, x, y)
    if n in (1, 100, 200, 300):
        print(f"step {n:>3}: {value:.3f} nats a letter")
    for w, g, m, v in zip(weights, gradients, first, second, strict=True):
        m += 0.1 * (g - m)
        v += 0.01 * (g * g - v)
        w -= 0.02 * (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.99**n)) + 1e-8)


def written(start, count):
    """The likeliest letters after a start."""
    W, U, b, V = weights
    h, c, text = np.zeros(HIDDEN), np.zeros(HIDDEN), start
    for n in range(len(start) + count - 1):
        gates = W[:, :, LETTERS.index(text[n])] + U @ h + b
        c = sigmoid(gates[0]) * c + sigmoid(gates[1]) * np.tanh(gates[3])
        h = sigmoid(gates[2]) * np.tanh(c)
        if n >= len(start) - 1:
            text += LETTERS[int(np.argmax(V @ h))]
    return text


print(repr(written("peter ", 34)))
assert value < 0.1
