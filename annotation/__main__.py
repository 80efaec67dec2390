"""python -m annotation"""

from annotation.cli import app

app(prog_name="python -m annotation")
