"""Random programs, under the name that the tests use."""

from combdiff.testing import programs
from combdiff.testing.routes import Case

__all__ = ["Case", "programs"]
