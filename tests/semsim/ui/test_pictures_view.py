"""What a page of pictures says, without HTTP."""

import re
from html import unescape

from study_factory import write_set

from semsim.ui import ScienceContext, pictures_data, pictures_view


def test_the_pages_of_a_class_are_of_that_class_whatever_it_is_called(tmp_path, monkeypatch):
    name = "black & white"
    write_set(tmp_path / "sets/m", labels=(name,) * 3, classes=(name, "grey"))
    context = ScienceContext(
        data=tmp_path / "data",
        checkpoints=tmp_path,
        studies=list,
        labels=lambda study: None,
        votes=lambda study: None,
        device="cpu",
        built_in=(tmp_path / "sets",),
        used_by=lambda folder: [],
    )
    monkeypatch.setattr(pictures_view, "_PAIRS", 2)
    (one,) = pictures_data.shelf(context)
    shown = unescape(pictures_view.one_set(context, one.key, name, 1))
    (address,) = set(re.findall(r'href="[^"]*[?](name=[^"]*)page=2', shown))
    assert address == "name=black+%26+white&"
