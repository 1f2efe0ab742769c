"""Random programs, under the name that the tests use."""

from combdiff.testing import Case, programs

__all__ = ["Case", "programs"]
