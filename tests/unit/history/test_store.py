"""The store: its schema, what is written once, and what a reader says of a store that it cannot read."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from histories import gang_of_one
from msgspec.structs import replace
from sqlalchemy import text

from history import read
from history.model import EVERYTHING, MEMORY, OutageRow, RowChanges, Scope
from history.schema import METADATA
from history.store import HistoryStore, StoreError, _engine
from history.usage import usage


def changes(namespace: str = "team-a", name: str = "train") -> RowChanges:
    """A gang of one member that ran for ten seconds."""
    return gang_of_one(namespace, name, 1_000_000, 10_000, bound=1_000)


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    """A new store in a file."""
    return HistoryStore.for_writing(f"sqlite:///{tmp_path / 'history.db'}")


@pytest.mark.parametrize("stepwise", [True, False])
def test_steps_make_the_tables_that_statements_are_made_for(tmp_path: Path, *, stepwise: bool) -> None:
    """After all steps, as in a new store, the schema is the one in `history.schema`, and a reader takes it."""
    url = f"sqlite:///{tmp_path / 'history.db'}"
    if stepwise:
        with closing(sqlite3.connect(tmp_path / "history.db")) as connection:
            connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        with HistoryStore(*_engine(url)).engine.begin() as made:
            HistoryStore(*_engine(url))._take_steps(made)
    else:
        HistoryStore.for_writing(url)
    with HistoryStore.for_reading(url).engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    assert differences == []


def test_an_upgrade_keeps_gangs_usage_and_what_is_open(tmp_path: Path) -> None:
    """Identities get the namespace before them, of all rows alike; a gang without a queue is in the default one."""
    path = tmp_path / "history.db"
    store = HistoryStore.for_writing(f"sqlite:///{path}")
    store.write(changes(), {"seen-until": "1020000"})
    before = (
        [replace(each, gang="") for each in read.events_of_gang(store, EVERYTHING, "team-a", "train")],
        usage(store, EVERYTHING, ("namespace", "user"), since=0),
    )
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        for table in ("runs", "holdings"):
            for column in ("queue", "user", "moves"):
                connection.execute(f'ALTER TABLE {table} DROP COLUMN "{column}"')
        connection.execute("UPDATE gangs SET queue = ''")
        connection.execute("UPDATE alembic_version SET version_num = '0002'")
        connection.commit()
    store = HistoryStore.for_writing(f"sqlite:///{path}")
    by_user = usage(store, EVERYTHING, ("namespace", "user"), since=0)
    events = [replace(each, gang="") for each in read.events_of_gang(store, EVERYTHING, "team-a", "train")]
    assert (events, by_user) == before
    (gang,) = read.gangs(store, EVERYTHING)
    assert (gang.uid, gang.queue) == ("team-a/uid-team-a-train", "default")
    assert [row.key for row in usage(store, EVERYTHING, ("queue",), since=0)] == [("default",)]
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute('SELECT queue, "user" FROM runs UNION SELECT queue, "user" FROM holdings')
        assert {*rows} == {("default", gang.user)}, "a later move changes nothing of it"


def test_what_is_written_twice_stands_once(store: HistoryStore) -> None:
    """The same changes a second time, as after a kill, change nothing."""
    store.write(changes(), {"seen-until": "1020000"})
    before = read.events_of_gang(store, EVERYTHING, "team-a", "train"), read.gangs(store, EVERYTHING)
    store.write(changes(), {"seen-until": "1020000"})
    assert (read.events_of_gang(store, EVERYTHING, "team-a", "train"), read.gangs(store, EVERYTHING)) == before
    assert [each.what for each in before[0]] == ["submitted"]


def test_a_holding_that_has_ended_is_not_opened_again(store: HistoryStore) -> None:
    """A late look at a pod that has ended does not change its end."""
    store.write(changes(), {})
    late = changes()
    late.holdings["pod-team-a-train"].ended = None
    store.write(late, {})
    assert read.gangs(store, EVERYTHING)[0].gpu_seconds == 80.0


def test_others_have_no_gangs_and_no_stories(store: HistoryStore) -> None:
    """Who may see one namespace gets nothing of another one, not even by its name."""
    store.write(changes("team-a"), {})
    store.write(changes("team-b", "secret"), {})
    mine = Scope(frozenset({"team-a"}))
    assert [each.namespace for each in read.gangs(store, mine)] == ["team-a"]
    assert read.gangs(store, mine, namespace="team-b") == []
    assert read.events_of_gang(store, mine, "team-b", "secret") == []
    assert read.gangs(store, Scope(frozenset())) == []
    assert read.namespaces(store, limit=5) == ["team-a", "team-b"]
    assert read.namespaces(store, limit=1) == ["team-a"]


def test_gaps_are_told(store: HistoryStore) -> None:
    """What was not recorded stands in the store with its times, as it was written first."""
    for until, why in ((3_500, "the recorder did not run"), (9_000, "again")):
        store.write(RowChanges(gaps=[OutageRow(since=1_000, until=until, text=why)]), {})
    assert read.gaps(store) == [read.Outage(since=1.0, until=3.5, text="the recorder did not run")]


def test_a_reader_without_a_recorder_says_so(tmp_path: Path) -> None:
    """A store that is not there is an error that names it, and no empty store is made."""
    with pytest.raises(StoreError, match=r"there is no history at .*no recorder has run"):
        HistoryStore.for_reading(f"sqlite:///{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()


def test_a_reader_of_another_schema_says_which(store: HistoryStore) -> None:
    """A store of another version is not read."""
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="has schema 9999, and this version reads"):
        HistoryStore.for_reading(str(store.engine.url))


@pytest.mark.parametrize("url", ["mysql://u:hidden@host/db", "postgresql://u:hidden@127.0.0.1:1/db", "hidden"])
def test_errors_hide_passwords(url: str) -> None:
    """A store that cannot be used is named without its password."""
    with pytest.raises(StoreError) as caught:
        HistoryStore.for_writing(url)
    assert "hidden" not in str(caught.value)


def test_the_store_of_who_has_none_lives_in_memory() -> None:
    """In memory it works the same."""
    one = HistoryStore.for_writing(MEMORY)
    one.write(changes(), {})
    assert len(read.gangs(one, EVERYTHING)) == 1


def test_commands_that_do_not_read_the_history_do_not_load_its_libraries() -> None:
    """`muster up` and `muster ps` start without SQLAlchemy, which takes a fifth of a second."""
    code = "import sys, musterctl.commands.plane, musterctl.commands.ps; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
