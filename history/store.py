"""The store of the history: SQLite or PostgreSQL, opened by one writer or by any number of readers.

SQLite runs with a write-ahead log, so readers never wait for the writer. `synchronous` is NORMAL: a killed process
loses nothing; a machine that loses its power may lose the last transactions, and how far the recorder has read is
part of each transaction, so it reads from there again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from sqlalchemy import Connection, Engine, create_engine, event, inspect, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from history.model import Changes
from history.schema import GANGS, GAPS, HAPPENINGS, HOLDINGS, NOTES, RUNS

REVISION: Final = "0001"
"""The schema that this version reads and writes: the last step in `migrations`."""
MEMORY: Final = "sqlite://"
"""The store of who has none: it is gone with its process."""
_BUSY_S: Final = 10.0
_KINDS: Final = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
_AT_ONCE: Final = 500


class StoreError(Exception):
    """The store cannot be used; the message says which, why and what to do. It has no password in it."""


class Store:
    """One store by its URL: `sqlite:////path/to/file` or `postgresql://user@host/name`."""

    def __init__(self, engine: Engine, shown: str) -> None:
        self.engine = engine
        self.shown = shown
        """Its URL without a password."""

    @classmethod
    def for_writing(cls, url: str) -> Self:
        """Open a store for the recorder, and bring its schema up to date. StoreError if that fails."""
        store = cls(*_engine(url))
        with store.failing():
            store._upgrade()
        return store

    @classmethod
    def for_reading(cls, url: str) -> Self:
        """Open a store that a recorder has made. StoreError if there is none, or it has another schema."""
        engine, shown = _engine(url)
        store = cls(engine, shown)
        file = engine.url.database
        if engine.dialect.name == "sqlite" and file and not Path(file).exists():
            raise StoreError(f"there is no history at {shown}: no recorder has run with it yet")
        with store.failing():
            store.check()
        return store

    def check(self) -> None:
        """StoreError if the schema is not the one of this version."""
        with self.engine.connect() as connection:
            found = _revision(connection)
        if found != REVISION:
            made = f"has schema {found}" if found else "has no schema yet"
            raise StoreError(
                f"the history at {self.shown} {made}, and this version reads {REVISION}: "
                "let the recorder of the same version start first, which brings it up to date"
            )

    def close(self) -> None:
        """End all connections."""
        self.engine.dispose()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Turn an error of the database into a StoreError that names the store."""
        try:
            yield
        except SQLAlchemyError as error:
            why = str(getattr(error, "orig", None) or error).strip().splitlines()
            raise StoreError(f"the history at {self.shown} cannot be used: {why[0] if why else error}") from error

    def _upgrade(self) -> None:
        from alembic import command  # noqa: PLC0415 - readers, which never take a step, start in half the time
        from alembic.config import Config  # noqa: PLC0415

        with self.engine.begin() as connection:
            if _revision(connection) == REVISION:
                return
            config = Config()
            config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
            config.set_main_option("path_separator", "os")
            config.attributes["connection"] = connection
            command.upgrade(config, REVISION)

    def note(self, key: str) -> str:
        """Return what the recorder has noted under a key; empty if nothing."""
        with self.engine.connect() as connection:
            return str(connection.scalar(select(NOTES.c.value).where(NOTES.c.key == key)) or "")

    def write(self, changes: Changes, notes: dict[str, str]) -> None:
        """Write changes and notes in one transaction. What has ended stays as it is, and nothing happens twice."""
        with self.failing(), self.engine.begin() as connection:
            self._put(connection, GANGS, "id", [*map(msgspec.structs.asdict, changes.gangs.values())])
            self._put(connection, RUNS, "uid", [_packed(each, "asked") for each in changes.runs.values()], final=True)
            holdings = [_packed(each, "amounts") for each in changes.holdings.values()]
            self._put(connection, HOLDINGS, "pod", holdings, final=True)
            happenings = [_packed(each, "nodes") for each in changes.happenings]
            self._put(connection, HAPPENINGS, "", happenings)
            self._put(connection, GAPS, "", [*map(msgspec.structs.asdict, changes.gaps)])
            self.put_notes(connection, notes)

    def put_notes(self, connection: Connection, notes: dict[str, str]) -> None:
        """Write notes of the recorder's."""
        self._put(connection, NOTES, "key", [{"key": key, "value": value} for key, value in notes.items()])

    def _put(
        self, connection: Connection, table: Any, key: str, rows: Sequence[dict[str, Any]], *, final: bool = False
    ) -> None:
        """Insert rows; those whose key is there are replaced, unless they have ended and that is `final`.

        Without a key, rows that are there already stay.
        """
        if not rows:
            return
        insert = self.insert(table)
        if key:
            new = {column.name: insert.excluded[column.name] for column in table.c if column.name != key}
            where = table.c.ended.is_(None) if final else None
            insert = insert.on_conflict_do_update(index_elements=[key], set_=new, where=where)
        else:
            insert = insert.on_conflict_do_nothing()
        for first in range(0, len(rows), _AT_ONCE):
            connection.execute(insert, rows[first : first + _AT_ONCE])

    def insert(self, table: Any) -> Any:
        """Return an INSERT that can say what becomes of conflicts, in the words of the database."""
        return (postgresql if self.engine.dialect.name == "postgresql" else sqlite).insert(table)

    def megabytes(self) -> float:
        """Return the size of what is stored, without room that is free again."""
        with self.failing(), self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                pages, free, size = (
                    connection.execute(text(f"PRAGMA {name}")).scalar_one()
                    for name in ("page_count", "freelist_count", "page_size")
                )
                return float((pages - free) * size / 1e6)
            tables = (NOTES, GANGS, RUNS, HOLDINGS, HAPPENINGS, GAPS)
            return sum(
                float(connection.execute(text("SELECT pg_total_relation_size(:name)"), {"name": one.name}).scalar_one())
                for one in tables
            ) / 1e6  # fmt: skip


def _packed(row: msgspec.Struct, field: str) -> dict[str, Any]:
    """Return a row with one field as JSON."""
    values = msgspec.structs.asdict(row)
    return {**values, field: msgspec.json.encode(values[field]).decode()}


def _engine(url: str) -> tuple[Engine, str]:
    """Return the engine of a URL, and the URL without its password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(
            "the history's database is no URL: write sqlite:////folder/history.db or "
            "postgresql://user:password@host:5432/database"
        ) from None
    shown = parsed.render_as_string(hide_password=True)
    driver = _KINDS.get(parsed.get_backend_name())
    if driver is None:
        raise StoreError(f"{shown}: there is no such kind of store; there are {' and '.join(_KINDS)}")
    parsed = parsed.set(drivername=driver)
    try:
        if driver != "sqlite":
            engine = create_engine(parsed, pool_pre_ping=True, pool_size=2, connect_args={"connect_timeout": 10})
            return engine, shown
        given: dict[str, Any] = {"connect_args": {"timeout": _BUSY_S, "check_same_thread": False}}
        if not parsed.database or parsed.database == ":memory:":
            given["poolclass"] = StaticPool  # each connection would have a store of its own
        engine = create_engine(parsed, **given)
    except (SQLAlchemyError, ImportError) as error:
        raise StoreError(f"the history at {shown} cannot be used: {error}") from error
    event.listen(engine, "connect", _prepare)
    return engine, shown


def _prepare(connection: Any, _: Any) -> None:
    """Set up a connection to SQLite."""
    cursor = connection.cursor()
    cursor.execute(
        "PRAGMA auto_vacuum = INCREMENTAL"
    )  # before the first table: room of days that went can be given back
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.close()


def _revision(connection: Connection) -> str:
    """Return the step that the schema has come to; empty without one."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")
