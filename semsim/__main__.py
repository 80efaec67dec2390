"""`python -m semsim`."""

from semsim.cli import app

app()
