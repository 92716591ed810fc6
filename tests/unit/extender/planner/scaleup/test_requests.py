"""What a ProvisioningRequest's conditions mean for its gang."""

from math import inf
from typing import Any

import pytest
from extender_world import NOW, World, request_of

from extender.planner.scaleup.preferences import (
    DEFAULT_CLASS,
    DEFAULT_TIMEOUT_S,
    ScaleUpPreference,
    ScaleUpPreferences,
    safe_to_evict,
)
from extender.planner.scaleup.requests import BACK_OFF_S, MAX_REQUEST_DELAY_S, answer_to, consumption
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.kubernetes.meta import ObjectMeta, ReportedCondition, format_time
from muster.api.names import (
    SAFE_TO_EVICT,
    SCALE_UP,
    SCALE_UP_ATTEMPT,
    SCALE_UP_CLASS,
    SCALE_UP_PARAMETERS,
    SCALE_UP_TIMEOUT,
)
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, Queue, QueueSpec

TIMEOUT_S = 100.0
LATE = " was not provisioned within 100 s ({})"


def request(age_s: float = 10.0, attempt: int = 1, changed_s: float = 1.0, **conditions: str) -> ProvisioningRequest:
    """One of this age, whose conditions have changed a second ago."""
    told: dict[str, Any] = {"reason": "Why", "message": "so", "last_transition_time": format_time(NOW - changed_s)}
    said = [ReportedCondition(type=kind, status=status, **told) for kind, status in conditions.items()]
    notes = {SCALE_UP_ATTEMPT: str(attempt)}
    return request_of(ObjectMeta(name="r", creation_timestamp=format_time(NOW - age_s), annotations=notes), "c", said)


@pytest.mark.parametrize(("asked", "reason", "told", "again_at"), [
    (request(), "", " is not accepted yet", None),
    (request(Accepted="True"), "", " is accepted", None),
    (request(Accepted="True", Provisioned="False"), "ProvisioningRefused", " is refused: Why: so", None),
    (request(Accepted="True", Provisioned="True"), "", " is provisioned, but its nodes do not exist yet", None),
    (request(Accepted="True", Failed="True"), "ProvisioningFailed", ": Failed: Why: so", NOW + 59),
    (request(Provisioned="True", BookingExpired="True"), "BookingExpired", ": BookingExpired: Why: so", NOW + 59),
    (request(Provisioned="True", CapacityRevoked="True"), "CapacityRevoked", ": CapacityRevoked: Why: so", NOW + 59),
    (request(Failed="False"), "", " is not accepted yet", None),
    (request(TIMEOUT_S - 1), "", " is not accepted yet", None),
    (request(TIMEOUT_S), "ProvisioningTimedOut", LATE.format("no autoscaler has processed it"), NOW + 60),
    (request(TIMEOUT_S + 7, Provisioned="False"), "ProvisioningTimedOut", LATE.format("Provisioned is False: Why: so"),
     NOW + 53),
    (request(TIMEOUT_S, Provisioned="True"), "", " is provisioned, but its nodes do not exist yet", None),
    (request(TIMEOUT_S, changed_s=TIMEOUT_S, Provisioned="True"), "",
     " was provisioned more than 100 s ago, but the gang has not started: other gangs may request nodes", inf),
])  # fmt: skip
def test_an_answer_is_read(asked: ProvisioningRequest, reason: str, told: str, again_at: float | None) -> None:
    """The condition that ended a request precedes earlier ones; a provisioned gang keeps its request."""
    answer = answer_to(asked, timeout_s=TIMEOUT_S, now=NOW)
    assert (answer.reason, str(answer.words), answer.again_at) == (reason, f"ProvisioningRequest r{told}", again_at)


@pytest.mark.parametrize(
    ("attempt", "wait_s"),
    [(1, BACK_OFF_S), (2, 2 * BACK_OFF_S), (3, 4 * BACK_OFF_S), (99, MAX_REQUEST_DELAY_S)],
)
def test_the_next_attempt_waits_twice_as_long(attempt: int, wait_s: float) -> None:
    """From the end of the last one on."""
    answer = answer_to(request(attempt=attempt, Failed="True"), timeout_s=TIMEOUT_S, now=NOW)
    assert answer.again_at == NOW - 1 + wait_s


@pytest.mark.parametrize(("asked", "again_at"), [
    (request(-3_600), -inf),
    (request(-3_600, changed_s=-3_600, Failed="True"), -inf),
    (request(changed_s=-1e9, Failed="True"), NOW - 10 + BACK_OFF_S),
    (request(changed_s=-1e9, Provisioned="True"), inf),
    (request(-59), None),
])  # fmt: skip
def test_no_gang_waits_for_a_time_in_the_future(asked: ProvisioningRequest, again_at: float | None) -> None:
    """Of a clock that was set back by an hour, or of a user who keeps the only request of a queue for years."""
    assert answer_to(asked, timeout_s=TIMEOUT_S, now=NOW).again_at == again_at


def test_a_time_that_nobody_can_read_is_now() -> None:
    """Whoever answers may write anything."""
    failed = request(Failed="True")
    failed.status.conditions[0].last_transition_time = "yesterday"
    assert answer_to(failed, timeout_s=TIMEOUT_S, now=NOW).again_at == NOW + BACK_OFF_S


def test_pods_consume_only_what_is_provisioned() -> None:
    """Both annotations, or none."""
    assert consumption(None) == consumption(request(Accepted="True")) == {}
    told = {"consume-provisioning-request": "r", "provisioning-class-name": "c"}
    assert consumption(request(Provisioned="True")) == {f"autoscaling.x-k8s.io/{key}": told[key] for key in told}


REQUEST = {SCALE_UP: "provisioning-request"}


def queues(**said: tuple[str, dict[str, str]]) -> dict[str, Queue]:
    """Queues by name: parent and annotations."""
    return {
        name: Queue(metadata=ObjectMeta(name=name, annotations=notes), spec=QueueSpec(parent=parent))
        for name, (parent, notes) in said.items()
    }


def wish(said: dict[str, Queue], **metadata: Any) -> ScaleUpPreference:
    """The wish of a gang in queue `a`."""
    world = World()
    group = world.state.groups[world.gang("g", {"w": (1, {"cpu": 1})}, queue="a")]
    return ScaleUpPreferences(said).of(world.view(world.change(group, **metadata).metadata.key))


@pytest.mark.parametrize(("said", "mode"), [
    ({}, "none"),
    ({"a": ("", {SCALE_UP: "condition"})}, "condition"),
    ({"a": ("b", {}), "b": ("", {SCALE_UP: "condition"})}, "condition"),
    ({"a": ("b", {SCALE_UP: "none"}), "b": ("", {SCALE_UP: "condition"})}, "none"),
    ({"a": ("", {}), "root": ("", {SCALE_UP: "condition"})}, "condition"),
    ({"a": ("b", {}), "b": ("a", {})}, "none"),
])  # fmt: skip
def test_the_nearest_queue_that_says_something_counts(said: dict[str, tuple[str, dict[str, str]]], mode: str) -> None:
    """Root is above all, also where nobody names it; a loop of parents ends."""
    assert wish(queues(**said)).mode == mode


@pytest.mark.parametrize("metadata", [{"annotations": {SCALE_UP: "condition"}}, {"labels": {SCALE_UP: "condition"}}])
def test_a_workload_wins_over_its_queue(metadata: dict[str, dict[str, str]]) -> None:
    """With an annotation or a label of its PodGroup."""
    assert wish(queues(a=("", REQUEST)), **metadata).mode == "condition"


@pytest.mark.parametrize(("more", "expected"), [
    ({}, ScaleUpPreference("provisioning-request", DEFAULT_CLASS, (), DEFAULT_TIMEOUT_S)),
    ({SCALE_UP_CLASS: "check", SCALE_UP_PARAMETERS: "b=2, a=1,", SCALE_UP_TIMEOUT: "5m"},
     ScaleUpPreference("provisioning-request", "check", (("a", "1"), ("b", "2")), 300.0)),
])  # fmt: skip
def test_a_request_is_as_the_queue_says(more: dict[str, str], expected: ScaleUpPreference) -> None:
    """Class, parameters and time."""
    assert wish(queues(a=("", REQUEST | more))) == expected


@pytest.mark.parametrize(("of_queue", "own", "timeout_s"), [
    ({}, {SCALE_UP_TIMEOUT: "87600h"}, DEFAULT_TIMEOUT_S),
    ({}, {SCALE_UP_TIMEOUT: "1m"}, 60.0),
    ({SCALE_UP_TIMEOUT: "2h"}, {SCALE_UP_TIMEOUT: "1h"}, 3600.0),
    ({SCALE_UP_TIMEOUT: "2h"}, {}, 7200.0),
    ({SCALE_UP_TIMEOUT: "1m"}, {SCALE_UP_TIMEOUT: "87600h"}, 60.0),
    ({SCALE_UP_CLASS: "cheap"}, {SCALE_UP_CLASS: "cheap"}, DEFAULT_TIMEOUT_S),
    ({SCALE_UP_CLASS: "cheap"}, {SCALE_UP_CLASS: "dear"}, None),
    ({}, {SCALE_UP_CLASS: "dear"}, None),
    ({}, {SCALE_UP_PARAMETERS: "machine=dear"}, None),
])  # fmt: skip
def test_the_queue_decides_about_the_cost_of_nodes(
    of_queue: dict[str, str], own: dict[str, str], timeout_s: float | None
) -> None:
    """A workload can shorten its request's timeout; class and parameters are always its queue's."""
    found = wish(queues(a=("", REQUEST | of_queue)), annotations=own)
    assert (found.timeout_s if found.mode != "none" else None) == timeout_s
    assert ("only the queue may set" in found.complaint) == (timeout_s is None)


@pytest.mark.parametrize(("notes", "words"), [
    ({SCALE_UP: "yes"}, "muster.dev/scale-up is 'yes', but must be none, condition, provisioning-request"),
    (REQUEST | {SCALE_UP_TIMEOUT: "soon"}, "muster.dev/scale-up-timeout: 'soon' is not a duration"),
    (REQUEST | {SCALE_UP_PARAMETERS: "noRetry"}, "muster.dev/scale-up-parameters has 'noRetry'"),
    (REQUEST | {SCALE_UP_PARAMETERS: f"a={'x' * 256}"}, "muster.dev/scale-up-parameters has a value of 256 characters"),
    (REQUEST | {SCALE_UP_CLASS: "Best Effort"}, "muster.dev/scale-up-class is 'Best Effort'"),
    (REQUEST | {SCALE_UP_CLASS: "a" * 254}, "muster.dev/scale-up-class is 'a"),
])  # fmt: skip
def test_what_cannot_be_read_is_said_and_asks_for_nothing(notes: dict[str, str], words: str) -> None:
    """The owner of the gang reads it."""
    found = wish(queues(a=("", notes)))
    assert (found.mode, found.complaint.startswith(words)) == ("none", True)


@pytest.mark.parametrize(("value", "told"), [("false", "false"), ("on-completion", "on-completion"), ("never", "")])
def test_eviction_is_as_the_queue_says(value: str, told: str) -> None:
    """A value that cluster-autoscaler does not know is not passed on."""
    group = PodGroup(spec=PodGroupSpec(queue="a"))
    assert safe_to_evict(queues(a=("b", {}), b=("", {SAFE_TO_EVICT: value})), group, {}) == told


@pytest.mark.parametrize(("queue", "group", "labels", "told"), [
    ({SCALE_UP: "condition"}, {}, {}, "false"),
    ({}, {SCALE_UP: "provisioning-request"}, {}, "false"),
    ({}, {}, {SCALE_UP: "condition"}, "false"),
    ({SCALE_UP: "condition"}, {SCALE_UP: "none"}, {}, ""),
    ({SCALE_UP: "sometimes"}, {}, {}, ""),
    ({SCALE_UP: "condition", SAFE_TO_EVICT: "on-completion"}, {}, {}, "on-completion"),
    ({SCALE_UP: "condition", SAFE_TO_EVICT: "never"}, {}, {}, ""),
    ({}, {}, {}, ""),
])  # fmt: skip
def test_who_asks_for_nodes_keeps_them(
    queue: dict[str, str], group: dict[str, str], labels: dict[str, str], told: str
) -> None:
    """Where an autoscaler works, it must not end gangs of which it knows nothing; the queue can say otherwise."""
    one = PodGroup(metadata=ObjectMeta(annotations=group), spec=PodGroupSpec(queue="a"))
    assert safe_to_evict(queues(a=("", queue)), one, labels) == told
