"""What holds for every test."""

from hypothesis import settings

# The same examples every time, and no deadline: a busy machine must not fail a test.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
