"""What holds for all tests."""

from hypothesis import settings

# The machine is shared: how long an example takes says nothing.
settings.register_profile("muster", deadline=None)
settings.load_profile("muster")
