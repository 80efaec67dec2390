"""The model card: read as written, and nothing made up where numbers are missing."""

import pytest

from semsim.errors import WeightsError
from semsim.learning.card import HEADS, card_paths, read_card, table_rows, without_paths


def test_a_card_lies_beside_its_checkpoint(tmp_path):
    names = [path.name for path in card_paths(tmp_path / "mine.v2.safetensors")]
    assert names == ["mine.v2.card.md", "mine.v2.card.json"]
    assert read_card(tmp_path / "mine.v2.safetensors") is None


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "other"}', "[" * 100_000])
def test_a_broken_card_is_named(tmp_path, content):
    (tmp_path / "mine.card.json").write_text(content)
    with pytest.raises(WeightsError, match=r"mine\.card\.json is not a model card"):
        read_card(tmp_path / "mine.safetensors")


def test_what_is_undefined_is_a_dash_and_not_a_number():
    unknown = dict.fromkeys(("rho", "rho_low", "rho_high", "tau_low", "tau_high"))
    scopes = {"pooled": {"auc": 0.5, "low": None, "high": None}}
    row = {"title": "SemSim", **unknown, "tau": 0.25, "auc": scopes}
    (cells,) = table_rows({"metrics": [row]})
    assert cells == ["SemSim", "–", "0.25", "0.50", "–", "–"]
    assert len(cells) == len(HEADS)


def test_reasons_keep_what_is_missing_and_not_where_it_was_looked_for():
    told = {"left_out": {"lpips": "alexnet is missing; it was looked for in /home/somebody"}}
    assert without_paths(told)["left_out"] == {"lpips": "alexnet is missing"}
