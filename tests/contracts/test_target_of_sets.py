"""Whoever writes reconstruction sets says in them how good the target model was, and both
readers tell it."""

import json
from functools import partial

import pytest
from distributed import Client
from made_campaign import SYMBOLS, one_thread_cluster, toy_campaign
from made_leaks import made_data, made_images
from study_factory import write_set as write_human_set

from annotation.study import sets as human_sets
from semsim.base.sets.reader import read_set
from semsim.campaign.campaign_job import plan_of
from semsim.campaign.runner import HowToRun, run_plan
from semsim.campaign.vertical import VerticalRun, attack_vertical
from semsim.systems.federated.leak import LeakStudy, write_arm
from semsim.systems.federated.settings import FederatedOrder
from semsim.systems.split.plan import ShadowAttack, SplitPlace, SplitPlan, SplitTrainSettings
from semsim.systems.split.run import run_split
from semsim.targets.chance import facts_of_test, is_chance


def by_campaign(folder, **changes):
    campaign = toy_campaign(**{"strategies": ("none",), "images": 2, **changes})
    with one_thread_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        return run_plan(plan_of(campaign), folder, client, HowToRun(device="cpu"))["sets"]


def by_private_campaign(folder):
    private = {"architectures": ("cnn4:width=2",), "attacks": ("invgrad:steps=2",)}
    return by_campaign(folder, strategies=("dp-sgd:noise=2",), **private)


def by_split(folder):
    plan = SplitPlan(
        name="tiny",
        dataset="digits:size=12,count=180",
        networks=("small:width=2",),
        defences=("none",),
        attacks=("adaptive",),
        train=SplitTrainSettings(epochs=1, batch_size=256),
        shadow=ShadowAttack(epochs=1, decoder_epochs=1, batch_size=256),
        images=2,
        attack_invalid=True,
    )
    return run_split(plan, SplitPlace(data=folder, checkpoints=folder, device="cpu"))["sets"]


def by_federated(folder, attack_round=1):
    order = FederatedOrder(
        network="mlp-3", images=2, attack="invgrad:steps=2", attack_round=attack_round
    )
    study = LeakStudy(made_data(), made_images(), order)
    write_arm(folder / "set", study, study.attack("server-fedavg"))
    return [folder / "set"]


def by_vertical(folder):
    run = VerticalRun(
        name="v", dataset=SYMBOLS, attack="cafe:steps=2", images=2, batch=1, width=2, hidden=4
    )
    return [attack_vertical(run, folder)]


WRITERS = {
    "campaign": by_campaign,
    "campaign, by DP-SGD": by_private_campaign,
    "split": by_split,
    "federated": by_federated,
    "federated, later": partial(by_federated, attack_round=3),
    "vertical": by_vertical,
}


PROMISING = (by_private_campaign,)


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_a_set_says_how_good_its_target_was_and_whether_that_is_chance(writer, tmp_path):
    (folder, *_) = writer(tmp_path)
    found = read_set(folder)
    target = found.run["target"]
    assert target["n_classes"] == len(found.run["dataset"]["classes"])
    right = round(target["accuracy"] * target["n_test"])
    assert target["chance"] >= 1 / target["n_classes"]
    assert target["at_chance"] is is_chance(right, target["n_test"], target["chance"])
    told = f"{target['accuracy']:.0%} right{': at chance' if target['at_chance'] else ' (chance'}"
    assert found.target_words.startswith(told)
    assert ("epsilon" in target) is (", ε = " in found.target_words) is (writer in PROMISING)
    assert found.attacker_words.startswith(found.run["threat"]["words"])
    assert found.run["threat"]["letter"] or found.run["threat"]["system"] != "horizontal"
    if writer is by_split:  # where features are seen, and no gradient
        assert "seen" not in found.run
    else:
        assert found.run["seen"]["parameters"] == found.run["seen"]["of"] > 0
        assert " parameters (100%)" in found.attacker_words
    if not found.pairs.empty:  # people are asked about pictures
        target = human_sets.read_set(folder).target
        assert (target.text, target.attacker) == (found.target_words, found.attacker_words)


def test_an_untrained_network_of_vertical_learning_is_said_to_be_one_and_is_at_chance(tmp_path):
    target = read_set(by_vertical(tmp_path)[0]).run["target"]
    assert target["trained"] is False
    assert target["at_chance"] is True


def test_both_readers_say_where_the_commonest_class_alone_does_as_well(tmp_path):
    folder = write_human_set(tmp_path / "uneven")
    run = json.loads((folder / "run.json").read_text())
    run["target"] = facts_of_test(0.92, [0] * 23 + [1] * 2, 2)
    (folder / "run.json").write_text(json.dumps(run))
    told = "92% right: at chance (92%, the commonest class)"
    assert human_sets.read_set(folder).target.text == read_set(folder).target_words == told
    assert human_sets.read_set(folder).target.chance == run["target"]["chance"] == 0.92
