"""Groups take turns: nothing is lost, and no group waits for more than one key of each other group."""

from hypothesis import given
from hypothesis import strategies as st

from muster.kube.workqueue import GroupQueue

ADD = st.tuples(st.sampled_from(["add", "first"]), st.integers(0, 4))
STEPS = st.lists(st.one_of(ADD, st.just(("take", 0)), st.just(("done", 0))))


@given(STEPS)
def test_nothing_is_lost_and_nobody_waits_for_more_than_one_of_each(steps: list[tuple[str, int]]) -> None:
    """Whatever is added comes out once, in the order of its group; groups with nothing in work go first."""
    queue: GroupQueue[tuple[int, int]] = GroupQueue(lambda key: key[0])
    waiting: list[tuple[int, int]] = []
    in_work: list[tuple[int, int]] = []
    for number, (step, group) in enumerate(steps):
        if step in {"add", "first"}:
            added = (group, number - len(steps) if step == "first" else number)
            waiting.append(added)
            queue.add(added, first=step == "first")
        elif step == "take" and waiting:
            key = queue.take()
            assert key == min(each for each in waiting if each[0] == key[0])
            busy = {each[0] for each in in_work}
            assert key[0] not in busy or all(each[0] in busy for each in waiting)
            waiting.remove(key)
            in_work.append(key)
        elif step == "done" and in_work:
            queue.done(in_work.pop(0))
        assert len(queue) == len(waiting)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6))
def test_one_worker_takes_one_key_of_each_group_in_turn(counts: list[int]) -> None:
    """Between two keys of a group every other group that waits gets one."""
    queue: GroupQueue[tuple[int, int]] = GroupQueue(lambda key: key[0])
    for group, count in enumerate(counts):
        for number in range(count):
            queue.add((group, number))
    taken = []
    while queue:
        key = queue.take()
        taken.append(key)
        queue.done(key)
    rounds = [number for _, number in taken]
    assert rounds == sorted(rounds)
    assert sorted(taken) == sorted((group, number) for group, count in enumerate(counts) for number in range(count))
