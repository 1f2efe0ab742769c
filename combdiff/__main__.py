"""`python -m combdiff`: the command line."""

import sys

from combdiff.cli import main

if __name__ == "__main__":
    sys.exit(main())
