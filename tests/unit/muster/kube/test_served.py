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


@pytest.mark.parametrize(("answer", "before", "after"), [
    pytest.param(NotFound("gone"), True, False, id="no such version"),
    pytest.param(["priorityclasses"], True, False, id="the version without the kind"),
    pytest.param(["podgroups"], False, True, id="the kind"),
    pytest.param(Unreachable("starting"), True, True, id="no answer leaves it as it was"),
    pytest.param(Unreachable("starting"), False, False, id="no answer before any"),
])  # fmt: skip
def test_an_answer_holds_for_a_minute(answer: list[str] | APIError, *, before: bool, after: bool) -> None:
    """The list of the kind's own group and version says it."""
    server = Server()
    served = server.served()
    if not before:
        server.answer = []
    assert served() == before
    server.answer, server.now_s = answer, FRESH_S - 1
    assert served() == before
    server.now_s = FRESH_S
    assert served() == after
    assert server.paths == ["/apis/scheduling.k8s.io/v1beta1"] * 2


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
