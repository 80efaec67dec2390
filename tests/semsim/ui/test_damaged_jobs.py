"""Pages open whatever is left of a job's folder, and say what is wrong with it."""

import json
from dataclasses import replace
from functools import cache
from shutil import rmtree

import gradio as gr
import pytest

from semsim.base.jobs import folders as jobs
from semsim.campaign.campaign_job import KIND as CAMPAIGN
from semsim.learning.ablations import AblationPlan
from semsim.learning.ablations_run import KIND as TRAINING
from semsim.systems.federated.settings import KIND as FEDERATED
from semsim.systems.split.plan import KIND as SPLIT
from semsim.ui import pages
from semsim.ui.compare_data import ComparisonView, opened
from semsim.ui.compare_files import SCORE_JOB, scoring_job

PAGE = {address: page for _, address, page in pages.PAGES}
PAGES = [
    (PAGE["train"], TRAINING),
    (PAGE["train"], AblationPlan.KIND),
    (PAGE["reconstruct"], CAMPAIGN),
    (PAGE["federated"], FEDERATED),
    (PAGE["split"], SPLIT),
]
DONE = {"result.json": "{}"}
DAMAGES = {
    "nothing but the order": {},
    "half a result": {"result.json": '{"leak": '},
    "an empty result": DONE,
    "no list in the result": {"result.json": '{"study": 7, "leak": 7, "rows": 7, "what": "x"}'},
    "half a report": {"progress.jsonl": '{"done": 1, "total": 9}\n{"done": 2, "to'},
    "reports of another kind": {"progress.jsonl": '[]\n{"done": "x", "total": []}\n', **DONE},
    "half a pid": {"pid.json": '{"pid": 1'},
    "half a spec": {"spec.json": '{"kind": '},
    "bytes in the error": {"error.txt": "\udcff\udcfe"},
}


@pytest.fixture
def context(small_context, tmp_path):
    return replace(small_context, data=tmp_path)


@pytest.fixture(scope="module")
def rendered(small_context, tmp_path_factory):
    """A page and the folder of its data, made once: what it shows is worked out when it loads."""

    @cache
    def made(page):
        data = tmp_path_factory.mktemp("data")
        with gr.Blocks():
            return data, page.render(replace(small_context, data=data))

    return made


def opened_page(loads):
    """What every part of a page shows when it opens, as text."""
    shown = []
    for load, outputs in loads:
        values = load()
        assert not isinstance(outputs, list) or len(values) == len(outputs)
        shown += [str(getattr(value, "choices", value)) for value in values]
    return "\n".join(shown)


@pytest.mark.parametrize(("page", "kind"), PAGES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_page_opens_beside_a_damaged_job(page, kind, damage, rendered):
    data, loads = rendered(page)
    root = data / "jobs"
    rmtree(root, ignore_errors=True)
    jobs.create(root, kind=kind, title="The whole one")
    damaged = jobs.create(root, kind=kind, title="The damaged one")
    for name, text in DAMAGES[damage].items():
        (damaged.folder / name).write_text(text, errors="surrogateescape")
    shown = opened_page(loads)
    assert ("damaged one" in shown) == ("spec.json" not in DAMAGES[damage])
    assert "whole one" in shown


@pytest.mark.parametrize(("page", "kind"), PAGES[::3])
def test_a_page_says_what_cannot_be_read(page, kind, rendered):
    data, loads = rendered(page)
    job = jobs.create(data / "jobs", kind=kind, title="The damaged one")
    (job.folder / "result.json").write_text(json.dumps({"other": 1}))
    shown = opened_page(loads)
    assert "cannot be shown" in shown
    assert job.id in shown


def test_a_scoring_job_without_its_request_is_passed_over(context):
    damaged = jobs.create(context.data / "jobs", kind=SCORE_JOB, title="Scoring")
    (damaged.folder / "request.json").write_text('{"study": ')
    found = opened(context, ComparisonView(study="1"))
    complete = replace(found, book=replace(found.book, missing=()))
    assert scoring_job(context, complete) is None
