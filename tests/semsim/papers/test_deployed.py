"""What is deployed: its rows, and its smallest scale whole."""

import json

import numpy as np
import pandas as pd
import pytest
from made_campaign import carried_out_twice, quick_jury
from made_marks import marked, unmarked
from made_papers import check_kept
from torch import nn
from typer.testing import CliRunner

from benchmarks.papers import read_deployed
from semsim.attacks.as_text import read_attack
from semsim.base.errors import SettingsError
from semsim.base.registry import built, read_plugin
from semsim.campaign.plan import check
from semsim.cli.reproduce import app
from semsim.papers import deployed
from semsim.papers.deployed import plans_of, scale_of, set_name
from semsim.papers.judged import ENOUGH, jury_text
from semsim.targets import TARGETS

SCALES = ("smoke", "small", "paper")
METRICS = ("psnr", "ssim", "mse", "recogniser", "semsim:demo")
NOTHING = "Simulated annotators: no evidence about people."


def typed(*words: str):
    return CliRunner().invoke(app, ["deployed", "--device", "cpu", *words])


@pytest.mark.parametrize("name", SCALES)
def test_every_row_can_be_asked_for_and_is_attacked_by_invgrad(name):
    asked = [campaign for _, campaign in scale_of(name).parts]
    for one in asked:
        check(one)
    assert {read_attack(one.attacks[0]).name for one in asked} == {"invgrad"}
    shares = {one.shares[0] for one in asked}
    for part in ("gradient", "steps=1,", "momentum=0.9"):
        assert any(part in share for share in shares), part
    strategies = [one.strategies[0] for one in asked]
    assert "dp-sgd:noise=0" in strategies
    assert len({one.name for one in asked}) == len(asked)
    with pytest.raises(SettingsError, match="smoke, small, paper"):
        scale_of("large")


def test_small_has_the_steps_and_the_batch_that_were_asked_for():
    asked = [campaign for _, campaign in scale_of("small").parts]
    shares = [one.shares[0] for one in asked]
    for steps in (1, 4, 8):
        assert any(f"steps={steps},batch=8" in share for share in shares)
    noise = [one for one in asked if "dp-sgd" in one.strategies[0]]
    assert len(noise) >= 4


@pytest.mark.parametrize("name", SCALES)
def test_the_network_with_batch_norm_differs_in_that_alone(name):
    texts = dict.fromkeys(one.architectures[0] for _, one in scale_of(name).parts)
    plain, normal = (read_plugin(TARGETS, text) for text in texts)
    bodies = [built(TARGETS, one).build(3, (32, 32))[0] for one in (plain, normal)]
    kinds = [[type(one) for one in body] for body in bodies]
    assert nn.BatchNorm2d not in kinds[0]
    assert [kind for kind in kinds[1] if kind is not nn.BatchNorm2d] == kinds[0]


def test_rows_share_targets_and_no_two_sets_have_one_name():
    scale = scale_of("smoke")
    plans = plans_of(scale)
    names = [one.model for plan in plans.values() for one in plan.sets]
    trainings = scale.parts[0][1].trainings
    assert len(names) == len(set(names)) == len(scale.parts) * len(trainings)
    keys = {one.key for plan in plans.values() for one in plan.targets}
    assert len(keys) == 4  # plain, with batch norm, clipped, noised
    assert set_name(scale.parts[0][0], "until=0.3") == "Gradient of one picture, until=0.3"


@pytest.mark.parametrize(("right", "enough"), [(9, True), (8, False)])
def test_a_jury_that_knows_too_few_originals_says_so(right, enough):
    told = jury_text(originals=10, recognised=right, votes=0.7)
    assert enough == (right / 10 >= ENOUGH)
    assert ("too blunt" in told) != enough
    assert f"{right} of 10 originals by majority (70% of their votes)" in told


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The smallest scale twice, on a cluster in this process; its pictures are ranked once."""
    folder = tmp_path_factory.mktemp("deployed")
    words = ["--preset", "smoke", "--json", "--workers", "1", "--out", str(folder)]
    ranked, within = [], deployed._within

    def once(*given):
        ranked.extend([] if ranked else [within(*given)])
        return ranked[0]

    with quick_jury(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(deployed, "_within", once)
        done, written = carried_out_twice(lambda: typed(*words), folder)
    return folder / "smoke", done, written


def test_the_metric_of_the_voters_kind_is_marked(made):
    folder, _, _ = made
    text = (folder / "deployed.md").read_text(encoding="utf-8")
    assert marked(text)
    assert unmarked(text) == []


def test_every_row_stands_beside_the_controls(made):
    folder, done, _ = made
    scale = scale_of("smoke")
    table = pd.read_csv(folder / "rows.csv")
    assert len(json.loads(done.stdout)["cells"]) == len(table) == len(scale.parts) + 3
    assert table["simulated"].all()
    ours, controls = (table[(table["row"] == "control") == known] for known in (False, True))
    assert ours["title"].tolist() == [title for title, _ in scale.parts]
    assert (ours["n_ok"] == scale.parts[0][1].images).all()
    guesses = ["people", "people_grey", "people_mean"]
    assert ours[[*METRICS, *guesses]].notna().all(axis=None)
    same = controls.set_index("title").loc["the original itself", ["psnr", "psnr-registered"]]
    assert np.isinf(
        same.astype(float)
    ).all()  # of all its pictures, so there is nothing to leave out
    by = controls.set_index("title")["people"]
    assert (ours["people_grey"] == by["a grey picture"]).all()
    assert (ours["people_mean"] == by["the mean training picture"]).all()
    private = ours["strategy"].str.startswith("dp-sgd")
    assert (ours["delta"].notna() == private).all()
    assert (ours["epsilon"].notna() == (private & (ours["strategy"] != "dp-sgd:noise=0"))).all()


def test_what_benchmarks_keep_of_it_lies_in_its_folder(made):
    folder, _, _ = made
    noises = dict.fromkeys(("noise-0.003", "noise-0.1", "noise-1.0"), "noise-0.01")
    ranks = {f"{a}, {one}": f"{b}, {one}" for a, b in noises.items() for one in METRICS}
    check_kept("deployed", read_deployed(folder), {"rows": noises, "within": ranks})


def test_an_attack_that_goes_the_steps_finds_other_pictures_than_one_that_does_not(made):
    folder, _, _ = made
    table = pd.read_csv(folder / "rows.csv").set_index("row")
    assert table.loc["many", "mse"] != table.loc["many-as-one", "mse"]
    assert table.loc["few", "mse"] != table.loc["momentum", "mse"]


def test_agreement_has_a_number_or_a_reason_within_rows_and_over_them(made):
    folder, _, _ = made
    scale = scale_of("smoke")
    within, over = (pd.read_csv(folder / f"{name}.csv") for name in ("within", "over"))
    assert set(within["row_title"]) == {title for title, _ in scale.parts}
    for table in (within, over):
        assert set(METRICS) <= set(table["metric"])
        assert (table["rho"].notna() | table["undefined"].notna()).all()
        assert (table["rho"].notna() == table["tau"].notna()).all()
        assert table["simulated"].all()
    assert (within["n"] == scale.parts[0][1].images).all()
    assert (over["n"] == len(scale.parts)).all()  # sets, the controls are none of them


def test_the_tables_say_whose_votes_and_how_blunt(made):
    folder, _, _ = made
    text = (folder / "deployed.md").read_text(encoding="utf-8")
    assert text.startswith("The simulated annotators recognise ")
    assert text.count(NOTHING) == text.count("\n\n| ") == 4
    # At smoke the jury has learned next to nothing.
    assert text.count("too blunt to stand for people in any row") == 5


def test_it_goes_on_where_it_ended(made):
    _, _, (first, second) = made
    assert first
    assert second == first
