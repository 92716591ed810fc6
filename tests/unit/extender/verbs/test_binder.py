"""A binding names its pod by UID; after a conflict or a lost answer the pod tells if it is done."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from extender.verbs.bind import Binder
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.kube.errors import APIError, Conflict, Forbidden, NotFound, ServerError, Unreachable


class Client:
    """An API server with one pod, which answers bindings so."""

    def __init__(self, answer: APIError | None, *, uid: str = "uid-p", node: str = "node-0") -> None:
        self.answer = answer
        self.posted: list[tuple[str, str, str, str]] = []
        self.pod: Pod | None = msgspec.convert({"metadata": {"name": "p", "uid": uid}, "spec": {"nodeName": node}}, Pod)

    async def bind(self, namespace: str, name: str, uid: str, node: str, _annotations: Mapping[str, str]) -> None:
        """See LoopClient."""
        self.posted.append((namespace, name, uid, node))
        if self.answer:
            raise self.answer

    async def get(self, res: Resource[Any], name: str, namespace: str) -> Pod:
        """See LoopClient."""
        assert (res, name, namespace) == (PODS, "p", "ns")
        if self.pod is None:
            raise NotFound("there is no such pod")
        return self.pod


def bound(client: Client) -> None:
    """Binds pod `uid-p` to node-0; raises what the binder does."""
    asyncio.run(Binder(cast("Any", client)).bind("ns", "p", "uid-p", "node-0", {}))
    assert client.posted == [("ns", "p", "uid-p", "node-0")]


@pytest.mark.parametrize("answer", [None, Conflict("it is bound"), Unreachable("no answer")])
def test_a_pod_that_is_on_this_node_is_bound(answer: APIError | None) -> None:
    """By this call or an earlier one, whose answer was lost."""
    bound(Client(answer))


@pytest.mark.parametrize("answer", [Conflict("it is bound"), Unreachable("no answer")])
@pytest.mark.parametrize(("uid", "node"), [("uid-other", "node-0"), ("uid-p", "node-1"), ("uid-p", "")])
def test_another_pod_or_another_node_is_no_answer_to_this_call(answer: APIError, uid: str, node: str) -> None:
    """A successor may have the name, and may have been bound here."""
    with pytest.raises(type(answer)):
        bound(Client(answer, uid=uid, node=node))


@pytest.mark.parametrize("answer", [Forbidden("no"), ServerError("broken"), NotFound("gone")])
def test_a_refusal_is_one_wherever_the_pod_is(answer: APIError) -> None:
    """Nothing is read then."""
    with pytest.raises(type(answer)):
        bound(Client(answer))


def test_a_pod_that_is_gone_when_it_is_read_is_not_bound() -> None:
    """The conflict was about another one."""
    client = Client(Conflict("it is bound"))
    client.pod = None
    with pytest.raises(NotFound):
        bound(client)
