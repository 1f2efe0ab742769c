"""New random programs, texts and rule files for as long as one likes: `make fuzz SECONDS=3600`.

Each round runs the property tests with another seed; the command that repeats a failure is printed.

Invariant: nothing is written but Hypothesis' own database of failures.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROPERTIES = (
    "tests/routes",
    "tests/differentiation/test_symmetric_parameters.py",
    "tests/simplification/test_hostile_rulefiles.py",
    "tests/stability/test_shifted_sums.py",
    "tests/text",
)


def round_(seed: int, seconds: float) -> tuple[int, bool]:
    """How many examples one round tried, and whether all held; a round that takes longer than is left is ended."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "--hypothesis-profile=explore"]
    command += [
        f"--hypothesis-seed={seed}",
        "--hypothesis-show-statistics",
        "-k",
        "random or every or property or fuzz",
    ]
    command += PROPERTIES
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 0, True
    tried = sum(int(count) for count in re.findall(r"- (\d+) passing, ", done.stdout))
    if done.returncode not in (0, 5):
        print(done.stdout[-6000:], "\nagain with:", " ".join(command[1:]), flush=True)
    return tried, done.returncode in (0, 5)


def main(seconds: float) -> int:
    """Rounds until the time is over; the exit status is the number of rounds that failed."""
    end, start = time.monotonic() + seconds, int(time.time())
    tried = failed = rounds = 0
    while (left := end - time.monotonic()) > 0:
        found, held = round_(start + rounds, left)
        tried, rounds, failed = tried + found, rounds + 1, failed + (not held)
        print(f"round {rounds}: {tried} examples in all, {failed} rounds failed", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 600))
