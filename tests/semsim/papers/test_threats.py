"""The map of attackers: cells that apply, the smallest scale, the sentence of made-up cells."""

import json
import re

import pandas as pd
import pytest
from helpers import ROOT
from made_campaign import carried_out_twice, quick_jury
from typer.testing import CliRunner

from benchmarks.cheap_claims import cells_of_threats
from semsim.attacks import SHARED
from semsim.attacks.as_text import read_attack, read_shared, threat_of
from semsim.base.errors import SettingsError
from semsim.base.registry import build, built
from semsim.campaign.plan import check
from semsim.cli.reproduce import app
from semsim.papers.threats import ORIGINALS, SEEDS, scale_of, sentence
from semsim.reporting.leak_map import threat_map


def asked(name):
    """Cells of a scale: network, batch, attack and attacker."""
    for _, one in scale_of(name).parts:
        shared = read_shared(one.shares[0])
        batch = built(SHARED, shared).pictures
        network = one.architectures[0].partition(":")[0]
        for text in one.attacks:
            attack = read_attack(text)
            yield network, batch, attack.name, threat_of(attack, shared).words


@pytest.mark.parametrize("name", ["smoke", "small"])
def test_attacks_meet_the_batches_and_models_that_they_apply_to(name):
    for _, one in scale_of(name).parts:
        check(one)
        assert one.images % build(SHARED, *_shared(one)).pictures == 0
        assert set(one.trainings) == {"epochs=0", ""}
    cells = set(asked(name))
    assert {batch for _, batch, attack, _ in cells if attack == "dlg"} == {1}
    assert {network for network, _, attack, _ in cells if attack == "imprint"} == {"imprint"}
    assert {attack for network, _, attack, _ in cells if network == "imprint"} == {"imprint"}
    assert {who for *_, who in cells} == {"A", "B", "B, labels known", "G"}
    with pytest.raises(SettingsError, match="smoke, small"):
        scale_of("paper")


def _shared(campaign):
    shared = read_shared(campaign.shares[0])
    return shared.name, shared.settings


def test_small_has_enough_for_a_conclusion():
    parts = [one for _, one in scale_of("small").parts]
    assert {batch for _, batch, *_ in asked("small")} == {1, 8, 32}
    for one in parts:
        assert one.images >= ORIGINALS
        assert len(one.seeds) >= SEEDS
        assert one.strategies == ("none", "noise", "dp-sgd")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The smallest scale twice, with few metrics and judges that learn quickly."""
    folder = tmp_path_factory.mktemp("threats")
    words = ["threats", "--preset", "smoke", "--json", "--workers", "1", "--out", str(folder)]
    with quick_jury(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("semsim.papers.judged.METRICS", ("psnr", "mse"))
        done, written = carried_out_twice(
            lambda: CliRunner().invoke(app, [*words, "--device", "cpu"]), folder
        )
    return folder / "smoke", done, written


@pytest.fixture
def cells(made):
    folder, _, _ = made
    table = pd.read_csv(folder / "threats.csv", keep_default_na=False, na_values=[""])
    return table[table["status"] != "control"].fillna({"noticed": ""})


def test_every_cell_that_applies_has_its_numbers_or_a_reason(made, cells):
    _, done, _ = made
    scale = scale_of("smoke")
    declared = 4 * len(list(asked("smoke")))  # two strategies, untrained and trained
    assert len(cells) == declared == len(json.loads(done.stdout)["cells"]) - 3
    assert set(scale.parts[0][1].strategies) == set(cells["strategy"])
    applies = cells["status"] != "cannot be"
    shares = ["exact", "clearer", "people", "people_grey", "people_mean", "accuracy"]
    assert cells.loc[applies, shares].notna().all(axis=None)
    assert cells.loc[~applies, shares].isna().all(axis=None)
    refused = cells[~applies]
    assert set(zip(refused["network"], refused["attack"], strict=True)) == {("cnn4", "spear")}
    assert refused["why"].str.contains("linear layer").all()
    assert cells["simulated"].all()


def test_exact_attacks_are_exact_until_dp_sgd(cells):
    solved = cells[cells["attack"].isin(["spear", "imprint"]) & (cells["status"] != "cannot be")]
    private = solved["strategy"] == "dp-sgd"
    assert (solved.loc[~private, "exact"] == 1).all()
    assert (solved.loc[private, ["exact", "clearer", "people"]] == 0).all(axis=None)
    assert (cells["exact"].dropna() <= cells["clearer"].dropna()).all()


def test_a_promise_is_of_a_training(cells):
    private = (cells["strategy"] == "dp-sgd") & (cells["state"] == "trained")
    made = cells[cells["status"] != "cannot be"]
    assert (made["epsilon"].notna() == private[made.index]).all()


def test_a_client_is_warned_of_changed_models_alone(cells):
    made = cells[cells["status"] != "cannot be"]
    assert ((made["noticed"] != "") == (made["network"] == "imprint")).all()


def test_one_client_has_no_interval(cells):
    made = cells[cells["status"] != "cannot be"]
    assert (made["exact_low"].notna() == (made["batch"] == 1)).all()


def test_the_text_begins_with_the_sentence_and_marks_what_is_simulated(made, cells):
    folder, _, _ = made
    text = (folder / "threats.md").read_text(encoding="utf-8")
    assert text.startswith(sentence(cells))
    assert "recognised (simulated)" in text
    assert "Programs answer, not people." in text
    assert "originals by majority" in text
    assert (folder / "threats.svg").exists()


def test_it_goes_on_where_it_ended(made):
    _, _, (first, second) = made
    assert first
    assert second == first


def made_up(**changes):
    usual = {
        "network": "mlp",
        "state": "trained",
        "strategy": "none",
        "batch": 8,
        "attack": "spear",
        "attacker": "B",
        "status": "ok",
        "exact": 1.0,
        "clearer": 1.0,
        "noticed": "",
        "originals": ORIGINALS,
        "seeds": SEEDS,
    }
    return {**usual, **changes}


def test_the_sentence_names_the_largest_batch_that_comes_back_exactly():
    told = sentence(
        pd.DataFrame(
            [
                made_up(batch=1),
                made_up(batch=8, state="untrained"),
                made_up(batch=32, exact=0.4),
                made_up(attack="imprint", attacker="G", network="imprint", noticed="equal rows"),
                made_up(strategy="dp-sgd", exact=0.0, noticed="D-SNR"),
                made_up(network="cnn4", status="cannot be"),
                made_up(network="", status="control"),
            ]
        )
    )
    assert told == (
        "Without a defence spear (attacker B, batches up to 8 on untrained mlp) and imprint "
        "(attacker G, batches up to 8 on trained imprint) return most pictures exactly; under "
        "dp-sgd no attack returns most pictures exactly. Signs in the model warn a client of 1 of "
        "1 changed models, and of 1 of 3 honest ones."
    )


@pytest.mark.parametrize("few", [{"originals": ORIGINALS - 1}, {"seeds": SEEDS - 1}])
def test_the_sentence_of_few_originals_or_seeds_says_that_they_are_too_few(few):
    assert sentence(pd.DataFrame([made_up(**few)])).endswith("too few for a conclusion.")
    assert "too few" not in sentence(pd.DataFrame([made_up()]))


def test_the_figure_has_a_row_an_attacker_and_marks_exact_cells():
    drawn = threat_map(
        pd.DataFrame(
            [
                made_up(batch=8),
                made_up(batch=1, exact=0.0, clearer=0.5),
                made_up(network="cnn4", clearer=float("nan"), exact=float("nan")),
                made_up(network=""),
            ]
        ),
        "A sentence.",
    )
    shown = drawn.frame.set_index("column")["text"].to_dict()
    assert shown == {"none, trained, 1": "50", "none, trained, 8": "100="}
    assert set(drawn.frame["row"]) == {"B: spear on mlp"}
    assert drawn.title == "A sentence."


def test_the_page_has_the_sentence_of_its_cells():
    text = (ROOT / "docs/threats.md").read_text(encoding="utf-8")
    page = " ".join(re.sub(r"<!--.*?-->", "", text).split())
    assert sentence(cells_of_threats()) in page
    assert "too few for a conclusion" in page
