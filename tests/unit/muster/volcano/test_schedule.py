"""The times of a schedule are those that cron names, in its time zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.volcano.schedule import ScheduleError, read_schedule

MINUTE_S = 60.0
DAY_S = 86_400.0
FIELDS = (range(60), range(24), range(1, 32), range(1, 13), range(7))


def seconds(text: str) -> float:
    """A time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def times(text: str, zone: str | None, since: str, count: int) -> list[str]:
    """The next times of a schedule, in UTC."""
    schedule, time_s, found = read_schedule(text, zone), seconds(since), list[str]()
    for _ in range(count):
        following = schedule.after(time_s, 0.0)
        assert schedule.latest(following, time_s, 0.0) == following
        time_s = following
        found.append(datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M"))
    return found


@pytest.mark.parametrize(("text", "zone", "since", "expected"), [
    ("*/20 * * * *", None, "2026-01-01T10:05", ["2026-01-01T10:20", "2026-01-01T10:40", "2026-01-01T11:00"]),
    ("30 6 * * mon-fri", None, "2026-01-02T07:00", ["2026-01-05T06:30", "2026-01-06T06:30"]),
    ("0 0 13 * fri", None, "2026-02-01T00:00", ["2026-02-06T00:00", "2026-02-13T00:00"]),
    ("0 0 */10 * fri", None, "2026-02-01T00:00", ["2026-02-06T00:00", "2026-02-11T00:00"]),
    ("0 0 29 2 ?", None, "2026-01-01T00:00", ["2028-02-29T00:00"]),
    ("0 0 29 2 *", None, "2096-03-01T00:00", ["2104-02-29T00:00"]),
    ("@monthly", None, "2026-01-01T00:00", ["2026-02-01T00:00"]),
    ("0 6 * * *", "Asia/Tokyo", "2026-01-01T00:00", ["2026-01-01T21:00"]),
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ("5,7-9/2 23-23 * * *", None, "2026-01-01T00:00", ["2026-01-01T23:05", "2026-01-01T23:07"]),
])  # fmt: skip
def test_times_of_a_schedule(text: str, zone: str | None, since: str, expected: list[str]) -> None:
    """One after the other; a step of days is no star; what summer time leaves out comes after it, nothing twice."""
    assert times(text, zone, since, len(expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "* * L * *",
     "* * * * 1#2", "* * * * 5L", "*/0 * * * *",
     "5-3 * * * *", "a * * * *", "*-5 * * * *", "1,,2 * * * *", "0 0 31 2 *", "@often", "@every", "@every 5s",
     "@every x", "TZ=UTC 0 0 * * *", "-1 * * * *", "٣ * * * *", "0 " * 200],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(text: str) -> None:
    """With a reason."""
    with pytest.raises(ScheduleError, match=r"must|valid|needs|requires"):
        read_schedule(text, None)


@pytest.mark.parametrize(
    "zone", ["", "Local", "../../etc/passwd", "/etc/localtime", "Europe", "Mars/Olympus", "a" * 80]
)
def test_what_is_no_time_zone_is_refused(zone: str) -> None:
    """Also a path, a folder of the database, and the zone of the machine."""
    with pytest.raises(ScheduleError, match="timeZone"):
        read_schedule("* * * * *", zone)


def test_an_interval_begins_with_its_cron_job() -> None:
    """Its grid stays, however late one looks."""
    every = read_schedule("@every 1h30m", None)
    assert every.after(1000.0, 1000.0) == 1000.0 + 5400
    assert every.latest(1000.0 + 5399, 0.0, 1000.0) is None
    assert every.latest(1000.0 + 5400 * 3 + 7, 0.0, 1000.0) == 1000.0 + 5400 * 3
    assert every.latest(1000.0 + 5400 * 3 + 7, 1000.0 + 5400 * 3, 1000.0) is None


@st.composite
def words(draw: st.DrawFn) -> tuple[str, list[set[int]], list[bool]]:
    """Five fields, the numbers that they name, and whether they are stars."""
    texts, numbers, stars = list[str](), list[set[int]](), list[bool]()
    for whole in FIELDS:
        chosen = draw(st.none() | st.sets(st.sampled_from(whole), min_size=1, max_size=4))
        texts.append("*" if chosen is None else ",".join(map(str, sorted(chosen))))
        numbers.append({*whole} if chosen is None else chosen)
        stars.append(chosen is None)
    return " ".join(texts), numbers, stars


ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu")


@given(words(), st.sampled_from(ZONES), st.integers(0, 2 * 366 * 24 * 60))
def test_it_is_what_a_clock_shows(fields: tuple[str, list[set[int]], list[bool]], zone: str, start: int) -> None:
    """A look at the clock in each minute of a day without a change of the clock finds the same times."""
    text, (minutes, hours, days, months, weekdays), stars = fields
    try:
        schedule = read_schedule(text, zone)
    except ScheduleError:
        return  # a day that does not exist
    first_s = seconds("2026-01-01T00:00") + start * MINUTE_S
    offsets = {datetime.fromtimestamp(first_s + day * DAY_S, ZoneInfo(zone)).utcoffset() for day in (-1, 0, 1, 2)}
    if len(offsets) > 1:
        return
    expected = []
    for number in range(1, 24 * 60):
        wall = datetime.fromtimestamp(first_s + number * MINUTE_S, ZoneInfo(zone))
        by_month, by_week = wall.day in days, wall.isoweekday() % 7 in weekdays
        on_day = by_month and by_week if stars[2] or stars[4] else by_month or by_week
        if wall.minute in minutes and wall.hour in hours and wall.month in months and on_day:
            expected.append(first_s + number * MINUTE_S)
    last_s = first_s + DAY_S - MINUTE_S
    found, time_s = list[float](), schedule.after(first_s, 0.0)
    while time_s <= last_s and len(found) < 9:
        found.append(time_s)
        time_s = schedule.after(time_s, 0.0)
    assert found == expected[:9]
    assert schedule.latest(last_s, first_s, 0.0) == (expected[-1] if expected else None)


@given(words(), st.sampled_from(ZONES), st.integers(0, 2 * 366 * 24 * 60))
def test_no_time_is_skipped_or_repeated(fields: tuple[str, list[set[int]], list[bool]], zone: str, start: int) -> None:
    """Whatever the clock does: the next time is the latest when it has come, and it is not due a second before."""
    try:
        schedule = read_schedule(fields[0], zone)
    except ScheduleError:
        return
    time_s = seconds("2026-01-01T00:00") + start * MINUTE_S
    for _ in range(4):
        following = schedule.after(time_s, 0.0)
        assert following > time_s
        assert schedule.latest(following, time_s, 0.0) == following
        assert schedule.latest(following - 1, time_s, 0.0) is None
        time_s = following


@given(
    st.text("0123456789*/,-?LW# jansu@", max_size=40)
    | st.lists(st.text("0123456789*/,-", min_size=1, max_size=4), min_size=5, max_size=5).map(" ".join),
    st.sampled_from(ZONES),
)
def test_any_text_is_refused_or_names_times(text: str, zone: str) -> None:
    """Nothing else is raised, and what is accepted has a next time."""
    try:
        schedule = read_schedule(text, zone)
    except ScheduleError:
        return
    assert schedule.after(0.0, 0.0) > 0.0
