"""The limits of queues are the same for gangs that are planned and for pods that filter and bind ask about."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from builders import pod
from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from verbs_world import Extender

from extender.planner.plugins.proportion import Proportion
from extender.planner.reasons.verbs import VerbReason
from extender.planner.state.access import parents_of
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.extender import ExtenderArgs
from muster.api.volcano.scheduling import Queue

NAMES = ("a", "b", "c")
WINDOW, CLOSED = "Fri 08:00-09:00 UTC", "Sat 08:00-09:00 UTC"
OVER = VerbReason.LIMIT_REACHED
VERBS = {"QueueOverCapability": VerbReason.QUEUE_FULL, "UserOverLimit": OVER, "QueueOverWindow": OVER}
"""Reason of the planner → the verbs' one."""
most = st.integers(0, 5)
queues = st.fixed_dictionaries({}, optional={
    "parent": st.sampled_from((*NAMES, "missing")),
    "capability": st.just({"cpu": "many"}) | st.dictionaries(st.sampled_from(("cpu", "pods")), most, min_size=1),
    "max-per-user": st.builds("cpu={}".format, most),
    "limit-windows": st.builds("{} pods={}".format, st.sampled_from((WINDOW, WINDOW, CLOSED)), most),
})  # fmt: skip
user, queue, cpu = st.sampled_from(("alice", "bob", "")), st.sampled_from((*NAMES, "missing")), st.integers(0, 3)


class Held(NamedTuple):
    """A pod without a gang."""

    queue: str
    user: str
    cpu: int
    leaving: bool = False
    """It is being deleted."""


def pod_of(name: str, held: Held, **more: Any) -> Pod:
    """Such a pod."""
    if held.leaving and more:
        more["deleted"] = "2026-01-01T00:00:00Z"
    notes = {"muster.dev/created-by": held.user} if held.user else {}
    labels = {"volcano.sh/queue-name": held.queue}
    return pod(name, uid=f"uid-{name}", requests={"cpu": held.cpu}, annotations=notes, labels=labels, **more)


def counted(world: World, pods: list[Held], asker: Held) -> VerbReason | None:
    """The verbs' answer by the text of the queues and by the pods, one by one."""
    parents = parents_of(world.state.queues)

    def way(name: str) -> list[str]:
        return [name, *(way(parents[name]) if parents.get(name) else ["root"] if name not in parents else [])]

    used: Counter[tuple[str, str | None, str]] = Counter()
    for each in (*pods, asker):
        for above in way(each.queue):
            for who in (None, each.user):
                used.update({(above, who, "cpu"): each.cpu, (above, who, "pods"): 1})
    known = [world.state.queues[name] for name in way(asker.queue) if name in world.state.queues]
    if any(used[name, None, what] > limit for name, what, limit in capabilities(known) if what != "cpu" or asker.cpu):
        return VerbReason.QUEUE_FULL
    for each in known:
        name, notes = each.metadata.name, each.metadata.annotations
        per_user = number_of(notes.get("muster.dev/max-per-user", ""))
        window = notes.get("muster.dev/limit-windows", "")
        over = bool(asker.cpu) and used[name, asker.user, "cpu"] > per_user
        if over or (window.startswith(WINDOW) and used[name, None, "pods"] > number_of(window)):
            return VerbReason.LIMIT_REACHED
    return None


def capabilities(queues: list[Queue]) -> Iterator[tuple[str, str, int]]:
    """Queue, resource and amount of each capability that can be read."""
    for each in queues:
        if "many" not in each.spec.capability.values():
            yield from ((each.metadata.name, what, int(most)) for what, most in each.spec.capability.items())


def number_of(text: str) -> int:
    """The number at the end of a limit."""
    return int(text.partition("=")[2] or 1000)


held = st.builds(Held, queue, user, cpu, st.booleans())


@settings(max_examples=settings().max_examples * 2)
@given(
    st.tuples(st.fixed_dictionaries(dict.fromkeys(NAMES, queues)),
              *[st.dictionaries(st.sampled_from(NAMES), queues)] * 2),
    st.lists(held, min_size=4, max_size=8), st.sets(st.integers(0, 7), max_size=3),
    st.lists(held, min_size=3, max_size=3),
)  # fmt: skip
def test_planner_and_verbs_count_alike(
    changes: tuple[dict[str, dict[str, Any]], ...], pods: list[Held], ended: set[int], askers: list[Held]
) -> None:
    """Whatever the queues are, become, and hold: a gang is refused where a pod is, and as the pods say one by one."""
    world = World().nodes(1, cpu=1000)
    world.plugins = [Proportion({})]
    extender = Extender(world)
    there = [pod_of(f"p{number}", each, node="node-0") for number, each in enumerate(pods)]
    for each in there:
        world.state.on_pod(None, each)
    for number, (queues, asker) in enumerate(zip(changes, askers, strict=True)):
        for name, said in queues.items():
            world.queue(name, **said)
        for at in ended if number == 1 else ():
            if at < len(pods):
                world.state.on_pod(there[at], None)
        asks = pod_of(f"asks-{number}", asker)
        world.state.on_pod(None, asks)
        answer = extender.filter(ExtenderArgs(pod=asks, node_names=["node-0"]))
        [verb] = [*answer.failed_and_unresolvable_nodes.values()] or [None]
        key = world.gang(f"g{number}", {"worker": (1, {"cpu": asker.cpu})}, queue=asker.queue, user=asker.user)
        session = world.session()
        refusal = session.queue_refusal(session.ask(world.view(key)))
        left = [each for at, each in enumerate(pods) if number == 0 or at not in ended]
        assert verb == (VERBS[refusal.reason] if refusal else None) == counted(world, left, asker)
