"""What filter answered is remembered per pod, bounded, and forgotten with the pod or the node."""

import numpy as np
from extender_world import World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.state.answers import Answers


def columns(*numbers: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Columns of nodes that passed."""
    return np.array(numbers, dtype=np.int64)


STEPS = st.lists(
    st.tuples(st.just("keep"), st.sampled_from("abcd"), st.sets(st.sampled_from([0, 1, 7, 8, 9, 15, 16, 4999])))
    | st.tuples(st.just("forget"), st.sampled_from("abcd"), st.just({0}))
    | st.tuples(st.just("node"), st.just(""), st.sets(st.sampled_from([0, 7, 8, 16, 6000]), min_size=1, max_size=1)),
    max_size=12,
)


@given(STEPS)
def test_the_last_answer_counts(steps: list[tuple[str, str, set[int]]]) -> None:
    """For as many pods as there is room for: whoever floods filter costs others another try, not memory."""
    answers, expected = Answers(most=3), dict[str, set[int]]()
    for what, uid, nodes in steps:
        if what == "keep":
            expected.pop(uid, None)
            expected |= {uid: nodes} if nodes else {}
            answers.keep(uid, columns(*nodes))
        elif what == "forget":
            expected.pop(uid, None)
            answers.forget(uid)
        else:
            expected = {pod: passed - nodes for pod, passed in expected.items()}
            answers.forget_node(*nodes)
        while len(expected) > 3:
            del expected[next(iter(expected))]
        for pod in "abcd":
            passed = {column for column in (*range(24), 4999, 5000) if answers.passed(pod, column)}
            assert passed == expected.get(pod, set())
            assert not answers.passed(pod, None)
        assert len(answers) == len(expected)


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
