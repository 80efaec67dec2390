"""Every format of the product: one reader a number, and one sentence for every other number."""

import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch

from annotation.study.sets import read_set as read_set_for_people
from semsim.api import pretrained as pretrained_module
from semsim.base.errors import DataError, SemsimError
from semsim.base.jobs import folders
from semsim.base.progress import silent
from semsim.base.sets import imports
from semsim.base.sets.reader import read_set
from semsim.base.storage.records import (
    CASES,
    PEOPLE_ANSWER,
    RECONSTRUCTION_SET,
    read_record,
    write_record,
)
from semsim.campaign import forecast, plan, watch
from semsim.campaign.campaign_job import plan_of
from semsim.comparison import own_scores
from semsim.distractors.registry import classes_of
from semsim.importers import import_job, uploads
from semsim.learning import ablations_run, card, default_checkpoint, initial, settings, train
from semsim.metrics import Resources, find_metric, provenance, scoring
from semsim.metrics.network import load_semsim
from semsim.papers import copa, pbpfl
from semsim.systems.federated import settings as federated_settings
from semsim.systems.split import run as split_run
from semsim.targets import chance, checkpoint
from semsim.targets.model import load_target
from semsim.weights import FORMAT as WEIGHTS
from semsim.weights import read_manifest, sha256_of, write_tensors

ROOT = Path(__file__).parents[2]


def below(name, reader):
    """A reader of the file called `name` as one of its folder."""
    return lambda folder: reader(folder / name)


def own_table(data):
    """Read the table of own scores as pages do, which name a bad one and go on."""
    path = data / "scores/own/a.parquet"
    return own_scores._table(path, path.read_bytes())


WEIGHT_FILE = partial(below, "a.safetensors")
# A format, the file that says it, and who reads that from its folder.
READ = [
    (RECONSTRUCTION_SET, "run.json", read_set),
    (RECONSTRUCTION_SET, "run.json", read_set_for_people),
    (CASES, "a.json", lambda folder: read_record(folder / "a.json", CASES, DataError)),
    (
        PEOPLE_ANSWER,
        "b.json",
        lambda folder: read_record(folder / "b.json", PEOPLE_ANSWER, DataError),
    ),
    (WEIGHTS, "manifest.json", read_manifest),
    (imports.FORMAT, "import.json", imports.read_import),
    (
        import_job.PLAN_FORMAT,
        "plan.json",
        lambda at: import_job.read_plan(at, sha256_of(at / "plan.json"), "", silent, at),
    ),
    (card.FORMAT, "a.card.json", WEIGHT_FILE(card.read_card)),
    (folders.FORMAT, "spec.json", folders.read_job),
    (watch.FORMAT, "runs/a/campaign.json", lambda folder: watch.read_campaign(folder, "a")),
    (federated_settings.FORMAT, "order.json", federated_settings.kept_training),
    (pbpfl.FORMAT, "preset.json", partial(pbpfl.reproduced, pbpfl.PRESETS["smoke"])),
    (
        ablations_run.ARM_FORMAT,
        "arm.json",
        lambda folder: ablations_run.run_sides(None, None, None, folder, facts={}),
    ),
    (
        train.FORMAT,
        settings.STATE_FILE,
        lambda folder: train.read_state(folder / settings.STATE_FILE, None, None),
    ),
    (own_scores.FORMAT, "scores/own/a.parquet", own_table),
    (provenance.FORMAT, "a.safetensors", WEIGHT_FILE(load_semsim)),
    (chance.CLASSIFIER, "a.safetensors", WEIGHT_FILE(load_target)),
    (chance.CLASSIFIER, "a.safetensors", WEIGHT_FILE(chance.target_facts)),
    (chance.CLASSIFIER, "a.safetensors", WEIGHT_FILE(classes_of)),
    (initial.START, "a.safetensors", WEIGHT_FILE(initial.start_facts)),
    (
        checkpoint.FORMAT,
        "a.safetensors",
        lambda folder: checkpoint.read_state(folder / "a.safetensors", ""),
    ),
    (
        pretrained_module.FORMAT,
        "model.safetensors",
        pretrained_module.SemSim.from_pretrained,
    ),
]
# What stands beside it where a reader looks for that first.
BESIDE = ("manifest.parquet", "votes.parquet", "labels.parquet", "training.json")
# Read where another number is as good as none: which SemSim is shown first, a file half sent.
FORGOTTEN = {default_checkpoint.FORMAT, uploads.FORMAT}
# Part of a key, by which another number finds nothing.
IN_KEYS = {
    scoring.FORMAT,
    plan.TARGET_FORMAT,
    plan.CELL_FORMAT,
    forecast.FORMAT,
    split_run.FORMAT,
    copa.FORMAT,
}


def write_as(path, form):
    """A file of its kind that says nothing but its format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".safetensors":
        write_tensors(path, {"a": torch.zeros(1)}, form, {})
    elif path.suffix == ".pt":
        torch.save({"format": form}, path)
    elif path.suffix == ".parquet":
        table = pd.DataFrame({"a": [0]})
        table.attrs = {"format": form}
        table.to_parquet(path)
    else:
        write_record(path, form, {})


@pytest.mark.parametrize(
    ("form", "file", "read"), READ, ids=[f"{f}-{n}" for n, (f, *_) in enumerate(READ)]
)
def test_another_number_is_refused_in_one_sentence(tmp_path, form, file, read):
    for name in {*BESIDE} - {file}:
        (tmp_path / name).touch()
    (tmp_path / "config.json").write_text("{}")
    other = f"{form.rpartition('/')[0]}/99"
    write_as(tmp_path / file, other)
    sentence = f"{file} has format {other!r}; expected {form!r}. Make it again with this version."
    with pytest.raises(SemsimError, match=re.escape(sentence)):
        read(tmp_path)


def test_a_choice_or_an_upload_of_another_number_is_none(tmp_path):
    write_as(tmp_path / default_checkpoint.PROMOTED_FILE, "semsim-chosen/99")
    assert default_checkpoint.promoted(tmp_path) is None
    made = uploads.begin(tmp_path / "uploads", "a.zip", 1, "")
    assert uploads.find(tmp_path / "uploads", made.folder.name) == made
    write_as(made.folder / "upload.json", "semsim-upload/99")
    with pytest.raises(uploads.NoUploadError, match="Choose the files again"):
        uploads.find(tmp_path / "uploads", made.folder.name)


def planned():
    return plan_of(plan.Campaign(name="a", strategies=("none",), images=1))


@pytest.mark.parametrize(
    ("module", "name", "key"),
    [
        (scoring, "FORMAT", lambda: scoring.score_key(find_metric("mse"), "", Resources())),
        (split_run, "FORMAT", lambda: split_run.key_of({})),
        (plan, "TARGET_FORMAT", lambda: planned().targets[0].key),
        (plan, "CELL_FORMAT", lambda: next(planned().sets[0].batches())[0].key),
        (forecast, "FORMAT", lambda: list(forecast._probes(planned()))),
        (
            copa,
            "FORMAT",
            lambda: list(copa.Networks(copa.pictures_of(None), [1], ["tanh"], [0]).pieces),
        ),
    ],
    ids=["scores", "split", "target", "cell", "probe", "copa"],
)
def test_another_number_makes_another_key(module, name, key, monkeypatch):
    before = key()
    assert key() == before
    monkeypatch.setattr(module, name, "another/1")
    assert key() != before


def test_every_format_is_in_these_lists_and_in_the_documents():
    sources = [*ROOT.glob("semsim/**/*.py"), *ROOT.glob("annotation/**/*.py"), ROOT / "app.py"]
    found = {
        form
        for path in sources
        for form in re.findall(r'"(semsim-[a-z-]+/[0-9]+)"', path.read_text(encoding="utf-8"))
    }
    listed = {form for form, *_ in READ} | FORGOTTEN | IN_KEYS
    assert found == listed
    told = (ROOT / "docs/how-to/places.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(semsim-[a-z-]+/[0-9]+)`", told)) == listed
