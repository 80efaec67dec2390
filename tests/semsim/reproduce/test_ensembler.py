"""`reproduce ensembler`: what it says before it computes anything."""

import pytest
from typer.testing import CliRunner

from semsim.cli.reproduce import app


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--preset", "paper"), "as --images, or put it at cifar10"),
        (("--preset", "huge"), "small, paper"),
        (("--images", "nowhere"), "No folder nowhere"),
        (("--workers", "0"), "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_done_says_why(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["ensembler", *words])
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())
    assert "Traceback" not in done.output
