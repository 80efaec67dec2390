"""What the address of a recruiting service says about somebody."""

import pytest

from annotation.web.recruiting import code_address, recruit_of

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
