import json

import numpy as np
import pytest
from made_campaign import toy_campaign

from semsim.base.errors import JobError, SettingsError
from semsim.campaign.watch import RunFolder, campaigns, read_campaign
from semsim.grid.previews import STEPS, Preview
from semsim.images import png_of


def test_a_name_belongs_to_one_campaign(tmp_path):
    folder = RunFolder(tmp_path, "toy")
    folder.claim(toy_campaign())
    folder.claim(toy_campaign())  # the same again: a resume
    with pytest.raises(SettingsError, match="Choose another name"):
        folder.claim(toy_campaign(images=9))
    assert campaigns(tmp_path) == ["toy"]
    assert read_campaign(tmp_path, "toy") == toy_campaign()
    with pytest.raises(JobError, match="Campaigns: toy"):
        read_campaign(tmp_path, "other")


def test_shares_are_there_only_while_something_runs(tmp_path):
    folder = RunFolder(tmp_path, "toy")
    folder.claim(toy_campaign())
    assert folder.shares() == {}
    folder.tell({"a": 0.5})
    assert RunFolder(tmp_path, "toy").shares() == {"a": 0.5}
    folder.quiet()
    assert folder.shares() == {}


PNG = png_of(np.full((4, 4, 3), 9, np.uint8))


def strip(count):
    return tuple(Preview(place=0, share=step / STEPS, png=PNG) for step in range(count))


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path, "toy")
    made.claim(toy_campaign())
    return made


def test_what_is_seen_is_there_until_it_is_hidden_or_the_run_is_over(folder):
    assert folder.seen() is None
    folder.show("a", strip(2))
    assert folder.seen().key == "a"
    assert folder.seen().steps == ((0.0, PNG), (0.2, PNG))
    folder.show("b", strip(1))
    assert (folder.seen().key, len(folder.seen().steps)) == ("b", 1)
    folder.hide()
    assert folder.seen() is None
    folder.show("b", strip(1))
    folder.quiet()
    assert [path.name for path in folder.path.iterdir()] == ["campaign.json"]


def spoilt(change):
    """The file of two steps with a change made to what it holds."""
    return lambda text: json.dumps(change(json.loads(text)))


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        spoilt(lambda held: {}),
        spoilt(lambda held: held | {"steps": 7}),
        spoilt(lambda held: held | {"steps": []}),
        spoilt(lambda held: held | {"steps": [[0.1]]}),
        spoilt(lambda held: held | {"steps": 9 * held["steps"]}),
        spoilt(lambda held: held | {"steps": [["x", held["steps"][0][1]]]}),
        spoilt(lambda held: held | {"steps": [[7.0, held["steps"][0][1]]]}),
        spoilt(lambda held: held | {"steps": [[float("nan"), held["steps"][0][1]]]}),
        spoilt(lambda held: held | {"steps": [[0.1, "<script>"]]}),
        spoilt(lambda held: held | {"steps": [[0.1, 7]]}),
        spoilt(lambda held: held | {"steps": [[0.1, "R0lGODlh"]]}),  # a GIF
        spoilt(lambda held: held | {"steps": [[0.1, held["steps"][0][1][:-8]]]}),  # half a PNG
    ],
)
def test_a_damaged_file_shows_nothing(folder, damage):
    folder.show("a", strip(2))
    path = folder.path / "seen.json"
    path.write_text(damage(path.read_text()))
    assert folder.seen() is None


def test_a_file_that_is_no_text_shows_nothing(folder):
    (folder.path / "seen.json").write_bytes(b"\xff\xfe\x00")
    assert folder.seen() is None
