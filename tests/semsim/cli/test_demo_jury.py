"""`demo jury` says what is wrong with sets before it trains anything."""

import pytest
from typer.testing import CliRunner

from semsim.cli import demo


def test_a_set_that_is_none_is_an_error_and_nothing_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "train_jury", lambda *asked, **how: pytest.fail("trained"))
    asked = ["jury", "--set", str(tmp_path), "--work", str(tmp_path / "work")]
    done = CliRunner().invoke(demo.app, asked)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: {tmp_path} is not a reconstruction set")
