"""The pages of the human study. Each module has `render(context)`, called where the page stands."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from annotation.store import Store
from annotation.votes.reliability import Fit

STATIC = Path(__file__).parent / "static"  # served at STATIC_URL
STATIC_URL = "/static/annotation"


@dataclass(frozen=True, kw_only=True)
class StudyContext:
    """What the pages work on.

    `find_sets` lists the reconstruction sets there are, as (label, folder). `base_url` is the
    address people reach the server under, such as "https://lab.example.org"; None takes the one
    the researcher's own browser used. `note` is what the page of studies says above them; `fit` is
    what the other half knows of Dawid and Skene.
    """

    store: Store
    images: Path
    find_sets: Callable[[], list[tuple[str, Path]]]
    fit: Fit
    base_url: str | None = None
    note: Callable[[], str] = str
