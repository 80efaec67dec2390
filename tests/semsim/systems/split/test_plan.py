import json
from dataclasses import replace

import pytest

from semsim.base.errors import SemsimError
from semsim.base.jobs.orders import from_record, to_record
from semsim.systems.split.defences import DropoutEnsemble, Ensembler, Undefended
from semsim.systems.split.plan import (
    ALIGN,
    ARMS,
    PRESETS,
    ShadowAttack,
    SplitPlan,
    attacks_on,
    check,
)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_can_be_carried_out_and_survives_json(preset):
    plan = PRESETS[preset]
    assert check(plan) == plan
    assert from_record(SplitPlan, json.loads(json.dumps(to_record(plan)))) == plan


def test_the_paper_s_preset_has_its_numbers():
    words = " ".join(PRESETS["paper"].defences)
    assert "ensembler:bodies=10,selected=4" in words
    assert PRESETS["paper"].networks == ("resnet18",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "../x"}, "cannot name an experiment"),
        ({"defences": ()}, "defences"),
        ({"images": 0}, "at least one image"),
        ({"networks": ("small:depth=3",)}, "depth"),
        ({"attacks": ("guess",)}, "guess"),
        ({"defences": ("ensembler:bodies=2,selected=3",)}, "selected"),
        ({"dataset": "mnist"}, "mnist"),
        ({"metrics": ("beauty",)}, "beauty"),
    ],
)
def test_what_cannot_be_is_refused(changes, says):
    with pytest.raises(SemsimError, match=says):
        check(replace(PRESETS["small"], **changes))


def test_each_attack_is_run_once(bench):
    base = ShadowAttack()
    lone, ensemble = Undefended()(bench), Ensembler(bodies=3, selected=2)(bench)
    all_answer = DropoutEnsemble(bodies=2)(bench)
    assert attacks_on(lone, "adaptive", base) == [base]
    assert attacks_on(lone, "one-body", base) == attacks_on(lone, "oracle", base) == []
    assert attacks_on(all_answer, "oracle", base) == []
    each = attacks_on(ensemble, "one-body-aligned", base)
    assert [tool.bodies for tool in each] == [(0,), (1,), (2,)]
    assert {tool.align for tool in each} == {ALIGN}
    (oracle,) = attacks_on(ensemble, "oracle", base)
    assert oracle.bodies == ensemble.selected
    assert not oracle.learn_selector


def test_every_published_attack_has_an_aligned_twin():
    plain = [name for name in ARMS if not name.endswith("-aligned")]
    assert set(ARMS) == {*plain, *(f"{name}-aligned" for name in plain)}
