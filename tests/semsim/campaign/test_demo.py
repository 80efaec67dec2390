"""The demo that is committed, and, on a toy scale, the builder that made it."""

import hashlib
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import torch
from made_campaign import one_thread_cluster

from semsim.base.errors import SettingsError
from semsim.base.registry import build
from semsim.base.sets.reader import read_set
from semsim.base.sets.set_format import JURY_COLUMNS
from semsim.campaign.demo import LONGER, STAGES, DemoSettings, build_demo, plans
from semsim.datasets.faces import FaceOrNot
from semsim.datasets.symbols import Symbols
from semsim.defences import DEFENCES, STRATEGIES, make
from semsim.grid.machines import connect
from semsim.images import read_image, to_uint8
from semsim.targets.chance import facts_of_test
from semsim.targets.model import load_target
from semsim.targets.simulated_annotators import JURORS
from semsim.weights import CHECKPOINTS, sha256_of

DEMO = Path(__file__).resolve().parents[3] / "data/demo"
KINDS = {"sets": Symbols(), "pairs": FaceOrNot()}


@cache
def shown_in(kind):
    """The pictures that a kind of sets is of."""
    return KINDS[kind]("test")


STRENGTHS = {"pruning": ("rate", 0.7), "noise": ("std", 0.001)}  # of the paper


def sets_of(kind):
    return [read_set(folder) for folder in sorted((DEMO / kind).glob("*"))]


@pytest.fixture(scope="module")
def sets():
    return sets_of("sets")


def test_is_small():
    files = [*DEMO.rglob("*"), *CHECKPOINTS.glob("demo.*")]
    assert sum(path.stat().st_size for path in files if path.is_file()) <= 4_300_000


@pytest.mark.parametrize("kind", KINDS)
def test_all_sets_are_of_the_same_originals_which_are_the_data_set_to_the_pixel(kind):
    found, test = sets_of(kind), shown_in(kind)
    assert len({one.model for one in found}) == len(found) > 1
    for one in found:
        assert len(one.manifest) == one.manifest["class_name"].nunique()
        assert set(one.manifest["image_id"]) == set(found[0].manifest["image_id"])
    for row in found[0].pairs.itertuples():
        expected = test.images[test.ids.index(row.image_id)]
        assert (to_uint8(read_image(Path(row.original))) == to_uint8(expected)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_records_say_how_they_were_made(kind):
    for found in sets_of(kind):
        run = found.run
        assert run["attack"]["name"] in ("invgrad", "prior")
        target = run["target"]
        assert 0 <= target["accuracy"] <= 1
        assert target["n_classes"] == len(shown_in(kind).classes)
        assert target["n_test"] == len(shown_in(kind))
        assert isinstance(target["at_chance"], bool)
        assert len(target["weights_sha256"]) == 64
        assert run["versions"]["torch"]
        assert run["seconds"] > 0


def test_targets_have_learned_or_are_marked_and_one_is_kept_in_three_stages(sets):
    targets = {found.model.rpartition("/")[0]: found.run["target"] for found in sets}
    labels = shown_in("sets").labels.tolist()
    for target in targets.values():
        assert target | facts_of_test(target["accuracy"], labels, target["n_classes"]) == target
    undefended = [t for name, t in targets.items() if name.split("/")[1] == "none"]
    stages = sorted(
        target["accuracy"]
        for target in undefended
        if target["architecture"]["settings"]["activation"] == "silu"
    )
    assert stages == pytest.approx([0.3, 0.7, 0.97], abs=0.1)


def test_every_target_has_what_was_asked_of_it_or_can_do_no_better(sets):
    targets = {found.model.rpartition("/")[0]: found.run["target"] for found in sets}
    assert len(targets) == 2 * len(STRATEGIES["paper"]) + len(STAGES)
    short = {name: t for name, t in targets.items() if t["accuracy"] < t["train"]["until"]}
    for target in short.values():
        course = target["training"]["test_accuracy"]
        assert len(course) == target["train"]["epochs"] == DemoSettings.longer
        assert course[-1] == pytest.approx(target["accuracy"], abs=1e-4)
        assert max(course[-25:]) - min(course[-25:]) < 0.015  # 24 epochs: seven of 470 pictures
    assert {name.split("/")[1] for name in short} <= set(LONGER)


def test_pruning_and_noise_are_recorded_at_the_strength_that_the_paper_names(sets):
    told = {
        found.run["target"]["strategy"]["name"]: found.run["target"]["strategy"] for found in sets
    }
    for name, (setting, strength) in STRENGTHS.items():
        assert told[f"gradient-{name}"]["settings"][setting] == strength


@pytest.mark.parametrize("kind", KINDS)
def test_attacked_images_are_kept_where_the_strategy_changed_them(kind):
    for found in sets_of(kind):
        changed = found.manifest["attacked"] != found.manifest["original"]
        assert len(list((found.folder / "attacked").glob("*"))) == changed.sum()
        moved = (found.manifest[["shift_x", "shift_y"]] != 0).any(axis=1)
        assert (changed | ~moved).all()


def test_quality_spans_from_clear_to_hopeless(sets):
    errors = [
        (read_image(Path(r.original)) - read_image(Path(r.reconstruction))).square().mean().item()
        for found in sets
        for r in found.pairs.itertuples()
    ]
    assert min(errors) < 0.01  # 20 dB
    assert max(errors) > 0.1  # 10 dB


def test_the_recogniser_knows_clean_images_and_is_not_the_predictor(sets):
    recogniser = load_target(DEMO / "recogniser.safetensors")
    test = Symbols()("test")
    share = (recogniser(test.images).argmax(1) == test.labels).float().mean()
    assert share > 0.9
    assert {found.run["predictor"]["name"] for found in sets} == {"predictor"}
    assert sha256_of(DEMO / "recogniser.safetensors") not in {
        found.run["predictor"]["sha256"] for found in sets
    }


def test_every_set_says_what_each_juror_sees_in_each_of_its_pictures(sets):
    for found in sets:
        table = pd.read_parquet(found.folder / "jury.parquet")
        assert list(table.columns) == list(JURY_COLUMNS)
        assert sorted(table["juror"].unique()) == [juror.name for juror in JURORS]
        per_picture = table.groupby(["subject", "image_id"], observed=True).size()
        assert set(per_picture) == {len(JURORS) * len(found.run["dataset"]["classes"])}
        assert len(per_picture) == 2 * len(found.pairs)


TOY = DemoSettings(
    images=2,
    train_per_class=1,
    width=2,
    epochs=1,
    longer=2,
    attacks=("invgrad:steps=2",),
    judge_epochs=1,
    judge_per_class=1,
    jury_epochs=1,
    jury_per_class=1,
    together=1,  # else what is attacked at once, and so its last digit, depends on what is there
    device="cpu",
    workers=1,
)


def test_the_demo_is_two_architectures_under_seven_strategies_and_stages_of_training():
    made = plans(DemoSettings(attacks=("invgrad:fast", "prior:fast")))
    symbols, longer, stages = made["sets"]
    (faces,) = made["pairs"]
    assert len(symbols.sets) + len(longer.sets) == 2 * len(STRATEGIES["paper"]) * 2
    assert len(longer.sets) == 2 * len(LONGER) * 2
    assert len(stages.sets) == len(STAGES) * 2
    assert {t.plan.train.until for t in (*symbols.targets, *longer.targets)} == {0.65}
    assert {target.plan.train.epochs for target in symbols.targets} == {48}
    assert {target.plan.train.epochs for target in longer.targets} == {96}
    architectures = {one.model.partition("/")[0] for one in symbols.sets}
    assert {one.model.partition("/")[0] for one in stages.sets} < architectures
    assert len({one.model for one in (*symbols.sets, *longer.sets, *stages.sets)}) == 32
    for plan in (symbols, longer, stages):
        assert {cell.image_id for cell in plan.cells} == {c.image_id for c in symbols.cells}
    labels = {faces.images[faces.campaign.datasets[0]].shown(place) for place in range(12)}
    assert labels == {f"face_{number:03d}" for number in range(80, 92)}  # faces, each another


def test_strategies_are_at_the_strength_that_the_paper_names():
    strategies = [one for plan in plans(TOY)["sets"] for one in plan.campaign.strategies]
    for name, (setting, strength) in STRENGTHS.items():
        assert name in strategies
        defence = make(STRATEGIES["paper"][name])
        assert getattr(defence, setting) == strength
        gradient = torch.linspace(0.1, 1, 10)
        (shared,) = defence.gradients((gradient,), torch.Generator().manual_seed(0), "attack")
        assert not torch.equal(shared, gradient)


def test_a_second_build_goes_on_and_ends_in_the_same_files(tmp_path, monkeypatch):
    # A test split of one picture a class: drawing it and naming it was most of a build.
    monkeypatch.setitem(Symbols.__init__.__kwdefaults__, "test_per_class", 1)
    with one_thread_cluster() as cluster, connect(cluster.scheduler_address) as client:
        folders = build_demo(tmp_path / "out", tmp_path / "work", TOY, client)
        for path in sorted((tmp_path / "work/runs/_pieces/cells").iterdir())[::2]:
            path.unlink()
        build_demo(tmp_path / "again", tmp_path / "work", replace(TOY, workers=2), client)
    assert len(folders) == 2 * 7 + len(STAGES) + 2 * 3
    assert digest(tmp_path / "again") == digest(tmp_path / "out")
    moved = {found.model: found.pairs for found in map(read_set, folders)}[
        "cnn4:activation=silu,width=2/crop-flip/invgrad"
    ]
    assert all(Path(path).is_file() for path in moved["attacked"])
    targets = [read_set(folder).run["target"] for folder in folders]
    told = {(t["train"]["epochs"], len(t["training"]["test_accuracy"])) for t in targets}
    assert told == {(TOY.epochs, TOY.epochs), (TOY.longer, TOY.longer)}
    strategy = read_set(folders[0]).run["target"]["strategy"]
    assert build(DEFENCES, strategy["name"], strategy["settings"])


def test_more_images_than_there_are_are_refused():
    with pytest.raises(SettingsError, match="Between 1 and 20 images"):
        DemoSettings(images=21)


def digest(folder: Path) -> dict[str, str]:
    """Of every file, but for what a build cost."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = path.read_bytes()
        if path.name == "run.json":
            content = json.dumps({**json.loads(content), "seconds": None}).encode()
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found
