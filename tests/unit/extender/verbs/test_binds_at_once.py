"""A pod that is just being bound counts in full for another one whose bind call comes before the API server answers."""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from verbs_world import NODES, Extender, error_of

from extender.planner.reasons.verbs import VerbReason
from extender.verbs import bind
from muster.api.kubernetes.core import Pod
from muster.api.names import CREATED_BY, VOLCANO_QUEUE
from muster.kube.errors import APIError, Conflict, Forbidden, Unreachable

JSON = dict[str, Any]
BY = {user: {"notes": {CREATED_BY: user}} for user in ("alice", "bob")}
SHARES = {tenths: {"notes": {"gpu-fraction": f"0.{tenths}"}} for tenths in (4, 6, 7)}


class Case(NamedTuple):
    """One limit: queues, two pods that do not fit together, and one that fits beside the first."""

    queues: Mapping[str, JSON]
    first: JSON
    too_much: JSON
    fits: JSON
    reason: VerbReason = VerbReason.QUEUE_FULL_NOW
    node_of_fitting: str = "node-0"


CASES = {
    "capability": Case({"default": {"capability": {"cpu": 3}}}, {"cpu": 2}, {"cpu": 2}, {"cpu": 1}),
    "capability above": Case({"above": {"capability": {"cpu": 1}}, "default": {"parent": "above"}, "beside": {}}, {},
                             {}, {"notes": {VOLCANO_QUEUE: "beside"}}),
    "capability of another queue": Case({"small": {"capability": {"cpu": 1}}, "default": {}},
                                        {"notes": {VOLCANO_QUEUE: "small"}}, {"notes": {VOLCANO_QUEUE: "small"}}, {}),
    "GPUs of a queue": Case({"default": {"capability": {"nvidia.com/gpu": 1}}}, {"limits": {"nvidia.com/gpu": 1}},
                            {"limits": {"nvidia.com/gpu": 1}}, {}),
    "limit per user": Case({"default": {"max-per-user": "pods=1"}}, BY["alice"], BY["alice"], BY["bob"]),
    "limit per user that is not known": Case({"default": {"max-per-user": "pods=1"}}, {}, {}, BY["bob"]),
    "limit per user above": Case({"above": {"max-per-user": "cpu=1"}, "default": {"parent": "above"}}, BY["alice"],
                                 BY["alice"], BY["bob"]),
    "limit by time": Case({"default": {"limit-windows": "Fri 08:00-09:00 UTC cpu=1"}, "beside": {}}, BY["alice"],
                          BY["bob"], {"notes": {VOLCANO_QUEUE: "beside"}}),
    "room of a node": Case({}, {"cpu": 20}, {"cpu": 20}, {"cpu": 12}, VerbReason.ROOM_TAKEN),
    "room of this node": Case({}, {"cpu": 20}, {"cpu": 20}, {"cpu": 20}, VerbReason.ROOM_TAKEN, "node-1"),
    "share of a GPU": Case({}, SHARES[6], SHARES[7], SHARES[4], VerbReason.ROOM_TAKEN),
    "GPU that is shared": Case({}, SHARES[4], {"limits": {"nvidia.com/gpu": 1}}, SHARES[6], VerbReason.ROOM_TAKEN),
}  # fmt: skip
each_limit = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def at_once(
    extender: Extender, *pods: Pod, nodes: tuple[str, str], fails: Exception | None = None, cancelled: bool = False
) -> list[str]:
    """Both errors: the second call comes while the API server has not answered the first.

    That then `fails`, or its caller is gone.
    """
    first, second = (error_of(extender._bind, pod, node) for pod, node in zip(pods, nodes, strict=True))
    binds = extender.bind

    async def story() -> list[str]:
        begun, may_answer = asyncio.Event(), asyncio.Event()

        async def answers_late(*binding: Any) -> None:
            extender.bind = binds  # type: ignore[method-assign]
            begun.set()
            await may_answer.wait()
            if fails:
                raise fails
            await binds(*binding)

        extender.bind = answers_late  # type: ignore[method-assign]
        call = asyncio.create_task(first)
        async with asyncio.timeout(10):
            await begun.wait()
        error = await second
        if cancelled:
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            return ["", error]
        may_answer.set()
        return [await call, error]

    return asyncio.run(story())


def ready(case: Case, second: JSON) -> tuple[Extender, list[Pod]]:
    """Two nodes of a GPU each, the queues, and both pods, which filter has let pass."""
    extender = Extender()
    for node in NODES:
        extender.world.node(node, gpus=1)
    for name, said in case.queues.items():
        extender.world.queue(name, **said)
    pods = [extender.pod("first", **case.first), extender.pod("second", **second)]
    for pod in pods:
        assert extender.passed(pod, *NODES) == NODES
    return extender, pods


@pytest.fixture(autouse=True)
def waits_for_no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes later here."""
    monkeypatch.setattr(bind, "LAG_S", 0.0)


@each_limit
@pytest.mark.parametrize("fits", [True, False])
def test_a_pod_beside_it_is_bound_if_both_fit(case: Case, *, fits: bool) -> None:
    """Whatever is limited, the first one counts there, for nobody else, and for no more than it takes."""
    extender, pods = ready(case, case.fits if fits else case.too_much)
    node = case.node_of_fitting if fits else "node-0"
    assert at_once(extender, *pods, nodes=("node-0", node)) == ["", "" if fits else case.reason]
    assert extender.bound == {"first": "node-0"} | ({"second": node} if fits else {})


def untouched(extender: Extender) -> bool:
    """True if nothing is counted for anybody."""
    ledger, nodes = extender.world.state.ledger, extender.world.state.nodes
    counted = (ledger.entries, ledger.assumed, ledger.queues.queues, ledger.queues.users)
    return not any(counted) and not nodes.used.any()


@each_limit
@pytest.mark.parametrize("error", [Conflict("it is another pod"), Forbidden("no"), Unreachable("no answer")])
def test_a_pod_that_was_refused_is_bound_when_the_other_binding_has_failed(case: Case, error: APIError) -> None:
    """What the first one was counted for is given back everywhere."""
    extender, pods = ready(case, case.too_much)
    assert at_once(extender, *pods, nodes=("node-0", "node-0"), fails=error) == [VerbReason.BIND_FAILED, case.reason]
    assert untouched(extender)
    assert extender.error(pods[1], "node-0") == ""
    assert extender.error(pods[0], "node-0") == case.reason


@each_limit
def test_a_binding_that_is_cancelled_takes_nothing(case: Case) -> None:
    """While it is under way it does: another pod is refused."""
    extender, pods = ready(case, case.too_much)
    assert at_once(extender, *pods, nodes=("node-0", "node-0"), cancelled=True) == ["", case.reason]
    assert untouched(extender)
