"""A whole comparison: curves, costs, what leaks, and going on after an interruption."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_leaks import made_data

from semsim.base.errors import SettingsError, UnknownNameError
from semsim.base.jobs import folders as jobs
from semsim.base.progress import Progress
from semsim.systems.federated.comparison import carry_out, check, compared, load, queue_comparison
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import (
    ARMS,
    REFERENCE,
    RESCALED,
    FederatedJob,
    FederatedOrder,
)
from semsim.systems.federated.summary import cost_table, curve_table, leak_table, training_words

SYMBOLS = "symbols:train_per_class=1,test_per_class=1,size=16"
TINY = FederatedOrder(
    data=SYMBOLS,
    network="mlp-3",
    clients=2,
    rounds=2,
    batch_size=4,
    arms=("server-pbpfl", "uplink-closed-form"),
    images=2,
    attack="invgrad:steps=2",
)


def test_a_comparison_ends_in_curves_verdicts_and_sets(tmp_path: Path):
    told: list[Progress] = []
    result = carry_out(TINY, tmp_path, told.append)
    assert set(result["training"]["curves"]) == {"FedAvg", "PBPFL"}
    assert result["training"]["largest_difference"] < 1e-9
    assert [score["verdict"] for score in result["leak"]["scores"]] == [
        "reference",
        "reference",
        "identical",
        "as much",
    ]
    done = {path.parent.name for path in (tmp_path / "sets").glob("*/run.json")}
    assert done == {REFERENCE, RESCALED, "server-pbpfl", "uplink-closed-form"}
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert told[-1].done == told[-1].total
    json.dumps(result)  # a job keeps it


def test_what_is_there_is_not_computed_again(tmp_path: Path):
    first = carry_out(TINY, tmp_path)
    changed = {path: path.stat().st_mtime_ns for path in tmp_path.glob("**/*.json")}
    (tmp_path / "sets" / "server-pbpfl" / "run.json").unlink()
    again = carry_out(TINY, tmp_path)
    for one, other in zip(first["leak"]["scores"], again["leak"]["scores"], strict=True):
        assert one["verdict"] == other["verdict"]
        assert one["ssim"] == pytest.approx(other["ssim"], abs=1e-4)
    new = {p for p in tmp_path.glob("**/*.json") if p.stat().st_mtime_ns != changed[p]}
    assert new == {tmp_path / "sets" / "server-pbpfl" / "run.json"}


def test_a_folder_belongs_to_one_order(tmp_path: Path):
    order = replace(TINY, arms=())
    carry_out(order, tmp_path)
    with pytest.raises(SettingsError, match=r"lr=0\.05"):
        carry_out(replace(order, lr=0.1), tmp_path)


def test_a_folder_belongs_to_the_examples_it_began_with(tmp_path: Path):
    table = tmp_path / "table.csv"
    table.write_text("x,y\n" + "\n".join(f"{i},{i % 2}" for i in range(20)))
    order = replace(TINY, data=f"table:path={table},target=y", arms=())
    out = tmp_path / "out"
    carry_out(order, out)
    table.write_text("x,y\n" + "\n".join(f"{i},{(i + 1) % 2}" for i in range(20)))
    with pytest.raises(SettingsError, match="other examples"):
        carry_out(order, out)


def test_rows_of_a_table_leak_in_closed_form(tmp_path: Path):
    order = replace(TINY, data="breast-cancer")
    leak = carry_out(order, tmp_path)["leak"]
    assert leak["rows"] == 2
    assert leak["largest_error"] < 1e-6
    assert "no protection" in leak["summary"][0]


def test_masks_change_neither_model_nor_predictions():
    order = replace(TINY, rounds=3, cross_entropy=True)
    found = compared(order, made_data(side=8))
    assert set(found["curves"]) == {"FedAvg", "PBPFL", "FedAvg, cross-entropy"}
    assert found["largest_difference"] < 1e-9
    assert found["released"]["predictions"] < 1e-12
    assert found["released"]["parameters"] > 0.01
    assert found["gamma"]["error_after"] < 0.5 * found["gamma"]["error_before"]
    down, up = (
        found["traffic"]["PBPFL"][way] / found["traffic"]["FedAvg"][way]
        for way in ("numbers_down", "numbers_up")
    )
    assert 1 < down < 1.01
    assert 2.9 < up < 3  # β of the last layer is not sent


def test_tables_for_people(tmp_path: Path):
    result = carry_out(TINY, tmp_path)
    training = result["training"]
    assert "PBPFL" in curve_table(training)
    assert "numbers up" in cost_table(training)
    assert "A client finds γ" in training_words(training)
    assert "first layer solved" in leak_table(result["leak"])


def test_an_order_becomes_a_job_that_says_where_results_go(tmp_path: Path):
    job = queue_comparison(TINY, tmp_path)
    out = tmp_path / "runs" / "federated" / "symbols-mlp-3-1"
    assert jobs.read_order(job, FederatedJob) == FederatedJob(order=TINY, out=out)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"data": "nothing"}, UnknownNameError, "nothing"),
        ({"network": "lenet", "data": "diabetes", "arms": ("everybody",)}, UnknownNameError, "arm"),
        ({"images": 0}, SettingsError, "images must be at least 1"),
        ({"images": 1, "arms": ("client-own-mask",)}, SettingsError, "Images each is 1"),
        ({"images": 1, "arms": ("server-zero-sum",)}, SettingsError, "zero-sum masks, server"),
        ({"attack": "invgrad:step=3"}, SettingsError, "no setting 'step'"),
        ({"noise_scope": "all"}, SettingsError, "noise_scope"),
        ({"data": "digits:size=8"}, SettingsError, "11 pixels"),
        ({"images": 200}, SettingsError, "Images each is 200.* training examples"),
        ({"data": "diabetes", "images": 400}, SettingsError, "354 training examples"),
        ({"clients": 999}, SettingsError, "999 clients need as many examples"),
        ({"network": "lenet", "data": "diabetes"}, SettingsError, "For tables take 'mlp-3'"),
        ({"attack": "rgap"}, SettingsError, "The attack rgap does not go with mlp-3: .*invgrad"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(change, error, words, tmp_path: Path):
    order, told = replace(TINY, **change), []
    with pytest.raises(error, match=words):
        check(order)
    with pytest.raises(error, match=words):
        carry_out(order, tmp_path / "out", told.append)
    assert told == []
    assert not (tmp_path / "out").exists()


def test_where_nothing_is_attacked_nothing_is_asked_of_attacks():
    for change in ({"data": "digits:size=8,count=60"}, {"images": 200}, {"attack": "rgap"}):
        check(replace(TINY, **{"arms": (), **change}))
    check(replace(TINY, data="digit-values", images=4000))
    check(replace(TINY, data="breast-cancer", attack="rgap"))


def test_trying_an_attack_trains_nothing_but_a_step_on_one_image(monkeypatch):
    seen = []

    def watched(settings, data, **more):
        seen.append((settings.clients, settings.rounds, len(data.train), len(data.test)))
        return train(settings, data, **more)

    monkeypatch.setattr("semsim.systems.federated.leak.train", watched)
    check(replace(TINY, attack_round=5))
    assert seen == [(1, 1, 1, 1)]


def test_a_party_without_a_second_client_is_refused_before_anything_is_trained(tmp_path: Path):
    order = replace(TINY, clients=3, images=1, arms=("server-pbpfl", "client-same-mask"))
    told: list[Progress] = []
    with pytest.raises(SettingsError, match="another client with the same mask") as refused:
        carry_out(order, tmp_path / "out", told.append)
    assert "--images" in str(refused.value)
    assert "--arms" in str(refused.value)
    assert "PBPFL, server" not in str(refused.value)  # that one can do with a single image
    assert told == []
    assert not (tmp_path / "out").exists()


def test_one_image_is_enough_for_the_others_and_for_a_table():
    check(replace(TINY, images=1))
    check(replace(TINY, data="breast-cancer", images=1, arms=tuple(ARMS)))


def test_tables_have_no_images():
    assert load("diabetes").images is None
    assert load(SYMBOLS).images is not None
