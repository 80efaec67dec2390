import pytest

from semsim.attacks import ATTACKS, SHARED
from semsim.attacks.as_text import check_attack, read_attack, read_shared, threat_of
from semsim.base.errors import SettingsError, UnknownNameError
from semsim.base.registry import Plugin, all_settings, build, built

SEVERAL = {"invgrad", "prior", "spear", "imprint"}


@pytest.mark.parametrize("way", SHARED)
@pytest.mark.parametrize("attack", ATTACKS)
def test_closed_forms_and_attacks_on_one_gradient_are_refused(way, attack):
    asked = read_attack(attack), read_shared(way)
    if way == "gradient" or attack in SEVERAL:
        check_attack(*asked)
    else:
        with pytest.raises(SettingsError, match="attacked by invgrad, prior, spear and imprint"):
            check_attack(*asked)


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        ("invgrad:batch_norm=train", "said with what is shared"),
        ("prior:max_shift=4", "max_shift=0"),
    ],
)
def test_settings_that_several_pictures_have_no_use_for_are_refused(attack, told):
    with pytest.raises(SettingsError, match=told):
        check_attack(read_attack(attack), read_shared("update"))
    check_attack(read_attack(attack), read_shared("gradient"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("update:steps=0", "steps must be at least 1"),
        ("update:batch=0", "batch must be at least 1"),
        ("update:lr=0", "lr must be above 0"),
        ("update:momentum=1.0", "momentum must be below 1"),
        ("update:momentum=-0.1", "momentum must be 0 or more"),
        ("update:batch=4,held=6", "multiple of batch=4; got 6"),
        ("update:steps=2,batch=4,held=12", "8 of 12 pictures"),
        ("update:batch_norm=off", "batch_norm must be eval or train"),
        ("batch-gradient:batch=0", "batch must be at least 1"),
        ("gradient:batch=8", "no setting 'batch'"),
    ],
)
def test_what_cannot_be_is_refused(text, told):
    with pytest.raises(SettingsError, match=told):
        read_shared(text)


def test_a_way_there_is_not():
    with pytest.raises(UnknownNameError, match="batch-gradient, gradient, update"):
        read_shared("weights")


def test_pictures_go_round():
    plugin = read_shared("update:steps=5,batch=2,held=6")
    made = built(SHARED, plugin)
    assert made.pictures == 6
    assert [(t.start, t.stop) for t in made.local.turns(6)] == [
        *[(0, 2), (2, 4), (4, 6)],
        *[(0, 2), (2, 4)],
    ]


def test_an_update_reaches_as_far_as_its_steps_and_farther_with_momentum():
    reach = build(SHARED, "update", {"steps": 3}).local.reach
    assert reach == 3
    # By hand: 1, then 1 + ½, then 1 + ½ + ¼.
    assert build(SHARED, "update", {"steps": 3, "momentum": 0.5}).local.reach == 4.25


@pytest.mark.parametrize(
    ("attack", "way", "words"),
    [
        ("dlg", "gradient", "A"),
        ("idlg", "batch-gradient", "A"),
        ("idlg:label=known", "gradient", "A, labels known"),
        ("invgrad", "gradient", "B, labels known"),
        ("invgrad:label=inferred", "gradient", "B"),
        ("invgrad", "update", "C, labels known"),
        ("rgap", "gradient", "B"),
        ("spear", "batch-gradient", "B"),
        ("imprint", "update", "G"),
        ("gradattack:fast", "gradient", "B, labels known"),
        ("gradattack:paper", "gradient", "E, labels known"),
        ("gradattack:code", "gradient", "E"),
    ],
)
def test_an_attack_declares_its_attacker_and_settings_change_it(attack, way, words):
    """DLG, iDLG, InvGrad, R-GAP, SPEAR and imprint have the letters of the SoK's table."""
    assert threat_of(read_attack(attack), read_shared(way)).words == words


@pytest.mark.parametrize("name", ATTACKS)
def test_what_an_attack_declares_is_what_its_defaults_say(name):
    declared, usual = ATTACKS.needs(name), all_settings(ATTACKS, Plugin(name=name))
    assert declared.threat.labels is (usual.get("label") == "known")
    assert declared.threat.statistics is (usual.get("statistics", "none") != "none")
    assert declared.several is hasattr(ATTACKS[name], "updates")


def test_an_attacker_who_lacks_what_an_attack_needs_is_refused():
    asked = read_attack("invgrad:label=inferred"), read_shared("update")
    check_attack(*asked, "C")
    with pytest.raises(SettingsError, match="invgrad on update needs the clients' local steps,"):
        check_attack(*asked, "B")
