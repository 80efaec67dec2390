"""That the card of the SemSim that comes with the product is what today's code finds."""

import pytest
from made_demo import demo_in

import semsim
from annotation.store import Store
from annotation.study.builtin import SIMULATED
from annotation.study.exports import export_labels, export_votes
from annotation.study.labelling import list_studies
from benchmarks.claims import kept

METRICS = ["psnr", "ssim", "recogniser", "semsim:demo", "semsim:demo.start", "semsim:demo.block"]


def test_what_the_card_has_of_held_out_originals_comes_out_of_the_votes_again(tmp_path):
    demo_in(tmp_path)
    with Store(f"sqlite:///{tmp_path / 'studies.db'}") as store:
        (study,) = [one for one in list_studies(store) if one.name == SIMULATED]
        votes = export_votes(store, study.id)
        labels = export_labels(store, study.id, tmp_path / "images")
    scores = semsim.score(labels, METRICS)
    analysis = semsim.compare(votes, scores, labels, unseen_by="demo").analysis
    on_card = kept("demo")
    pooled = analysis.auc[analysis.auc["scope"] == "pooled"].set_index("metric")
    assert len(pooled) == len(METRICS)
    for metric in METRICS:
        told = on_card[f"auc.{metric.removeprefix('semsim:')}"]
        found = tuple(pooled.loc[metric, ["auc", "low", "high"]])
        assert (told.value, told.low, told.high) == pytest.approx(found, abs=1e-6, nan_ok=True)
