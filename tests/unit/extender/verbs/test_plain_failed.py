"""A pod without a gang whose binding failed takes nothing: neither of its node nor of its queue, nor of its user."""

import asyncio
from typing import Any

import pytest
from verbs_world import Extender

from extender.planner.reasons.verbs import Reason
from extender.verbs import bind
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.extender import ExtenderBindingArgs
from muster.kube.errors import APIError, Conflict, Forbidden, Unreachable


@pytest.fixture
def extender(monkeypatch: pytest.MonkeyPatch) -> Extender:
    """An extender that waits for no watch, and a queue with room for one of its pods."""
    monkeypatch.setattr(bind, "LAG_S", 0.0)
    made = Extender()
    made.world.queue("default", capability={"cpu": 1})
    return made


def untouched(extender: Extender) -> bool:
    """True if nothing is counted for anybody."""
    ledger = extender.world.state.ledger
    counted = (ledger.entries, ledger.assumed, ledger.queues.queues, ledger.queues.users)
    return not any(counted) and not extender.world.state.nodes.used.any()


def ready(extender: Extender, name: str) -> Pod:
    """A pod that filter has let pass."""
    pod = extender.pod(name)
    extender.passed(pod, "node-0", "node-1")
    return pod


@pytest.mark.parametrize("error", [Conflict("it is another pod"), Forbidden("no"), Unreachable("no answer")])
def test_after_a_refusal_another_pod_has_the_room(extender: Extender, error: APIError) -> None:
    """And the pod itself may be bound later."""
    first, second = ready(extender, "first"), ready(extender, "second")
    binds = extender.bind

    async def refuses(*_: Any) -> None:
        raise error

    extender.bind = refuses  # type: ignore[method-assign]
    assert extender.error(first, "node-0") == Reason.BIND_FAILED
    assert untouched(extender)
    extender.bind = binds  # type: ignore[method-assign]
    assert extender.error(second, "node-0") == ""
    assert extender.error(first, "node-0") == Reason.QUEUE_FULL_NOW


def test_a_binding_that_is_cancelled_takes_nothing(extender: Extender) -> None:
    """While it is under way it does: another pod is refused."""
    first, second = ready(extender, "first"), ready(extender, "second")

    def args(pod: Pod) -> ExtenderBindingArgs:
        meta = pod.metadata
        return ExtenderBindingArgs(pod_name=meta.name, pod_namespace="ns", pod_uid=meta.uid, node="node-0")

    async def story() -> None:
        begun, never = asyncio.Event(), asyncio.Event()

        async def hangs(*_: Any) -> None:
            begun.set()
            await never.wait()

        extender.bind = hangs  # type: ignore[method-assign]
        call = asyncio.create_task(extender._bind(args(first)))
        await begun.wait()
        assert (await extender._bind(args(second))).error == Reason.QUEUE_FULL_NOW
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    asyncio.run(story())
    assert untouched(extender)
