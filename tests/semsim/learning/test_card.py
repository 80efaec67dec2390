"""The model card: read as written, and nothing made up where numbers are missing."""

import pandas as pd
import pytest
from huggingface_hub import ModelCard

from semsim.base.stats.roc import SCOPES
from semsim.learning.card import (
    card_markdown,
    card_paths,
    data_facts,
    heads,
    read_card,
    table_rows,
    without_paths,
)


def test_a_card_lies_beside_its_checkpoint(tmp_path):
    names = [path.name for path in card_paths(tmp_path / "mine.v2.safetensors")]
    assert names == ["mine.v2.card.md", "mine.v2.card.json"]
    assert read_card(tmp_path / "mine.v2.safetensors") is None


def test_what_is_undefined_is_a_dash_and_not_a_number():
    unknown = dict.fromkeys(("rho", "rho_low", "rho_high", "tau_low", "tau_high"))
    scopes = {"pooled": {"auc": 0.5, "low": None, "high": None}}
    row = {"title": "SemSim", **unknown, "tau": 0.25, "auc": scopes}
    judged = {"metrics": [row], "absent": {}, "scale_differs": []}
    (cells,) = table_rows(judged)
    assert cells == ["SemSim", "–", "0.25", "0.50", "–", "–"]
    assert len(cells) == len(heads(judged))
    _, absent = table_rows({**judged, "absent": {"shuffled": "not run, as it takes long"}})
    assert absent[:2] == ["The same training on shuffled votes", "not run"]
    assert len(absent) == len(heads(judged))


def test_where_a_scale_differs_by_original_auc_within_originals_comes_first():
    card = a_card()
    scopes = {
        scope: {"auc": at, "low": at, "high": at}
        for scope, at in zip(SCOPES, (0.5, 0.6, 0.7), strict=True)
    }
    (row,) = card["held_out"]["metrics"]
    judged = {**card["held_out"], "scale_differs": ["MSE"], "metrics": [{**row, "auc": scopes}]}
    assert heads(judged)[3:] == ("AUC within original", "AUC pooled", "AUC within model")
    assert [cell[:4] for cell in table_rows(judged)[0][3:]] == ["0.70", "0.50", "0.60"]
    text = card_markdown({**card, "held_out": judged})
    assert "The scale of MSE differs by original: go by the AUC within originals. The" in text
    assert text.count("flatters") == 1  # not of what it learned from, whose scales do not differ
    told = ModelCard(text).data.eval_results
    first = next(one for one in told if one.metric_type == "roc_auc")
    assert (first.metric_name, first.metric_value) == ("AUC within original", 0.7)


def test_reasons_keep_what_is_missing_and_not_where_it_was_looked_for():
    told = {"left_out": {"lpips": "alexnet is missing; it was looked for in /home/somebody"}}
    assert without_paths(told)["left_out"] == {"lpips": "alexnet is missing"}


def a_card(licence="CC0-1.0", simulated=True):
    whole = {"auc": 0.9, "low": 0.75, "high": 1.0}
    row = {
        **{"metric": "semsim:mine", "title": "SemSim", "rho": 0.5, "rho_low": -0.1},
        **{"rho_high": 0.8, "tau": None, "tau_low": None, "tau_high": None},
        "auc": {"pooled": whole},
    }
    judged = {
        **{"n_images": 1, "n_originals": 2, "n_models": 3, "metrics": [row]},
        **{"left_out": {"lpips": "no weights"}, "notes": ["few models"]},
        **{"sample": "held-out", "loss": "pooled", "against": [], "absent": {}},
        **{"moved": True, "shuffled": None, "scale_differs": []},
    }
    return {
        **{"format": "semsim-card/1", "name": "mine", "created": "today", "simulated": simulated},
        **{"study": None, "n_originals": 4, "n_triplets": 5, "epochs": 6, "sha256": "ab"},
        "licence": licence,
        "data": {
            **{"datasets": ["1", "a: b"], "attacks": ["x"], "models": ["m", "n"]},
            **{"n_reconstructions": 7, "n_votes": None, "n_annotators": None},
        },
        "split": {"words": "some", "hold_out": "model", "fraction": 0.25, "seed": 0, "unused": 1},
        **{
            "settings": {
                **{"epochs": 6, "loss": "pooled", "weights": "scratch"},
                **{"backbone": "lenet", "seed": 3},
            },
            "training": {},
            "warnings": [],
            "versions": {"torch": "2"},
        },
        **{"held_out": judged, "in_sample": judged},
    }


def test_front_matter_has_the_numbers_with_their_intervals():
    front = ModelCard(card_markdown(a_card())).data
    assert (front.license, front.library_name, front.datasets) == (
        "cc0-1.0",
        "semsim",
        ["1", "a: b"],
    )
    assert front.metrics == ["spearmanr", "kendalltau", "roc_auc"]
    assert "simulated-votes" in front.tags
    found = {one.metric_name: (one.metric_value, one.metric_args) for one in front.eval_results}
    assert found == {
        "ρ": (0.5, {"level": 0.95, "low": -0.1, "high": 0.8}),
        "AUC pooled": (0.9, {"level": 0.95, "low": 0.75, "high": 1.0}),
    }


@pytest.mark.parametrize(
    ("words", "licence", "name"),
    [("not stated", "unknown", None), ("of the hospital: ask", "other", "of the hospital: ask")],
)
def test_a_licence_no_hub_knows_is_not_made_up(words, licence, name):
    front = ModelCard(card_markdown(a_card(licence=words, simulated=False))).data
    assert (front.license, front.license_name) == (licence, name)
    assert "simulated-votes" not in front.tags


def test_people_read_the_same_facts():
    text = card_markdown(a_card()).partition("\n---\n")[2]
    lines = text.splitlines()
    assert lines[:3] == ["# SemSim mine", "", lines[2]]
    assert lines[2].startswith("**Simulated votes.**")
    for line in (
        "- Study: not named; no votes, only majorities on 7 reconstructions",
        "- Models: m; n",
        "- Held out: some (model, share 0.25, seed 0); 1 reconstructions on neither side",
        "1 reconstruction of 2 originals by 3 models; 95% intervals in brackets.",
        "| SemSim | 0.50 [-0.10, 0.80] | – | 0.90 [0.75, 1.00] | – | – |",
        "- lpips is left out: no weights",
        "- few models",
        "- none",
        "- epochs: 6",
    ):
        assert line in lines
    assert lines[-1] == "- torch 2"


def test_a_card_says_how_good_each_target_was_where_that_is_known():
    labels = pd.DataFrame({"dataset": "1", "attack": "x", "model": ["m", "n"]})
    unknown = data_facts(labels, None)
    assert unknown["targets"] == {}
    told = labels.assign(
        target_accuracy=[0.02, None], target_chance=[0.02, None], target_at_chance=[True, None]
    )
    card = a_card()
    text = card_markdown({**card, "data": data_facts(told, None)})
    learned = "- An untrained LeNet of seed 3, learned by the pooled loss from"
    assert f"- Models: m: 2% right: at chance (2%); n\n{learned}" in text
