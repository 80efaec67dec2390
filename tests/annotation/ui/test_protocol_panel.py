"""The versions of a protocol as a table."""

from dataclasses import replace
from datetime import UTC, datetime

from annotation.domain import ProtocolVersion
from annotation.spec import StudySpec, Task
from annotation.ui.study_view import versions_table

FIRST = ProtocolVersion(
    version=1,
    sha256="a" * 64,
    spec=StudySpec(name="S", task=Task.RECOGNITION, consent="x"),
    why="",
    by="",
    at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    changed=(),
)


def test_the_first_version_is_as_made():
    text = versions_table([FIRST])
    assert "as made" in text
    assert "2026-01-02 03:04 UTC" in text
    assert "a" * 12 in text


def test_a_change_says_what_why_and_by_whom_and_is_escaped():
    spec = replace(FIRST.spec, lease_seconds=900, check=True, consent="")
    second = replace(
        FIRST,
        version=2,
        spec=spec,
        why="<b>slow</b> people",
        by="Ada",
        changed=("lease_seconds", "check", "consent"),
    )
    text = versions_table([FIRST, second])
    assert "lease_seconds = 900, check = yes, consent = (empty)" in text
    assert "(Ada)" in text
    assert "&lt;b&gt;slow" in text
    assert "<b>" not in text
