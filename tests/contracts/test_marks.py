"""That a metric of the simulated voters' kind says so wherever it is shown, and leads nothing."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_marks import PLAIN, marked, unmarked
from made_votes import FID, MSE, PSNR, evidence

from benchmarks.cheap_claims import cells_of_the_map
from semsim.base.metric_spec import VOTERS_KIND, beside_votes
from semsim.base.stats.analysis import analyse
from semsim.base.stats.roc import auc_differences
from semsim.comparison.compared import Compared
from semsim.learning.baselines import difference_rows
from semsim.learning.evaluation import metric_rows
from semsim.metrics import METRICS, find_metric
from semsim.papers import everything
from semsim.papers.everything import differences
from semsim.papers.judged import Found
from semsim.reporting.answer import answer_of
from semsim.reporting.leak_map import leak_map
from semsim.reporting.methods import Origin
from semsim.reporting.report import report_html
from semsim.reporting.tables import tables
from semsim.reporting.writing import markdown

ROOT = Path(__file__).resolve().parents[2]
KINDS = tuple(find_metric(name).spec for name in ("recogniser", "fd:recogniser"))
PAGES = (
    *("README.md", "data/demo/README.md", "checkpoints/demo.card.md", "checkpoints/demo.card.json"),
    *("docs/map.md", "docs/map-agreement.csv", "benchmarks/README.md"),
    *(f"benchmarks/results/{name}.json" for name in ("map", "demo", "published")),
)


def analysis(simulated):
    """The classifier ranks as people do, and better than any other."""
    found = evidence(n_models=5, n_originals=12)
    people = found.response.means
    sets = found.set_scores["fid"]
    scores = {**found.scores, "recogniser": people}
    every = {**found.set_scores, "fd:recogniser": sets}
    found = replace(found, simulated=simulated, scores=scores, set_scores=every)
    return analyse(found, [KINDS[0], PSNR, MSE, FID, KINDS[1]])


def test_what_a_classifier_computes_is_known():
    assert {spec.title for spec in KINDS} == {*PLAIN}
    built_in = [one.spec for one in METRICS.values()]
    assert {spec.name for spec in built_in if spec.classifier} == {spec.name for spec in KINDS}
    (one,) = beside_votes(KINDS[:1], simulated=True)
    assert one.title == f"{KINDS[0].title} [{VOTERS_KIND}]"
    assert beside_votes([one, MSE], simulated=True) == (one, MSE)  # not twice
    assert beside_votes(KINDS, simulated=False) == KINDS


@pytest.mark.parametrize("simulated", [True, False])
def test_every_table_and_sentence_of_a_comparison_says_it(simulated):
    found = analysis(simulated)
    origin = Origin()
    apart = auc_differences(MSE, found.specs, found.evidence, found.settings.headline)
    text = "\n".join(
        [
            *(markdown(one) for one in tables(found)),
            *(one.frame.to_csv() for one in Compared(analysis=found, origin=origin).figures()),
            report_html(found, origin),
            json.dumps(metric_rows(found)),
            json.dumps(difference_rows(apart, {})),
        ]
    )
    assert marked(text) == simulated
    assert bool(unmarked(text)) != simulated
    first = found.agreement.iloc[0]["metric"]
    assert (first == "recogniser") != simulated
    said = answer_of(found)
    assert ("Recognised by a classifier" in said.text) != simulated
    assert (said.best == "recogniser") != simulated


def test_the_map_says_it_in_tables_and_heat_map_and_is_led_by_another():
    cells, specs = cells_of_the_map()
    agreement = pd.read_csv(ROOT / "docs/map-agreement.csv")
    judged = Found(cells, agreement, specs, {})
    text = "\n".join(map(markdown, everything.tables(judged)))
    assert marked(text)
    assert unmarked(text) == []
    cells[["network", "strategy"]] = cells[["network", "strategy"]].fillna("")
    drawn = leak_map(cells, everything.with_ranges(judged), specs, 12).frame
    assert unmarked(drawn.to_csv()) == []
    assert agreement["metric"].tolist()[-1] == "recogniser"


def test_the_best_of_the_map_is_one_without_a_mark():
    draw = np.random.default_rng(0)
    people = draw.random(24)
    cells = pd.DataFrame(
        {
            **{"status": "ok", "network": "n", "people": people, "recogniser": people},
            "strategy": [f"s{n % 4}" for n in range(24)],
            "attack": [f"a{n // 4}" for n in range(24)],
            "psnr": people + draw.normal(0, 0.2, 24),
            "mse": draw.random(24),
        }
    )
    specs = beside_votes((KINDS[0], PSNR, MSE), simulated=True)
    found = differences(cells, specs)
    assert set(found["metric"]) == {"psnr"}
    assert found["other"].tolist() == ["mse", "recogniser"]
    assert found["difference"].iloc[-1] < 0
    assert differences(cells, specs[:1]).empty
    assert differences(cells, beside_votes(KINDS[:1], simulated=True)).empty


@pytest.mark.parametrize("name", PAGES)
def test_every_page_and_file_that_is_shipped_says_it(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert unmarked(text) == []


def test_what_shows_it_unmarked_is_found():
    assert unmarked("Recognised by a classifier 0.9") == ["Recognised by a classifier 0.9"]
    assert unmarked(f"Recognised by a classifier \\[{VOTERS_KIND}\\] 0.9") == []
    assert unmarked(f"Fréchet distance (recogniser) [{VOTERS_KIND}]: x") == []
