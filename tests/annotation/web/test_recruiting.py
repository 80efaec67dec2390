"""What the address of a recruiting service says about somebody."""

import pytest

from annotation.web.page_api import code_address, placeholder_in, recruit_of

PROLIFIC = {"PROLIFIC_PID": "5f1e", "STUDY_ID": "60aa", "SESSION_ID": "61bb"}
TURK = {"workerId": "A2", "assignmentId": "3X", "hitId": "3H"}


@pytest.mark.parametrize(
    ("parameters", "name"), [(PROLIFIC, "5f1e"), (TURK, "A2"), ({"participant": "P 7"}, "P 7")]
)
def test_each_service_gives_a_pseudonym_and_its_ids(parameters, name):
    recruit = recruit_of({**parameters, "utm_source": "mail"})
    assert (recruit.pseudonym, recruit.ids) == (name, parameters)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"STUDY_ID": "1"}, {"PROLIFIC_PID": "  "}, {"PROLIFIC_PID": "x" * 81}, {"name": "Ada"}],
)
def test_who_is_not_named_comes_by_the_usual_page(parameters):
    assert recruit_of(parameters) is None


def test_the_code_is_put_into_the_address_where_it_belongs():
    assert code_address("https://a.b/c?cc={code}", "X Y&Z") == "https://a.b/c?cc=X%20Y%26Z"
    assert code_address("https://a.b/c", "X") == "https://a.b/c"


@pytest.mark.parametrize("name", ["PROLIFIC_PID", "workerId", "participant", "SESSION_ID"])
@pytest.mark.parametrize(
    "left",
    [
        *("{{%PROLIFIC_PID%}}", "${e://Field/PROLIFIC_PID}", "[PROLIFIC_PID]", "%ID%", "", "  "),
        *("<id>", "{id}", "__WORKER_ID__", "undefined", "NULL", "$id"),
        *("None", "N/A", "(null)", "?", "\u200b", "«ID»", "&lt;ID&gt;", "YOUR_ID_HERE", "workerid"),
        *("xxx", "XX", "test", "Testing", "TODO", "NaN", "(ID)", "(A2)", "«A2»", "session_id"),
        *("ASSIGNMENT_ID_NOT_AVAILABLE", "%SURVEY_CODE%", "[%ID%]", "{{participantId}}", "sona_id"),
    ],
)
def test_a_placeholder_that_nobody_filled_in_is_found(name, left):
    assert placeholder_in({**TURK, name: left}) == f"{name}={left.strip()}"


@pytest.mark.parametrize(
    "parameters",
    [
        *({}, PROLIFIC, TURK, {"participant": "P 7"}, {"participantId": "id_1"}, {"x": "[y]"}),
        *({"participant": name} for name in ("trial-1", "test2", "x", "0", "123", "Nana", "Tess")),
    ],
)
def test_ids_are_no_placeholders(parameters):
    assert placeholder_in(parameters) == ""
