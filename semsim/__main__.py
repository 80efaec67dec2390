"""`python -m semsim`."""

from semsim.cli.main import app

app()
