"""What all tests share: `pytest --hypothesis-profile=thousand` makes the fuzz tests try a thousand examples each."""

from hypothesis import settings

settings.register_profile("thousand", max_examples=1000)
