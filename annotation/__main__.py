"""python -m annotation"""

from annotation.cli.main import app

app(prog_name="python -m annotation")
