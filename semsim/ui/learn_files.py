"""What a training has made, to take away: its SemSim's weights and card, by the file's name."""

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from semsim.learning.card import card_paths
from semsim.ui import ScienceContext
from semsim.ui.answers import GoneError, worded
from semsim.ui.markup import rooted

FOLDER = "/studio/train-files"
_WORDS = ("Weights", "Card", "Card as JSON")
_ENDINGS = (".safetensors", ".card.md", ".card.json")


def offered(checkpoint: Path, folder: Path) -> list[tuple[str, str]]:
    """Words and address of each file of a SemSim that is there, where `folder` has it."""
    if checkpoint.parent.resolve() != folder.resolve():
        return []  # what is called so there is another's
    files = zip(_WORDS, (checkpoint, *card_paths(checkpoint)), strict=True)
    return [(words, rooted(f"{FOLDER}/{one.name}")) for words, one in files if one.is_file()]


def router(context: ScienceContext) -> APIRouter:
    """The route of the files below `FOLDER`."""
    routes = APIRouter()

    @routes.get(FOLDER + "/{name}")
    @worded
    def file(name: str) -> Response:
        path = Path(context.checkpoints) / Path(name).name
        if not name.endswith(_ENDINGS) or not path.is_file():
            raise GoneError("There is no such file of a SemSim.")
        return FileResponse(path, filename=name)

    return routes
