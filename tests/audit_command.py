"""Typing `semsim-studio audit` within a test."""

import typer
from typer.testing import CliRunner

from semsim.systems.audit.command import audit

APP = typer.Typer()
APP.command()(audit)


def run(*words):
    """Return what `audit *words` gives, in a terminal so wide that no line is broken."""
    return CliRunner().invoke(APP, [str(word) for word in words], env={"COLUMNS": "200"})
