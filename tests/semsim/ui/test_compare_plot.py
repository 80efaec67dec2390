import pytest
from made_study import MODELS, make_labels

from semsim.metrics import METRICS, Resources
from semsim.scoring import pair_sets_of_labels, score_sets
from semsim.ui import StudyChoice
from semsim.ui.compare_data import compare
from semsim.ui.compare_plot import scatter

MSE = METRICS["mse"].spec


@pytest.fixture
def made(tmp_path):
    def make(votes=5):
        labels = make_labels(tmp_path / "images", n_images=2, votes=votes)
        sets = pair_sets_of_labels(labels)
        book = score_sets(sets, ["mse"], Resources(), tmp_path / "scores")
        return compare(StudyChoice("1", "Made", True), labels, book, [MSE])

    return make


def test_one_point_a_model_at_its_values(made):
    found = made()
    (trace,) = scatter(found, MSE).data
    assert list(trace.x) == found.models["mse"].tolist()
    assert list(trace.y) == found.models["recognised_rate"].tolist()
    assert len(trace.x) == len(MODELS)
    best = list(trace.x).index(0.0)
    assert trace.customdata[best] == "symbols\ninvgrad\nresnet/none"
    assert trace.text[best] == "resnet/none<br>MSE: 0.000<br>people recognise 2 of 2"


def test_without_votes_or_scores_the_figure_says_why_it_is_empty(made):
    for figure in (scatter(made(votes=0), MSE), scatter(made(), None)):
        assert figure.data == ()
        assert "No model has both" in figure.layout.annotations[0].text
