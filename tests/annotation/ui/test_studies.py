"""The Studies page, without a browser."""

from types import SimpleNamespace

import gradio as gr
import pytest

from annotation.study.labelling import list_studies
from annotation.study.protocols import protocol_versions
from annotation.ui import protocol_panel, studies


@pytest.mark.parametrize("account", [None, "eva"], ids=["no accounts", "an account"])
def test_the_protocol_says_which_account_made_a_study(context, account):
    with gr.Blocks(analytics_enabled=False) as demo:
        studies.render(context)
    (create,) = (one for one in demo.fns.values() if one.name == "create")
    given = {box.elem_id: box.value for box in create.inputs}
    given |= {"new-sets": [str(context.find_sets()[0][1])], "new-name": "Made"}
    request = SimpleNamespace(username=account, headers={"host": "lab"}, request=None)
    request.request = SimpleNamespace(url=SimpleNamespace(scheme="http"))
    create.fn(request, *given.values())
    (study,) = list_studies(context.store)
    page = protocol_panel.versions_table(protocol_versions(context.store, study.id))
    assert ("UTC (eva)<" in page) == (account is not None)
    assert "()" not in page
