"""Arms: who sees what, and what they get back."""

from dataclasses import asdict

import pytest
import torch
from made_leaks import made_data, made_images

from semsim.attacks.invgrad import InvGrad
from semsim.base.errors import AttackFailedError, DataError
from semsim.base.sets.reader import read_set
from semsim.systems.federated import pbpfl
from semsim.systems.federated.leak import LeakStudy, arms_for, one_model_each, treated, write_arm
from semsim.systems.federated.rounds import train
from semsim.systems.federated.settings import (
    ARMS,
    PARTIES,
    REFERENCE,
    RESCALED,
    FederatedOrder,
    FederatedSettings,
)
from semsim.systems.federated.views import sent

QUICK = "invgrad:steps=2"


def study(network: str = "mlp-3", attack: str = QUICK, images: int = 2) -> LeakStudy:
    order = FederatedOrder(network=network, images=images, attack=attack)
    return LeakStudy(made_data(), made_images(), order)


def pictures(made: LeakStudy, arm: str) -> list[torch.Tensor]:
    return [one.image for one in made.attack(arm).found]


def test_every_arm_runs_and_its_set_can_be_read(tmp_path):
    made = study()
    for arm in ARMS:
        result = made.attack(arm)
        write_arm(tmp_path / arm, made, result)
        found = read_set(tmp_path / arm)
        assert len(found.pairs) == 2, arm
        assert found.run["federated"]["arm"] == arm
        masks = made.run_of(ARMS[arm]).settings.masks
        assert found.run["federated"]["masks"] == asdict(masks), arm
        assert list(found.manifest["image_id"]) == list(made.attacked().ids)


def test_a_network_allows_arms_and_they_bring_along_what_they_are_compared_with():
    assert arms_for("mlp-3", made_data()) == list(ARMS)
    assert set(ARMS) - set(arms_for("lenet", made_data())) == {"uplink-closed-form"}
    assert arms_for("lenet", made_data(), ["uplink"]) == [REFERENCE, RESCALED, "uplink"]


def test_the_server_of_pbpfl_works_with_fedavgs_gradient():
    made = study("lenet")
    assert made.attack("server-pbpfl").gradient_difference < 1e-9
    both = (pictures(made, arm) for arm in ("server-pbpfl", "server-fedavg"))
    for a, b in zip(*both, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)  # two steps of float32


def test_zero_sum_masks_leave_the_server_a_mixture():
    difference = study().attack("server-zero-sum").gradient_difference
    assert difference is not None
    assert difference > 0.1


def test_the_first_layer_gives_images_away_exactly():
    made = study()
    found = pictures(made, "uplink-closed-form")
    for picture, truth in zip(found, made.attacked().images, strict=True):
        torch.testing.assert_close(picture, truth, rtol=0, atol=1e-6)


def test_what_the_first_layer_gives_away_comes_with_the_distances_of_its_equations(tmp_path):
    made = study()
    result = made.attack("uplink-closed-form")
    run = made.run_of(ARMS["uplink-closed-form"])
    write_arm(tmp_path / "set", made, result)
    rows = read_set(tmp_path / "set").manifest
    for client, found in enumerate(result.found):
        own = pbpfl.under("g", sent(run, client, 1))
        grey = ((0.5 - run.model.mean) / run.model.std).expand(1, *run.model.input_shape).flatten()
        (first,) = (name for name, value in own.items() if value.shape[1:] == grey.shape)
        weight, bias = own[first], own[first.replace("weight", "bias")]
        expected = ((weight - bias[:, None] * grey).norm() / weight.norm()).item()
        assert found.grey_residual == pytest.approx(expected, rel=1e-9)
        assert found.objective < 1e-12  # float64's rounding
        assert found.residual < 1e-6  # the picture's float32
        assert rows["grey_residual"][client] == found.grey_residual
    assert not rows["worse_than_grey"].any()
    assert len(set(rows["grey_residual"])) == 2  # each image has its own


def test_treatments_change_the_network_that_is_attacked():
    made = study("lenet")
    run = made.run_of(ARMS["links-naive"])
    naive, rescaled, clean = (
        treated(run, ARMS[name], 0) for name in ("links-naive", "links-canonical", "links-stripped")
    )
    image = made.attacked().images[:1]
    torch.testing.assert_close(rescaled.model(image), naive.model(image), rtol=1e-4, atol=1e-4)
    assert (clean.model(image) - naive.model(image)).abs().max() > 0.01  # the noise is out
    norms = next(iter(rescaled.model.parameters())).flatten(1).norm(dim=1)
    torch.testing.assert_close(norms, torch.ones_like(norms), rtol=1e-5, atol=1e-5)


def test_a_failed_attack_is_recorded_and_has_no_picture(tmp_path):
    made = study(attack="invgrad:steps=2,tv=1e999")
    result = made.attack("server-fedavg")
    assert all(isinstance(one, AttackFailedError) for one in result.found)
    write_arm(tmp_path / "set", made, result)
    found = read_set(tmp_path / "set")
    assert list(found.manifest["status"]) == ["failed", "failed"]
    assert found.manifest["reconstruction"].isna().all()


def test_images_and_examples_belong_together():
    with pytest.raises(DataError, match="do not belong"):
        LeakStudy(made_data(), made_images(5), FederatedOrder())


def test_parties_choose_among_arms_that_exist():
    assert {arm for arms in PARTIES.values() for arm in arms} <= set(ARMS)


def test_images_attacked_together_come_back_as_they_would_alone():
    made = study("lenet", images=3)
    run = made.run_of(ARMS["server-fedavg"])
    seen = one_model_each([treated(run, ARMS["server-fedavg"], client) for client in range(3)])
    assert len({id(one.model) for one in seen}) == 1
    own = made.run_of(ARMS["links-naive"])
    masked = one_model_each([treated(own, ARMS["links-naive"], client) for client in range(3)])
    assert len({id(one.model) for one in masked}) == 3
    together = pictures(made, "server-fedavg")
    tool = InvGrad(steps=2)
    for client, picture in enumerate(together):
        (alone,) = tool.many([seen[client]], rngs=[torch.Generator().manual_seed(client)])
        torch.testing.assert_close(picture, alone.image, rtol=0, atol=1e-4)


def test_a_trained_network_is_attacked_in_a_later_round():
    order = FederatedOrder(network="mlp-3", images=2, attack_round=4, attack=QUICK)
    made = LeakStudy(made_data(), made_images(), order)
    plain = FederatedSettings(
        network="mlp-3", clients=2, rounds=4, batch_size=1, lr=order.lr, keep=(4,)
    )
    whole = train(plain, made_data())
    for arm in ("server-fedavg", "server-pbpfl"):
        kept = made.run_of(ARMS[arm]).kept[0]
        assert kept.number == 4
        assert kept.members == whole.kept[0].members
        for mine, its in zip(
            kept.server.parameters(), whole.kept[0].server.parameters(), strict=True
        ):
            torch.testing.assert_close(mine, its, rtol=0, atol=0)
    assert made.attack("server-pbpfl").gradient_difference < 1e-9
