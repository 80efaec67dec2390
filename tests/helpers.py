"""What every test may use."""

import os

import pytest


def skip_or_fail(reason: str) -> None:
    """Skip a test whose surroundings are missing; where nothing may be skipped, fail."""
    if os.environ.get("SEMSIM_NO_SKIP"):
        pytest.fail(f"nothing may be skipped here, but: {reason}")
    pytest.skip(reason)
