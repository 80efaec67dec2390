"""The long description of the package: README, whose relative links lead nowhere on an index.

They become absolute below the address `Source` of [project.urls]. While the project has no public
address, their words stay, and pictures are named.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


class PackagePage(MetadataHookInterface):
    """Hatchling asks this for what `dynamic` names and it cannot find itself."""

    def update(self, metadata: dict) -> None:
        """Put the description into `metadata`."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source", "")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": without_relative(text, source),
        }


def without_relative(text: str, source: str) -> str:
    """Return Markdown whose relative links lead into the repository `source`, or nowhere."""

    def link(found: re.Match) -> str:
        picture, words, path = found.groups()
        if source:
            return f"{picture}[{words}]({source}/{'raw' if picture else 'blob'}/HEAD/{path})"
        return f"*(Picture: {words})*" if picture else words

    return _RELATIVE.sub(link, text)
