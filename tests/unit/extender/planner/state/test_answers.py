"""What filter answered is remembered per pod, bounded, and forgotten with the pod or the node."""

import numpy as np
from extender_world import World

from extender.planner.state.answers import Answers


def columns(*numbers: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Columns of nodes that passed."""
    return np.array(numbers, dtype=np.int64)


def test_the_last_answer_counts() -> None:
    """A node that passed before may be taken by now."""
    answers = Answers()
    answers.keep("pod", columns(0, 9, 4999))
    assert [column for column in range(6000) if answers.passed("pod", column)] == [0, 9, 4999]
    answers.keep("pod", columns(8))
    assert [column for column in range(6000) if answers.passed("pod", column)] == [8]
    answers.keep("pod", columns())
    assert not len(answers)


def test_an_unknown_pod_or_node_did_not_pass() -> None:
    """Nobody asked."""
    answers = Answers()
    answers.keep("pod", columns(3))
    assert not answers.passed("other", 3)
    assert not answers.passed("pod", None)


def test_the_oldest_is_forgotten_beyond_the_bound() -> None:
    """Whoever floods filter costs others another try, not memory."""
    answers = Answers(most=2)
    for pod in ("a", "b", "c"):
        answers.keep(pod, columns(1))
    assert [answers.passed(pod, 1) for pod in ("a", "b", "c")] == [False, True, True]


def test_it_is_forgotten_when_the_pod_is_bound_or_gone_and_when_the_node_goes() -> None:
    """The column of a node that goes is given to the next one that comes."""
    world = World()
    node = world.node("node-0")
    world.node("node-1")
    pods = [world.pod("ns/none", "t", index, {"cpu": 1}) for index in range(3)]
    for pod in pods:
        world.state.answers.keep(pod.metadata.uid, columns(0, 1))
    world.state.on_pod(pods[0], None)
    world.pod("ns/none", "t", 1, {"cpu": 1}, node="node-1")
    assert len(world.state.answers) == 1
    world.state.on_node(node, None)
    world.node("node-2")
    index, uid = world.state.nodes.index, pods[2].metadata.uid
    assert index["node-2"] == 0
    assert not world.state.answers.passed(uid, index["node-2"])
    assert world.state.answers.passed(uid, index["node-1"])
