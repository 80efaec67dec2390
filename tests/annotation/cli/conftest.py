"""The command line, in process, on a data folder of the test's own."""

import pytest
from study_factory import write_set
from typer.testing import CliRunner

from annotation.cli.main import app


@pytest.fixture
def run(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, [*map(str, arguments), "--data-dir", str(tmp_path)])

    return run


@pytest.fixture
def folder(tmp_path):
    """A set of four images that a classifier has read."""
    return write_set(tmp_path / "set", probabilities={"reconstruction": {"TRUE": 0.9}})
