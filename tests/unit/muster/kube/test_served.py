"""Whether the API server serves a kind: asked once a minute."""

import json
import threading
from typing import Any

import pytest

from muster.api.kubernetes.scheduling import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUPS
from muster.kube.errors import APIError, NotFound, Unreachable
from muster.kube.served import FRESH_S, Served


class Server:
    """An API server that answers the question."""

    def __init__(self) -> None:
        self.answer: list[str] | APIError = ["priorityclasses", "podgroups"]
        self.paths: list[str] = []
        self.now_s = 0.0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()

    def request(self, _method: str, path: str, **_: Any) -> bytes:
        """As the client does."""
        self.paths.append(path)
        self.asked.set()
        assert self.may_answer.wait(10)
        if isinstance(self.answer, APIError):
            raise self.answer
        return json.dumps({"kind": "APIResourceList", "resources": [{"name": each} for each in self.answer]}).encode()

    def served(self) -> Served:
        """The question about native PodGroups."""
        client: Any = self
        return Served(client, NATIVE_POD_GROUPS, monotonic_s=lambda: self.now_s)


def test_an_answer_holds_for_a_minute() -> None:
    """The list of the kind's own group and version says it."""
    server = Server()
    served = server.served()
    assert served()
    server.answer = NotFound("gone")
    server.now_s = FRESH_S - 1
    assert served()
    server.now_s = FRESH_S
    assert not served()
    assert server.paths == ["/apis/scheduling.k8s.io/v1beta1"] * 2


def test_a_version_may_be_served_without_the_kind() -> None:
    """As v1beta1 is of other kinds of the group, in other releases."""
    server = Server()
    server.answer = ["priorityclasses"]
    assert not server.served()()


@pytest.mark.parametrize("before", [True, False])
def test_without_an_answer_it_stays_as_it_was(*, before: bool) -> None:
    """An API server that starts again says nothing for a moment."""
    server = Server()
    served = server.served()
    if before:
        assert served()
    server.answer, server.now_s = Unreachable("starting"), FRESH_S
    assert served() == before


def test_only_one_caller_waits() -> None:
    """Reviews that come meanwhile go by the answer before."""
    server = Server()
    served = server.served()
    assert served()
    server.now_s, server.answer = FRESH_S, NotFound("gone")
    server.asked.clear()
    server.may_answer.clear()
    found: list[bool] = []
    asking = threading.Thread(target=lambda: found.append(served()))
    asking.start()
    assert server.asked.wait(10)
    assert served()
    server.may_answer.set()
    asking.join(10)
    assert found == [False]
    assert not served()


def test_another_kind_has_another_question() -> None:
    """Composite groups are in a version of their own."""
    server = Server()
    client: Any = server
    Served(client, COMPOSITE_POD_GROUPS)()
    assert server.paths == ["/apis/scheduling.k8s.io/v1alpha3"]
