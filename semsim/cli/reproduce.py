"""`semsim-studio reproduce …`: a paper's tables and figures beside its own numbers."""

import typer

from semsim.papers import REPRODUCTIONS

app = typer.Typer(no_args_is_help=True, help="Compute a paper's tables and figures again.")


@app.callback()
def _always_named() -> None:
    # Without a callback typer drops the name of an only command.
    pass


for _name, _command in REPRODUCTIONS.items():
    app.command(_name)(_command)
