"""The story of `muster demo`: what is ticked off, and what breaks it."""

from typing import Any

import pytest
from page_world import row

from gangs.row import GangRow
from musterctl.commands.demo import FIRST, INDEXED, SECOND, ExpectedEvents


def looks(*changes: dict[str, Any]) -> ExpectedEvents:
    """The story after these looks at rows; each has what is another than before."""
    story, known = ExpectedEvents(), dict[str, dict[str, Any]]()
    for change in changes:
        for name, told in change.items():
            known[name] = known.get(name, {}) | told
        found: dict[str, GangRow] = {name: row(name, **{"minimum": 2, **told}) for name, told in known.items()}
        story.watch(found)
    return story


RUNS: dict[str, Any] = {"state": "Running", "running": 2, "nodes": ["n0"]}
WAITS: dict[str, Any] = {"state": "Waiting", "message": "no room"}
OVER: dict[str, Any] = {"state": "Completed", "running": 0, "nodes": []}


def test_a_story_that_comes_true() -> None:
    """Each sentence with what was seen of it."""
    story = looks({FIRST: RUNS, SECOND: WAITS, INDEXED: RUNS}, {FIRST: OVER}, {SECOND: RUNS}, {SECOND: OVER})
    assert (story.missing, story.broken) == ([], "")
    assert story.seen == {
        f"{FIRST} runs as a whole": "2 of 2 pods run",
        f"{SECOND} waits with no pod bound and shows the reason": "no room",
        f"{INDEXED} (two labels, plain kubectl) runs as a whole": "2 of 2 pods run",
        f"{FIRST} completes": "it is Completed",
        f"{SECOND} starts as a whole once there is free capacity": "2 of 2 pods run",
        f"{SECOND} completes": "it is Completed",
    }


@pytest.mark.parametrize(("changes", "seen"), [
    ([{}], 0),
    ([{FIRST: RUNS | {"running": 1}}], 0),
    ([{FIRST: {"minimum": 0}}], 0),
    ([{FIRST: RUNS | {"running": 1}, SECOND: WAITS}], 0),
    ([{FIRST: RUNS, SECOND: WAITS | {"nodes": ["n1"]}}], 1),
    ([{FIRST: RUNS, SECOND: {"state": "Starting", "message": "m"}}], 1),
    ([{SECOND: RUNS}], 0),
    ([{FIRST: RUNS}, {FIRST: OVER}, {SECOND: RUNS}], 3),
    ([{FIRST: {"state": "Failed"}}], 0),
])  # fmt: skip
def test_what_has_not_come_true_is_missing(changes: list[dict[str, Any]], seen: int) -> None:
    """The second gang waits and starts only beside and after the first one."""
    story = looks(*changes)
    assert (len(story.seen), len(story.missing)) == (seen, 6 - seen)


@pytest.mark.parametrize(
    ("first", "broken"), [(2, "torch-second unexpectedly got nodes while torch-first was running: n1, n2"), (1, "")]
)
def test_a_gang_that_is_let_in_too_early_breaks_it(first: int, broken: str) -> None:
    """While all of the first one runs."""
    assert looks({FIRST: RUNS | {"running": first}, SECOND: {"nodes": ["n1", "n2"]}}).broken == broken
