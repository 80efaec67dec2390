"""That an interval of ρ near 1 with ties is told from one of the formula wherever it stands."""

from dataclasses import replace

import numpy as np
import pytest
from made_votes import PSNR, evidence
from scipy.stats import rankdata, spearmanr

from semsim.base.stats.analysis import analyse
from semsim.comparison.compared import Compared
from semsim.reporting.figures import forest
from semsim.reporting.methods import Origin
from semsim.reporting.report import report_html
from semsim.reporting.tables import tables
from semsim.ui.compare_tabs import _forest_row

NOTE = "ith ties: the interval of |ρ| = 1"  # where a sentence begins, too
NEXT = 1 - 12 / (6 * 35)  # ρ of six models of which two neighbours change places


def ranked(rank):
    """Six models that people rank without ties, and a metric by `rank` of their ranks."""
    found = evidence(n_models=6, n_originals=30)
    models = analyse(found, [PSNR]).models
    ranks = rankdata(models["human"])
    assert len(set(ranks)) == 6
    of_model = dict(zip(models["model"], map(rank, ranks), strict=True))
    values = found.images["model"].map(of_model).to_numpy(dtype=float)
    return analyse(replace(found, scores={"psnr": values}, set_scores={}), [PSNR])


def shown(analysis):
    """Return every place at which the interval stands, by its name."""
    row = analysis.agreement.iloc[0]
    of_tables = {one.name: one.cells.to_string() for one in tables(analysis)}
    return {
        "command": str(Compared(analysis=analysis, origin=Origin())),
        "page": _forest_row(row, (-1.0, 1.0), (np.nan, np.nan))["ends"],
        "figure": forest(analysis).caption,
        "report": report_html(analysis, Origin()),
        "export": analysis.agreement.to_csv(),
        "notes, of cards too": "\n".join(analysis.notes),
        **{name: of_tables[name] for name in ("agreement", "table1")},
    }


def test_two_tied_models_of_six_are_named_beside_the_interval():
    found = ranked(lambda rank: 2.5 if rank in (2, 3) else rank)
    rho = spearmanr([1, 2.5, 2.5, 4, 5, 6], range(6)).statistic
    assert found.agreement["rho"].tolist() == [pytest.approx(rho)]
    assert NEXT < rho < 1
    assert [place for place, text in shown(found).items() if NOTE not in text] == []


@pytest.mark.parametrize("rank", [lambda rank: rank, lambda rank: {1: 2, 2: 1}.get(rank, rank)])
def test_rankings_without_ties_have_no_note(rank):
    found = ranked(rank)
    assert found.agreement["rho"].tolist() in ([1.0], [pytest.approx(NEXT)])
    assert [place for place, text in shown(found).items() if NOTE in text] == []
