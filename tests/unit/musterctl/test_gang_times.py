"""When gangs start, in the words of `muster ps`: a time from now, a time of day, or an interval."""

import time
from collections.abc import Callable, Iterator

import pytest
from page_world import NOW, row

from gangs.row import GangRow
from muster.api.kubernetes.meta import format_time
from musterctl.output import gangtable
from musterctl.output.gangtable import Shown, start, start_interval, start_time

DAY_S = 24 * 3600


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """It is 08:00 on the fifteenth of January 2027 where the user is."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(gangtable.time, "time", lambda: NOW)
    yield
    monkeypatch.undo()
    time.tzset()


def waits(after_s: float | None, until_s: float | None = None, **more: str) -> GangRow:
    """A gang that waits, and starts within these times."""
    early, late = (None if each is None else format_time(NOW + each) for each in (after_s, until_s))
    return row(earliest_start=early or "", latest_start=late or "", **more)


def reserved(after_s: float) -> GangRow:
    """A gang with a reservation."""
    return row(state="Reserved", expected_start=format_time(NOW + after_s))


@pytest.mark.parametrize(("column", "gang", "words"), [
    (start, row(), "unknown"),
    (start, row(state="Running"), "-"),
    (start, reserved(1800), "in 30m"),
    (start, reserved(0), "now"),
    (start, reserved(-5), "now"),
    (start_time, row(), "unknown"),
    (start_time, reserved(1800), "08:30 (in 30m)"),
    (start_time, reserved(DAY_S - 60), "07:59 (in 23h)"),
    (start_time, reserved(DAY_S), "2027-01-16 08:00 (in 24h)"),
    (start_interval, row(), "unknown"),
    (start_interval, waits(1800), "after 08:30 (in 30m)"),
    (start_interval, waits(1800, 1800), "about 08:30 (in 30m)"),
    (start_interval, waits(1800, 4 * 3600), "08:30-12:00 (in 30m-4h)"),
    (start_interval, waits(3 * 3600, 2 * DAY_S), "11:00-2027-01-17 08:00 (in 3h-2d)"),
])  # fmt: skip
def test_a_start_in_words(column: Callable[[GangRow], str], gang: GangRow, words: str) -> None:
    """Near times have no date."""
    assert column(gang) == words


LONG = ["m" * 30, "n" * 30]


@pytest.mark.parametrize(("shown", "cells"), [
    (Shown("n", "table"), {"START": "in 30m", "NODES": f"{LONG[0]} and 1 more", "REASON": "brief"}),
    (Shown("n", "table", long=True), {"START": "08:30 (in 30m)", "NODES": f"{LONG[0]} and 1 more", "REASON": "whole"}),
    (Shown("n", "table", start=True), {"START": "08:30-09:00 (in 30m-60m)", "KNOWN BY": "past", "REASON": "brief"}),
    (Shown("n", "wide"),
        {"START": "in 30m", "NODES": ",".join(LONG), "WORKLOAD": row("a").reference,
         "USER": "-", "GANG": "a-group", "REASON": "brief"}),
])  # fmt: skip
def test_what_a_list_shows(shown: Shown, cells: dict[str, str]) -> None:
    """`wide` has all nodes and the PodGroup, `long` sentences and times of day, `start` intervals."""
    early, late = format_time(NOW + 1800), format_time(NOW + 3600)
    told = {"expected_start": early, "earliest_start": early, "latest_start": late, "start_known_by": "past"}
    gang = row("a", state="Reserved", nodes=LONG, reason="brief", message="whole", **told)
    assert [(title, of(gang)) for title, of in gangtable.columns(shown)[6:]] == [*cells.items()]


@pytest.mark.parametrize(("shown", "gang", "has"), [
    (Shown(None, "table"), row(), True),
    (Shown(None, "table"), row(state="Completed"), False),
    (Shown(None, "table", ended=True), row(state="Completed"), True),
    (Shown(None, "table", queue="research"), row(), True),
    (Shown(None, "table", queue="other"), row(), False),
    (Shown(None, "table", kind="TrainJob"), row(), False),
    (Shown(None, "table", start=True), row(), True),
    (Shown(None, "table", start=True), row(state="Running"), False),
])  # fmt: skip
def test_which_gangs_are_shown(shown: Shown, gang: GangRow, *, has: bool) -> None:
    """By queue, kind and state."""
    assert shown.has(gang) is has
