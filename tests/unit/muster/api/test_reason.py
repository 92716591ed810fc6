"""Reasons as data: what is stored of them, and when it is believed."""

from typing import Any

import msgspec
import pytest

from extender.planner.reasons import placements, queues
from extender.planner.reasons.placements import awaits_owner, eviction, named, preempted
from muster.api.muster.reason import NOTHING, Reason, constant, quoted, reason_of, stored
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition, PodGroupStatus

EVICTED = awaits_owner(2, preempted(10, "default").also(placements.saved("step=7", "2030-01-01T00:00:00Z")), "Job")
AT = "2030-01-01T00:00:00Z"


def written(reason: Reason) -> Reason:
    """A reason as the API server gives it back."""
    return msgspec.json.decode(msgspec.json.encode(reason), type=Reason)


@pytest.mark.parametrize("reason", [
    EVICTED,
    queues.reserved(["n1", "n2"], 1_800_000_000.0, ["Job a/b"], 600.0, queues.expired(after_s=3600.0), named=True),
    queues.reserved(["n1"], None, [], 600.0, NOTHING, named=False),
    queues.in_the_way([("a gang of queue q", ["n1"], None)]),
], ids=lambda reason: reason.code)  # fmt: skip
def test_a_stored_reason_is_as_it_was(reason: Reason) -> None:
    """With the reasons within it. A merge patch would remove what is null."""
    assert None not in reason.params.values()
    found = stored(written(reason), str(reason))
    assert str(found) == str(reason)
    assert found.params.keys() == reason.params.keys()
    assert found.params.get("aside") == reason.params.get("aside")


@pytest.mark.parametrize("data", [
    None,
    Reason(code="of-a-later-version"),
    Reason(code="eviction-preempted", params={"other": 1}),
    Reason(code="eviction-preempted", params={"priority": 9, "queue": "default"}),
    Reason(code="reservation", params={"nodes": 1, "at": "now", "ending": [], "patience_s": {}}),
])  # fmt: skip
def test_data_that_do_not_make_the_message_are_not_believed(data: Reason | None) -> None:
    """The message is of another version then, or the data are of an older message."""
    message = str(preempted(10, "default"))
    assert stored(data, message) == quoted(text=message)
    assert stored(data, message).data is None


def test_data_of_any_depth_are_read() -> None:
    """Who may write a status may nest reasons without end."""
    data: dict[str, Any] = {"code": "end"}
    for _ in range(400):
        data = {"code": "also", "params": {"first": data, "more": {}}}
    assert stored(Reason(**data), "a message") == quoted(text="a message")


def test_nothing_is_no_reason() -> None:
    """A reason without anything more is what it is."""
    assert (bool(NOTHING), str(NOTHING), NOTHING.data) == (False, "", None)
    assert stored(None, "") == reason_of("") == NOTHING
    assert EVICTED.also(NOTHING) is EVICTED
    assert len({EVICTED, EVICTED.given(), NOTHING}) == 2  # whatever their parameters are


def test_who_may_see_the_gang_gets_its_name() -> None:
    """The name is in the reason within the reason, and in nothing else of it."""
    found = named(stored(written(EVICTED), str(EVICTED)), "Job a gang")
    assert str(found) == (
        "its 2 pods were evicted: preempted by Job a gang of priority 10 in queue default; the gang's last "
        f"checkpoint was saved at {AT} (step 7); the gang waits until the Job creates new pods"
    )
    assert named(quoted(text="by a gang"), "Job a") == quoted(text="by a gang")
    told = preempted(10, "default", "Job mine")
    assert named(told, "Job ns/mine") == told
    assert eviction(found) == str(found).removesuffix("; the gang waits until the Job creates new pods")
    assert eviction(quoted(text="it went")) == "it went"


def test_an_eviction_is_read_where_its_data_are() -> None:
    """The condition of one type has them, those of others have the message alone, in any order."""
    bare = {"status": "True", "reason": "Evicted", "message": str(EVICTED)}
    told = [{"type": "Scheduled", **bare}, {"type": "Unschedulable", **bare, "why": msgspec.to_builtins(EVICTED)}]
    for conditions in (told, told[::-1]):
        assert msgspec.convert({"status": {"conditions": conditions}}, PodGroup).evicted.code == EVICTED.code


def test_a_code_is_taken_once() -> None:
    """Else one sentence would be told for the other."""
    with pytest.raises(ValueError, match="the code 'quoted' already has a sentence"):
        constant("quoted", "another text")


def test_what_is_stored_of_a_reservation_names_no_others() -> None:
    """Nor more than a few of its nodes: the owner of the gang may read the object, not only the message."""
    nodes = [f"node-{number}" for number in range(1000)]
    reason = queues.reserved(nodes, 1_800_000_000.0, ["Job theirs/secret"], 600.0, NOTHING, named=False)
    text = msgspec.json.encode(reason).decode()
    assert "secret" not in text
    assert ("node-2" in text, "node-3" in text, len(text) < 300) == (True, False, True)


def test_of_several_evictions_those_with_data_count_and_then_the_first() -> None:
    """Each condition may have been written by another version."""
    said = [PodGroupCondition(type=each, status="True", reason="Evicted", message=each) for each in ("One", "Two")]
    group = PodGroup(status=PodGroupStatus(conditions=said))
    assert str(group.evicted) == "One"
    said.append(PodGroupCondition(type="Three", status="True", reason="Evicted", message=str(EVICTED), why=EVICTED))
    assert group.evicted == EVICTED


def test_a_status_without_counts_has_none() -> None:
    """A PodGroup without members has neither running nor ended ones."""
    empty = PodGroupStatus()
    assert (empty.running, empty.succeeded, empty.failed) == (0, 0, 0)
