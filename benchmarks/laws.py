"""How many false laws check-rules finds, and how many true ones it refuses: python benchmarks/laws.py [seeds]

Every mutant and claim of tests/law_mutants.py must be false at every seed, every true law and every
built-in law must hold.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from law_mutants import CLAIMS, MISTAKES, TRUE, mutants

from combdiff.testing import verdicts


def main(seeds: int) -> int:
    """The number of wrong verdicts."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "laws.egg")
        for seed in range(seeds):
            for what, text, expected in (
                ("mutants", mutants(MISTAKES, CLAIMS), "false"),
                ("true laws", mutants([], TRUE), "holds"),
                ("built-in laws", None, "holds"),
            ):
                start = time.perf_counter()
                if text is not None:
                    path.write_text(text, "utf-8")
                found = list(verdicts(path if text is not None else None, seed))
                missed = [verdict for verdict in found if verdict.status != expected]
                wrong += len(missed)
                seconds = time.perf_counter() - start
                print(f"seed {seed}: {len(found)} {what}, {len(missed)} wrong, {seconds:.1f} s", flush=True)
                for verdict in missed:
                    print(f"  {verdict}")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)))
