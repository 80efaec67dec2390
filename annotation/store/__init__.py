"""The only door to the database, and the only place that knows SQL.

`store.read` and `store.write` run a function in one transaction. What may be done inside one
lies in `studies` (studies and their items), `people` (annotators, sessions), `slots` (claiming
and voting), `reports` (what researchers look at) and `accounts` (who runs studies).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import inspect, make_url
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from annotation.store import engine as engines
from annotation.store.migrate import upgrade
from semsim.base.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")
_NOTHING = (
    "There are no studies at {} yet. Make one with `semsim-studio study create` or in the studio, "
    "or say where they are with --data-dir or --database."
)


class Store:
    """An open, up-to-date database; safe to share between threads.

    Attributes:
        make: Whether tables, and the file of SQLite, are made where there are none.

    Raises:
        StoreError: If `url` is no address of a database that can be used, or there is none and it
            is not made.
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self.url = url
        self._by: str | None = None
        file = engines.sqlite_file(url)
        if not make and file is not None and str(file) != ":memory:" and not file.is_file():
            raise StoreError(_NOTHING.format(file))
        self._engine = engines.open_engine(url, only_read=not make)
        self._reader = engines.reader(self._engine)
        self._writer = engines.writer(self._engine)
        # PostgreSQL lets many write at a time, and keeps an order among those who wait.
        self._turns = engines.Turns() if self._engine.dialect.name == "sqlite" else None
        if self._turns is not None:
            Path(str(make_url(url).database)).parent.mkdir(parents=True, exist_ok=True)
        try:
            if not make and not inspect(self._engine).has_table("study"):
                self.close()
                raise StoreError(_NOTHING.format(self._engine.url))
            upgrade(self._engine)
        except DatabaseError as error:
            self.close()
            raise engines.unusable(self._engine, error) from error

    def read(self, work: Callable[[Session], T]) -> T:
        """`work` on one unchanging snapshot of the database."""
        return engines.run(self._reader, work)

    def write(self, work: Callable[[Session], T], *, yields: bool = False) -> T:
        """`work` in one transaction, durable when this returns, run anew after a lost race.

        On SQLite, where one writes at a time, this process's writers come in the order they asked;
        who yields lets the others go first.
        """
        turn: Callable[[], AbstractContextManager[None]] = nullcontext
        if self._turns is not None:
            turn = partial(self._turns.turn, yields=yields)
        return engines.run(self._writer, work, by=self._by, turn=turn)

    def by(self, name: str | None) -> "Store":
        """The same database; events say that what is written there is done with this account."""
        other = copy(self)
        other._by = name
        return other

    def alone(self) -> AbstractContextManager[None]:
        """A lock on what several servers on one database must not do at the same time.

        Others who ask for it wait, in whatever process; transactions go on as usual. Raises
        `StoreError` after `engine.PATIENCE` seconds of waiting.
        """
        return engines.alone(self._engine)

    def scrub(self) -> None:
        """Take what deleted and changed rows left behind out of the database's files.

        Writers wait meanwhile. Raises `StoreError` if others are too busy for it.
        """
        engines.scrub(self._engine)

    def settle(self) -> None:
        """Make what has just been stored quick to read; asked for when much has been."""
        engines.settle(self._engine)

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def reading(work: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Store, P], T]:
    """`work` as a use case: in one transaction of the store that it is given."""

    @wraps(work)
    def use_case(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.read(lambda tx: work(tx, *args, **kwargs))

    return use_case


def writing(work: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Store, P], T]:
    """The same for what changes something: durable when it returns."""

    @wraps(work)
    def use_case(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.write(lambda tx: work(tx, *args, **kwargs))

    return use_case
