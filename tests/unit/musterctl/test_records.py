"""What a query of the history may ask for: what a caller types is answered, or refused with the parameter's name."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from history.answers import QueryError, answers
from history.model import EVERYTHING, RowChanges
from history.store import HistoryStore
from musterctl.app import main


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HistoryStore]:
    """An empty one."""
    folder: Path = tmp_path_factory.mktemp("history")
    made = HistoryStore.for_writing(f"sqlite:///{folder}/history.db")
    yield made
    made.close()


@pytest.mark.parametrize("path", ["history", "usage"])
@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("value", ["1e300", "-1e300", "inf", "-1", "1000000000000", "soon"])
def test_a_time_that_is_none_is_refused(store: HistoryStore, path: str, name: str, value: str) -> None:
    """It is later than any database can hold, before the epoch, or no number."""
    with pytest.raises(QueryError, match=name):
        answers(store, EVERYTHING, [path], {name: value})


@pytest.mark.parametrize("command", [["history", "-A"], ["usage"], ["ps", "--ended", "-A"]])
def test_commands_tell_of_a_recorder_that_is_gone(store: HistoryStore, command: list[str]) -> None:
    """On standard error, beside what there is."""
    words = [*command, f"--store={store.shown}"]
    for ago_s, is_told in ((3600.0, True), (0.0, False)):
        store.write(RowChanges(), {"seen-until": str(round((time.time() - ago_s) * 1000))})
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        assert ("(60m ago)" in result.stderr) is is_told
        assert ("The recorder of the history has not read the cluster since" in result.stderr) is is_told


def test_the_server_says_when_the_recorder_looked(store: HistoryStore) -> None:
    """For commands that ask it."""
    store.write(RowChanges(), {"seen-until": "12500"})
    assert answers(store, EVERYTHING, ["recorder"], {}).looked == 12.5


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.dictionaries(st.sampled_from(["since", "until", "limit", "queue", "by", "ended"]), st.text(max_size=20))
)
def test_whatever_is_typed_is_answered_or_refused(store: HistoryStore, query: dict[str, str]) -> None:
    """Nothing else becomes of it."""
    for path in ("history", "usage"):
        with suppress(QueryError):
            assert answers(store, EVERYTHING, [path], query) is not None
