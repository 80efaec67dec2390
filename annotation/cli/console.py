"""Options of commands on studies: the data folder, the database, the pictures."""

import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from semsim.base.cli.console import STDOUT as STDOUT
from semsim.base.cli.console import DataOption
from semsim.base.cli.console import Json as Json
from semsim.base.cli.console import failed as failed
from semsim.base.cli.console import list_text as list_text
from semsim.base.cli.console import say as say
from semsim.base.cli.console import show as show
from semsim.base.cli.console import text_table as text_table
from semsim.base.cli.console import told_errors as told_errors
from semsim.base.storage.places import DATA as DATA

if TYPE_CHECKING:
    from annotation.domain import Study
    from annotation.images import Shelf
    from annotation.store import Store

DataDir = DataOption
StudyName = Annotated[str, typer.Argument(help="Name or id of the study.")]
DATABASE = "SEMSIM_DATABASE"  # the environment variable
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar=DATABASE,
        help="sqlite:///FILE or postgresql+psycopg://…  [default: <data-dir>/studies.db]",
    ),
]
SAID_EVERY = 5.0  # seconds between two remarks on how far work is
IMAGES = "SEMSIM_IMAGES"  # the environment variable
SHARED = "Pictures that several servers share, such as s3://bucket/prefix"
Images = Annotated[
    str,
    typer.Option("--image-store", envvar=IMAGES, help=f"{SHARED}.  [default: <data-dir>/images]"),
]


@contextmanager
def opened(database: str | None, data_dir: Path, *, make: bool = False) -> "Iterator[Store]":
    """Open the database and report errors.

    Args:
        make: Whether to make one where there is none.
    """
    from annotation.store import Store  # sqlalchemy: half a second that --help does without

    with told_errors(), Store(address(database, data_dir), make=make) as store:
        yield store


def find_study(store: "Store", name: str) -> "Study":
    """The one study of that name or id; raises `NotFoundError` where there is none, or several."""
    from annotation.errors import NotFoundError
    from annotation.study.labelling import list_studies  # sqlalchemy, as above

    found = [s for s in list_studies(store) if name in (s.id, s.name)]
    if len(found) != 1:
        known = ", ".join(f"{s.name!r} ({s.id})" for s in found or list_studies(store))
        problem = "Several studies are" if found else "No study is"
        raise NotFoundError(f"{problem} called {name!r}. Use an id of: {known or '(no studies)'}.")
    return found[0]


def seldom(text: Callable[..., str]) -> Callable[..., None]:
    """Return a printer of `text` of its arguments, at most every `SAID_EVERY` seconds."""
    last = time.monotonic()

    def tell(*given: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= SAID_EVERY:
            last = time.monotonic()
            say(text(*given))

    return tell


def counting(what: str) -> Callable[[int, int], None]:
    """Return what prints how far work is, given done and total, each `SAID_EVERY` seconds."""
    return seldom(lambda done, total: f"{what}: {done:,} of {total:,}")


def pictures(images: str, data_dir: Path, *, write: bool = False) -> "Shelf":
    """Return the shelf where studies keep their images, as `annotation.images.shelf`."""
    from annotation.images import shelf  # numpy, which --help does without

    return shelf(images, data_dir, write=write)


def address(database: str | None, data_dir: Path) -> str:
    """Return the URL of the database: the one named, else the SQLite file of the data folder."""
    return database or f"sqlite:///{data_dir / 'studies.db'}"


def options_of(kind: Any, names: Iterable[str]) -> Callable[..., dict[str, Any]]:
    """A maker for `taking`: the values of options for some fields of a dataclass, by field.

    Their help is the "text" of their metadata.
    """
    hints, of = get_type_hints(kind), kind.__dataclass_fields__

    def made(**values: Any) -> dict[str, Any]:
        return values

    made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=of[name].default,
                annotation=Annotated[hints[name], typer.Option(help=of[name].metadata["text"])],
            )
            for name in names
        ]
    )
    return made
