import re

import pytest

from semsim.base.errors import SemsimError
from semsim.base.storage.records import read_object, read_record, write_record


class OurError(SemsimError):
    """What a room of the product raises."""


def test_what_was_written_is_read_without_its_format(tmp_path):
    content = {"b": [1, None], "a": {"ö": 0.5}}
    write_record(tmp_path / "r.json", "made/1", content)
    assert read_record(tmp_path / "r.json", "made/1", OurError) == content
    assert read_object(tmp_path / "r.json", OurError) == {"format": "made/1", **content}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", r"r\.json cannot be read: .*line 1"),
        (b"[" * 100_000, r"r\.json cannot be read: .*recursion"),
        (b'{"format": "\xff"}', r"r\.json cannot be read: .*utf-8"),
        (b"[" * 500 + b"]" * 500, r"r\.json holds a list; expected an object\.$"),
        (b"{}", r"r\.json has no format; expected 'made/1'\. Make it again with this version\."),
        (b'{"format": "made/2"}', r"r\.json has format 'made/2'; expected 'made/1'\. Make it"),
        (b'{"format": {}}', r"r\.json has format {}; expected"),
        (b'{"format": "' + b"x" * 9999 + b'"}', r"r\.json has format 'x{39}…; expected 'made/1'"),
        (None, r"r\.json does not exist\.$"),
    ],
    ids=["half", "deep", "latin-1", "list", "none", "other", "object", "long", "missing"],
)
def test_what_is_no_record_of_that_format_is_told_in_few_words(tmp_path, content, said):
    if content is not None:
        (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(OurError) as raised:
        read_record(tmp_path / "r.json", "made/1", OurError)
    assert re.search(said, str(raised.value))
