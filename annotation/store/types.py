"""Column types that mean the same on SQLite and PostgreSQL."""

from datetime import UTC, datetime

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, Integer
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator

from annotation.errors import UnfitError

Json = JSON().with_variant(JSONB(), "postgresql")
# SQLite counts rows by itself only for a column declared exactly INTEGER PRIMARY KEY.
RowId = BigInteger().with_variant(Integer(), "sqlite")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time stored as UTC; SQLite keeps no zone, so it is put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC going in; raises `UnfitError` for a time without a zone or before year 1 in UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise UnfitError(f"Times need a time zone; got {value.isoformat()} without one.")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise UnfitError(
                f"Times must lie in the years 1 to 9999 in UTC; got {value.isoformat()}."
            ) from None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC coming out."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
