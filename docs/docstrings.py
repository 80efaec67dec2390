"""How the site shows docstrings: what is said of one parameter is a paragraph of its own."""

import re
from typing import Any

from griffe import Extension, Object

_PARAMETER = re.compile(r"^((?:\w+, )*\w+): ", flags=re.MULTILINE)


class Paragraphs(Extension):
    """Each `name: what it is` of a docstring begins a paragraph, its name in bold."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _PARAMETER.sub(r"\n**\1**: ", obj.docstring.value)
