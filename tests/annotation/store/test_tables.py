"""The tables refuse states that code should never make; times keep their meaning in them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from annotation.errors import UnfitError
from annotation.store.tables import SlotRow, Table, UtcDateTime

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ELSEWHERE = NOON.astimezone(timezone(timedelta(hours=5)))


@pytest.mark.parametrize(
    "values",
    [{"state": "lost"}, {"state": "done"}, {"state": "leased"}, {"annotator_id": "nobody"}],
)
def test_slots_cannot_contradict_themselves(store, make_study, values):
    make_study()
    with pytest.raises(IntegrityError):
        store.write(lambda tx: tx.execute(update(SlotRow).values(**values)))


def test_every_constraint_has_a_name():
    for table in Table.metadata.tables.values():
        assert all(constraint.name for constraint in table.constraints), table.name


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()])
@pytest.mark.parametrize("value", [NOON, ELSEWHERE, None])
def test_there_and_back(dialect, value):
    kind = UtcDateTime()
    stored = kind.process_bind_param(value, dialect)
    assert stored is None or stored.utcoffset() == timedelta(0)
    assert kind.process_result_value(stored, dialect) == value


def test_what_comes_back_without_a_zone_is_utc():
    back = UtcDateTime().process_result_value(NOON.replace(tzinfo=None), sqlite.dialect())
    assert back == NOON
    assert back.tzinfo is UTC


def test_times_without_a_zone_are_refused():
    with pytest.raises(UnfitError, match="time zone"):
        UtcDateTime().process_bind_param(NOON.replace(tzinfo=None), sqlite.dialect())


@pytest.mark.parametrize(
    ("year", "hours"), [(1, 14), (9999, -14)], ids=["before the first year", "after the last"]
)
def test_times_that_utc_has_no_year_for_are_refused(year, hours):
    moment = datetime(year, 1, 1, tzinfo=timezone(timedelta(hours=hours)))
    if year == 9999:
        moment = moment.replace(month=12, day=31, hour=23)
    with pytest.raises(UnfitError, match="1 to 9999"):
        UtcDateTime().process_bind_param(moment, sqlite.dialect())
