"""The store of the history: SQLite or PostgreSQL, opened by one writer or by any number of readers.

SQLite runs with a write-ahead log, so readers never wait for the writer. SQLite's setting `synchronous` is NORMAL, so
that a killed process loses no transaction. If a machine loses its power, the last transactions may be lost. Each
transaction also stores how far the recorder has read, so the recorder reads the lost changes again.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote, unquote

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import StaticPool

from history.model import GangRun, Holding, LastSeen, RecordedGang, RowChanges, moves_of, vector_of
from history.schema import DAYS, FOLDS, GANG_EVENTS, GANGS, GAPS, HOLDINGS, METADATA, NOTES, RUNS, VERSIONS

STORE_VARIABLE: Final = "MUSTER_HISTORY"
"""Environment variable with the URL of the store, for the web page and commands."""
REVISION: Final = "0003"
"""Schema version of this code: the last step in `migrations`."""
_BUSY_S: Final = 10.0
_KINDS: Final = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
_AT_ONCE: Final = 500
"""Maximum number of rows per statement."""
_SEEN: Final = msgspec.json.Decoder(LastSeen)


class StoreError(Exception):
    """Error for an unusable store; the message contains the store's URL (no password), the cause and the remedy."""


@cache
def _insertion(dialect: str, table: sa.Table, *, once: bool, unended: bool, keep: tuple[str, ...]) -> sa.Executable:
    """Return the SQL statement that `insert_rows` executes.

    The statement is cached, because building it takes longer than executing it.
    """
    of_dialect = postgresql if dialect == "postgresql" else sqlite
    insert: postgresql.Insert | sqlite.Insert = of_dialect.insert(table)
    if once:
        return insert.on_conflict_do_nothing()
    keys = [column.name for column in table.primary_key]
    new: dict[str, Any] = {column.name: insert.excluded[column.name] for column in table.c if column.name not in keys}
    new |= {name: sa.func.coalesce(table.c[name], new[name]) for name in keep}
    where = table.c.ended.is_(None) if unended else None
    return insert.on_conflict_do_update(index_elements=keys, set_=new, where=where)


class HistoryStore:
    """A store of the history, named by a URL: `sqlite:////path/to/file` or `postgresql://user@host/name`."""

    def __init__(self, engine: sa.Engine, shown: str, *, checked: bool = True) -> None:
        self.engine = engine
        self.shown = shown
        """The store's URL without the password."""
        self._checked = checked

    @classmethod
    def for_writing(cls, url: str) -> Self:
        """Open a store for the recorder, and bring the store's schema up to date. Raises StoreError on failure."""
        store = cls(*_engine(url))
        with store.failing():
            store._upgrade()
        return store

    @classmethod
    def for_reading(cls, url: str) -> Self:
        """Open a store that a recorder has created.

        Raises StoreError if there is no store, or if the store has another schema version.
        """
        store = cls.for_serving(url)
        with store.failing():
            pass
        return store

    @classmethod
    def for_serving(cls, url: str) -> Self:
        """Return a store that may not exist yet; until a recorder has created it, each read raises StoreError."""
        return cls(*_engine(url, make=False), checked=False)

    def _check(self) -> None:
        """Raise StoreError if there is no store, or if the store has another schema version."""
        file = unquote((self.engine.url.database or "").removeprefix("file:"))
        if self.engine.dialect.name == "sqlite" and file and not Path(file).exists():
            raise StoreError(f"there is no history at {self.shown}: no recorder has run with it yet")
        with self.engine.connect() as connection:
            found = _revision(connection)
        if found != REVISION:
            made = f"has schema {found}" if found else "has no schema yet"
            raise StoreError(
                f"the history at {self.shown} {made}, and this version reads {REVISION}: "
                "let the recorder of the same version start first, which brings it up to date"
            )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Convert a database error in the `with` block to a StoreError that names the store."""
        try:
            if not self._checked:
                self._check()
                self._checked = True
            yield
        except SQLAlchemyError as error:
            why = str(getattr(error, "orig", None) or error).strip().splitlines()
            raise StoreError(f"the history at {self.shown} cannot be used: {why[0] if why else error}") from error

    def _upgrade(self) -> None:
        """Create the tables of a new store, or migrate an old store."""
        with self.engine.begin() as connection:
            found = _revision(connection)
            if not found and not sa.inspect(connection).has_table(NOTES.name):
                METADATA.create_all(connection)
                VERSIONS.create(connection)
                connection.execute(VERSIONS.insert(), {"version_num": REVISION})
            elif found != REVISION:
                self._take_steps(connection)

    def _take_steps(self, connection: sa.Connection) -> None:
        from alembic import command  # noqa: PLC0415 - its import costs more than the start of all else
        from alembic.config import Config  # noqa: PLC0415
        from alembic.util import CommandError  # noqa: PLC0415

        config = Config()
        config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, REVISION)
        except CommandError as error:
            raise StoreError(
                f"the history at {self.shown} cannot be brought to schema {REVISION}: {error}. "
                "If a newer version has written it, use that version, or another store"
            ) from error

    def note(self, key: str) -> str:
        """Return the recorder's note with the given key; empty if there is no such note."""
        with self.failing(), self.engine.connect() as connection:
            return str(connection.scalar(sa.select(NOTES.c.value).where(NOTES.c.key == key)) or "")

    def write(self, changes: RowChanges, notes: dict[str, str]) -> None:
        """Write changes and notes in one transaction.

        Ended rows stay unchanged, and an event that is already stored is not stored again.
        """
        with self.failing(), self.engine.begin() as connection:
            self.insert_rows(
                connection, GANGS, [_packed(each) for each in changes.gangs.values()], keep=("submitted", "started")
            )
            runs = [_packed(each, "asked", "seen", "moves") for each in changes.runs.values()]
            self.insert_rows(connection, RUNS, runs, unended=True)
            holdings = [_packed(each, "amounts", "moves") for each in changes.holdings.values()]
            self.insert_rows(connection, HOLDINGS, holdings, unended=True)
            gang_events = [_packed(each, "nodes") for each in changes.gang_events]
            self.insert_rows(connection, GANG_EVENTS, gang_events, once=True)
            self.insert_rows(connection, GAPS, [_packed(each) for each in changes.gaps], once=True)
            self.put_notes(connection, notes)

    def put_notes(self, connection: sa.Connection, notes: dict[str, str]) -> None:
        """Write the recorder's notes, given by key."""
        self.insert_rows(connection, NOTES, [{"key": key, "value": value} for key, value in notes.items()])

    def insert_rows(
        self,
        connection: sa.Connection,
        table: sa.Table,
        rows: Sequence[dict[str, Any]],
        *,
        once: bool = False,
        unended: bool = False,
        keep: tuple[str, ...] = (),
    ) -> None:
        """Insert rows. A new row replaces an existing one.

        With `once`, an existing row stays unchanged; with `unended`, it stays unchanged once it has ended.

        Columns in `keep` are not overwritten once they have a value.
        """
        for first in range(0, len(rows), _AT_ONCE):
            statement = _insertion(self.engine.dialect.name, table, once=once, unended=unended, keep=keep)
            connection.execute(statement, rows[first : first + _AT_ONCE])

    def open_rows(self) -> tuple[list[RecordedGang], list[GangRun], list[Holding]]:
        """Return the gangs that have not ended, their current runs and the nodes that they hold, for a new recorder."""
        with self.failing(), self.engine.connect() as connection:
            holdings = [
                Holding(**{**row, "amounts": vector_of(row["amounts"]), "moves": moves_of(row["moves"])})
                for row in connection.execute(sa.select(HOLDINGS).where(HOLDINGS.c.ended.is_(None))).mappings()
            ]
            runs = [
                GangRun(
                    **{
                        **row,
                        "asked": vector_of(row["asked"]),
                        "seen": _SEEN.decode(row["seen"]),
                        "moves": moves_of(row["moves"]),
                    }
                )
                for row in connection.execute(sa.select(RUNS).where(RUNS.c.ended.is_(None))).mappings()
            ]
            used = sa.union(*(sa.select(each.c.gang).where(each.c.ended.is_(None)) for each in (HOLDINGS, RUNS)))
            chosen = sa.select(GANGS).where(sa.or_(GANGS.c.ended.is_(None), GANGS.c.id.in_(used)))
            gangs = [RecordedGang(**row) for row in connection.execute(chosen).mappings()]
        known = {gang.id for gang in gangs}
        return (gangs, [each for each in runs if each.gang in known], [each for each in holdings if each.gang in known])

    def ended_pods(self, most: int) -> list[str]:
        """Return the UIDs of the most recently ended pods, latest last."""
        ended = HOLDINGS.c.ended
        chosen = sa.select(HOLDINGS.c.pod).where(ended.is_not(None)).order_by(ended.desc()).limit(most)
        with self.failing(), self.engine.connect() as connection:
            return [str(uid) for uid in connection.execute(chosen).scalars()][::-1]

    def megabytes(self) -> float:
        """Return the size of the stored data in megabytes, without free space."""
        with self.failing(), self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                pages, free, size = (
                    connection.execute(sa.text(f"PRAGMA {name}")).scalar_one()
                    for name in ("page_count", "freelist_count", "page_size")
                )
                return float((pages - free) * size / 1e6)
            tables = (NOTES, GANGS, RUNS, HOLDINGS, GANG_EVENTS, GAPS, DAYS, FOLDS)
            size = sa.text("SELECT pg_total_relation_size(:name)")
            return sum(float(connection.execute(size, {"name": one.name}).scalar_one()) for one in tables) / 1e6

    def shrink(self) -> None:
        """Return free space to the disk, unless the database does so itself."""
        if self.engine.dialect.name == "sqlite":
            with self.failing(), self.engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                driver.executescript("PRAGMA incremental_vacuum")  # `execute` would free one page


def _packed(row: msgspec.Struct, *fields: str) -> dict[str, Any]:
    """Return a row for the database, in which structured fields are JSON."""
    values = msgspec.structs.asdict(row)
    return {**values, **{field: msgspec.json.encode(values[field]).decode() for field in fields}}


def _engine(url: str, *, make: bool = True) -> tuple[sa.Engine, str]:
    """Return the engine for a URL, and the URL without its password; if `make` is true, create a missing file."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError(
            "the history's database is not a URL: write sqlite:////folder/history.db or "
            "postgresql://user:password@host:5432/database"
        ) from None
    shown = parsed.render_as_string(hide_password=True)
    driver = _KINDS.get(parsed.get_backend_name())
    if driver is None:
        raise StoreError(f"{shown}: this kind of store is not supported; use one of {' and '.join(_KINDS)}")
    parsed = parsed.set(drivername=driver)
    try:
        if driver != "sqlite":
            engine = sa.create_engine(parsed, pool_pre_ping=True, pool_size=2, connect_args={"connect_timeout": 10})
            return engine, shown
        given: dict[str, Any] = {"connect_args": {"timeout": _BUSY_S, "check_same_thread": False}}
        if not parsed.database or parsed.database == ":memory:":
            given["poolclass"] = StaticPool  # otherwise each connection would have a separate store
        elif not make:
            parsed = parsed.set(database=f"file:{quote(parsed.database)}", query={"mode": "rw", "uri": "true"})
        engine = sa.create_engine(parsed, **given)
    except (SQLAlchemyError, ImportError) as error:
        raise StoreError(f"the history at {shown} cannot be used: {error}") from error
    sa.event.listen(engine, "connect", _prepare)
    return engine, shown


def _prepare(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    # The first pragma must precede the first table; it lets the file shrink when days are deleted.
    for name, value in (("auto_vacuum", "INCREMENTAL"), ("journal_mode", "WAL"), ("synchronous", "NORMAL")):
        cursor.execute(f"PRAGMA {name} = {value}")
    cursor.close()


def _revision(connection: sa.Connection) -> str:
    """Return the last migration step that was applied to the database; empty if there is none."""
    if not sa.inspect(connection).has_table(VERSIONS.name):
        return ""
    return str(connection.scalar(sa.select(VERSIONS.c.version_num)) or "")
