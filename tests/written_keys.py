"""Read from the code of a benchmark which results it writes."""

import re

from helpers import ROOT

KEY = re.compile(r'\.(?:table|figure)\(\s*(f?)"([^"]+)"')


def written(module: str) -> list[str]:
    """Patterns of the keys that a benchmark and the benchmarks that it imports write."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    text = path.read_text("utf-8")
    own = [
        re.sub(r"\\\{.*?\\\}", r"[\\w-]+", re.escape(key)) if form else re.escape(key)
        for form, key in KEY.findall(text)
    ]
    others = set(re.findall(r"^from (benchmarks\.\w+) import", text, re.MULTILINE))
    return [*own, *(key for one in others for key in written(one))]
