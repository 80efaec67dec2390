"""Times keep their meaning, whatever the database does with zones."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from annotation.errors import UnfitError
from annotation.store.tables import UtcDateTime

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ELSEWHERE = NOON.astimezone(timezone(timedelta(hours=5)))


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
