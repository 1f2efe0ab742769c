"""How Hypothesis draws its examples: the same ones in every run, so that what fails can be repeated.

`pytest --hypothesis-profile=explore` draws new ones; `--hypothesis-profile=thousand` a thousand for each fuzz test.
"""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile("thousand", max_examples=1000, deadline=None)
settings.load_profile("repeatable")
