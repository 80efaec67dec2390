"""Parts of each paper not run here, with reasons: for pages, `--plan` and the page Papers."""

from collections.abc import Mapping
from typing import NamedTuple

from semsim.base.storage.places import toml_of


class NotRun(NamedTuple):
    """Part of a paper that was not run.

    Attributes:
        what: A part of a paper.
        why: In words that end a sentence.
    """

    what: str
    why: str

    @property
    def said(self) -> str:
        """Both in a sentence."""
        return f"{self.what}: {self.why}."


_PAPERS = toml_of("semsim.reporting", "not_run.toml")
# By the name of the reproduction: what its section of the page Papers is called.
SECTIONS: Mapping[str, str] = {name: str(one["title"]) for name, one in _PAPERS.items()}
NOT_RUN: Mapping[str, tuple[NotRun, ...]] = {
    name: tuple(NotRun(*pair) for pair in one["not_run"].items()) for name, one in _PAPERS.items()
}


def not_run_text(name: str) -> str:
    """The list of one reproduction, a line a part."""
    lines = [f"- {one.said}" for one in NOT_RUN[name]]
    return "\n".join(["Not run so far:", *lines])
