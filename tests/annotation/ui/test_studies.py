"""The Studies page, without a browser."""

import html
from types import SimpleNamespace

import gradio as gr
import pytest

from annotation.design.list_facts import RANDOM_LISTS
from annotation.study import exports
from annotation.study.labelling import list_studies
from annotation.study.protocols import protocol_versions
from annotation.ui import protocol_panel, studies


def created(context, account=None, **given):
    """What the page shows after somebody made a study with the form, by the id of the component."""
    with gr.Blocks(analytics_enabled=False) as demo:
        studies.render(context)
    (create,) = (one for one in demo.fns.values() if one.name == "create")
    filled = {box.elem_id: box.value for box in create.inputs}
    filled |= {"new-sets": [str(context.find_sets()[0][1])], "new-name": "Made", **given}
    request = SimpleNamespace(username=account, headers={"host": "lab"}, request=None)
    request.request = SimpleNamespace(url=SimpleNamespace(scheme="http"))
    shown = create.fn(request, *filled.values())
    return dict(zip([box.elem_id for box in create.outputs], shown, strict=True))


def test_what_planning_found_out_is_said_once_the_study_is_made(context):
    shown = created(context, **{"new-list-size": 4.0})
    (study,) = list_studies(context.store)
    said = exports.facts_of_lists(context.store, study.id).said
    assert "who was told which words are right somewhere names" in said[-1]
    for sentence in ("Made is made.", RANDOM_LISTS, *said, "annotators needed"):
        assert sentence in html.unescape(shown["new-preview"])
    assert shown["new-problems"] == ""
    refused = created(context, **{"new-name": ""})
    assert "needs a name" in refused["new-problems"]
    assert refused["new-preview"] == gr.skip()


@pytest.mark.parametrize("account", [None, "eva"], ids=["no accounts", "an account"])
def test_the_protocol_says_which_account_made_a_study(context, account):
    created(context, account)
    (study,) = list_studies(context.store)
    page = protocol_panel.versions_table(protocol_versions(context.store, study.id))
    assert ("UTC (eva)<" in page) == (account is not None)
    assert "()" not in page
