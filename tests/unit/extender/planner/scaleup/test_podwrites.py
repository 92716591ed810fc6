"""What the pods of waiting gangs say, and how often."""

import pytest
from extender_world import CPU, NOW, World, of

from extender.planner.cycle import run_cycle
from extender.planner.framework.decisions import AnnotateEviction, SetCondition
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.scaleup.action import AskForNodes
from extender.planner.scaleup.podwrites import (
    ANNOTATIONS_AT_ONCE,
    ASKS_AT_ONCE,
    SENTENCE_EVERY_S,
    SENTENCES_AT_ONCE,
    SETTLE_S,
    PodConditions,
    WaitingMessage,
)
from muster.api.kubernetes.meta import ReportedCondition
from muster.api.names import DO_NOT_DISRUPT, PODS_SAFE_TO_EVICT, SAFE_TO_EVICT, SCALE_UP
from muster.api.volcano.scheduling import Queue

GPU = {"nvidia.com/gpu": 8}


class Talk:
    """A world whose pods say what they are told to."""

    def __init__(self) -> None:
        self.world = World(checked=False)
        self.conditions = PodConditions()
        self.now = NOW

    def gang(self, name: str, pods: int) -> str:
        """A gang of gated pods; its key."""
        key = self.world.gang(name, {"w": (pods, GPU)})
        self.world.members(key, pods, GPU, task="w", gated=True)
        return key

    def says(self, key: str, words: str, asks: dict[str, int] | None = None) -> WaitingMessage:
        """What a gang as it is now wants to say."""
        return WaitingMessage(self.world.view(key), words, asks)

    def speak(self, *messages: WaitingMessage, after_s: float = SETTLE_S) -> list[tuple[str, bool, str]]:
        """What is written when so much time has passed: pod, whether it asks, and its words."""
        self.conditions.writes(self.now, messages, {message.gang.uid for message in messages})
        self.now += after_s
        said = self.conditions.writes(self.now, messages, {message.gang.uid for message in messages})
        for say in said:
            self._write(say)
        return [(say.pod.name, say.asks, say.message) for say in said]

    def _write(self, say: SetCondition) -> None:
        pod = self.world.state.pod_objects[say.pod.uid]
        reason = "Unschedulable" if say.asks else "SchedulingGated"
        message = f"Muster: {say.message}" if say.message else "gated"
        conditions = [ReportedCondition(type="PodScheduled", status="False", reason=reason, message=message)]
        self.world.change(pod, status={"phase": "Pending", "conditions": conditions})


def test_the_first_pod_says_why_and_the_others_nothing() -> None:
    """Once: what is said stands."""
    talk = Talk()
    key = talk.gang("g", 3)
    assert talk.speak(talk.says(key, "no room")) == [("g-w-0", False, "no room")]
    assert talk.speak(talk.says(key, "no room")) == []
    talk.conditions = PodConditions()  # another process
    assert talk.speak(talk.says(key, "no room")) == []


def test_a_gang_that_has_only_begun_to_wait_is_silent() -> None:
    """Mostly it starts."""
    talk = Talk()
    assert talk.speak(talk.says(talk.gang("g", 1), "no room"), after_s=SETTLE_S / 2) == []


def test_the_minimum_asks_and_is_gated_again_when_the_turn_is_over() -> None:
    """Those above it do not: no nodes are requested them."""
    talk = Talk()
    key = talk.gang("g", 3)
    said = talk.speak(talk.says(key, "no room", {"w": 2}))
    more = "the gang waits for nodes that do not exist yet; g-w-0 says why"
    assert said == [("g-w-0", True, "no room"), ("g-w-1", True, more)]
    assert not talk.world.view(key).pods[0].refused
    assert talk.speak(talk.says(key, "no room")) == [("g-w-0", False, "no room"), ("g-w-1", False, "")]


def test_a_sentence_that_changes_all_the_time_is_written_now_and_then() -> None:
    """Every node that comes or goes changes it."""
    talk = Talk()
    key = talk.gang("g", 1)
    talk.speak(talk.says(key, "one"))
    assert talk.speak(talk.says(key, "two"), after_s=SENTENCE_EVERY_S / 2) == []
    assert talk.speak(talk.says(key, "three"), after_s=SENTENCE_EVERY_S) == [("g-w-0", False, "three")]


def test_thousands_do_not_speak_at_once() -> None:
    """So many a second, and those that ask for nodes before the others."""
    talk = Talk()
    keys = [talk.gang(f"g{number}", 1) for number in range(60)]
    big = talk.gang("big", 300)
    said = talk.speak(*(talk.says(key, "no room") for key in keys), talk.says(big, "none", {"w": 300}))
    assert [asks for _, asks, _ in said] == [True] * int(ASKS_AT_ONCE) + [False] * int(SENTENCES_AT_ONCE)
    assert len(talk.speak(talk.says(big, "none", {"w": 300}), after_s=1.0)) == 100


def test_pods_behind_somebody_elses_gate_and_pods_without_ours_are_left_alone() -> None:
    """A pod that is pinned or bound belongs to kube-scheduler."""
    talk = Talk()
    key = talk.world.gang("g", {"w": (3, GPU)})
    talk.world.pod(key, "w", 0, GPU, gated=True, other_gates=("theirs",))
    talk.world.pod(key, "w", 1, GPU, pin="node-0", epoch=1)
    talk.world.pod(key, "w", 2, GPU, gated=True)
    assert talk.speak(talk.says(key, "no room")) == [("g-w-2", False, "no room")]


THEIRS = {PODS_SAFE_TO_EVICT: "true"}
OURS = {PODS_SAFE_TO_EVICT: "true", SAFE_TO_EVICT: "true"}
HELD = {PODS_SAFE_TO_EVICT: "false", SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"}
OF_KARPENTER = {DO_NOT_DISRUPT: "5m"}


def told(queue: dict[str, str], pod: dict[str, str], *, pods: int = 1) -> list[str]:
    """What the pods of a running gang are told, in a queue that says this now."""
    world = World(checked=False).nodes(1, cpu=100)
    world.state.on_queue(None, Queue(metadata=world.meta("auto", namespace="", annotations=queue)))
    key = world.gang("g", {"w": (pods, CPU)}, queue="auto", phase="Running")
    world.members(key, pods, CPU, task="w", node="node-0", phase="Running")
    for one in list(world.state.pod_objects.values()):
        world.change(one, annotations=one.metadata.annotations | pod)
    inputs = CycleInputs(snapshot=take_snapshot(world.state), now=world.now)
    return [tell.value for tell in of(run_cycle(inputs, [AskForNodes()], world.plugins), AnnotateEviction)]


@pytest.mark.parametrize(("queue", "pod", "expected"), [
    ({}, {}, []),
    ({SAFE_TO_EVICT: "false"}, {}, ["false"]),
    ({SAFE_TO_EVICT: "true"}, OURS, []),
    ({SAFE_TO_EVICT: "false"}, OURS, ["false"]),
    ({}, OURS, [""]),
    ({SAFE_TO_EVICT: "false"}, THEIRS, []),
    ({}, THEIRS, []),
    ({SAFE_TO_EVICT: "false"}, HELD, []),
    ({SAFE_TO_EVICT: "false"}, HELD | {DO_NOT_DISRUPT: "false"}, ["false"]),
    ({SAFE_TO_EVICT: "true"}, HELD, ["true"]),
    ({SAFE_TO_EVICT: "false"}, OF_KARPENTER, []),
    ({SCALE_UP: "condition"}, {}, ["false"]),
    ({SCALE_UP: "condition", SAFE_TO_EVICT: "true"}, {}, ["true"]),
    ({SCALE_UP: "none"}, {}, []),
])  # fmt: skip
def test_pods_follow_their_queue_if_silent(queue: dict[str, str], pod: dict[str, str], expected: list[str]) -> None:
    """What Muster wrote, it changes and takes away."""
    assert told(queue, pod) == expected


def test_a_large_gang_is_told_bit_by_bit() -> None:
    """A queue that changes its mind must not flood the API server."""
    assert len(told({SAFE_TO_EVICT: "false"}, {}, pods=50)) == ANNOTATIONS_AT_ONCE
