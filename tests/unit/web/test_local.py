"""The page on loopback: who has the key of the URL is who has started it, and sees what the kubeconfig may list."""

import time
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from history.model import EVERYTHING, Scope
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS, Namespace
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.reviews import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewStatus
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.errors import Forbidden
from web.caches import ListableScope
from web.local import LocalCallers, reach_of

MINE = Scope(frozenset({"mine"}), frozenset({("mine", 1_795_680_000_000)}))
"""A namespace from its creation on: under its name there may have been another tenant's before."""


class Judge:
    """An API server that knows rights of its user: `verb resource`, or `verb resource namespace`."""

    def __init__(self, *rights: str) -> None:
        self.rights = {*rights}
        self.asked = 0
        self.created: str | None = "2026-11-26T08:00:00Z"
        """Of the namespace; None: it may not be read."""

    def get(self, _: Resource[Any], name: str) -> Namespace:
        """The namespace."""
        if self.created is None:
            raise Forbidden(name)
        return Namespace(metadata=ObjectMeta(name=name, creation_timestamp=self.created))

    def create(self, _: Resource[Any], asked: SubjectAccessReview) -> SubjectAccessReview:
        """Answer a review."""
        self.asked += 1
        right = asked.spec.resource_attributes
        told = {f"{right.verb} {right.resource}", f"{right.verb} {right.resource} {right.namespace}"}
        return SubjectAccessReview(asked.spec, SubjectAccessReviewStatus(bool(told & self.rights)))


def callers(judge: Judge, **reach: bool) -> LocalCallers:
    """The callers of a page for namespace `mine`, which follows these kinds everywhere."""
    kinds = {"gangs": POD_GROUPS, "nodes": NODES, "queues": QUEUES}
    reaches = {kind: ListableScope(everywhere=reach.get(name, True)) for name, kind in kinds.items()}
    return LocalCallers(judge, "the-key", 8400, "mine", reaches)  # type: ignore[arg-type]  # as Client


def request(query: str = "", cookie: str = "muster-8400=the-key") -> Request:
    """A request of a browser."""
    headers = [(b"cookie", cookie.encode()), (b"host", b"localhost:8400")]
    scope = {"type": "http", "method": "GET", "path": "/gangs", "query_string": query.encode(), "headers": headers}
    return Request(scope | {"scheme": "http", "server": ("localhost", 8400)})


def test_the_key_of_the_url_becomes_a_cookie() -> None:
    """The page is loaded again without it; another key, and none, are no way in."""
    made = callers(Judge())
    answer = made.with_key(request("key=the-key", ""))
    assert answer is not None
    assert (answer.status_code, answer.headers["location"]) == (303, "/gangs")
    assert answer.headers["set-cookie"] == "muster-8400=the-key; HttpOnly; Path=/; SameSite=strict"
    assert made.with_key(request("key=another")) is None
    assert made.with_key(request()) is None


@pytest.mark.parametrize("cookie", ["", "muster-8400=another", "muster-8401=the-key"])
def test_nobody_else_on_the_machine_is_known(cookie: str) -> None:
    """Whatever they ask for."""
    made = callers(Judge("list podgroups"))
    for ask in (made.caller_of, made.client_of, lambda asked: made.may(asked, ResourceAttributes("get"))):
        with pytest.raises(HTTPException, match="open the URL that it has printed") as refused:
            ask(request(cookie=cookie))  # type: ignore[operator]
        assert refused.value.status_code == 401


@pytest.mark.parametrize(("rights", "reach", "scope", "nodes", "queues"), [
    (["list podgroups", "list nodes", "list queues"], {}, EVERYTHING, True, True),
    (["list podgroups"], {}, EVERYTHING, False, False),
    (["list podgroups", "list nodes", "list queues"], {"nodes": False, "queues": False}, EVERYTHING, False, False),
    (["list podgroups", "list nodes"], {"gangs": False}, MINE, True, False),
    (["list podgroups mine", "list queues"], {}, MINE, False, True),
])  # fmt: skip
def test_the_caller_sees_what_the_kubeconfig_may_list(
    rights: list[str], reach: dict[str, bool], scope: Scope, *, nodes: bool, queues: bool
) -> None:
    """As far as the page follows it; the answers are believed for a while."""
    judge = Judge(*rights)
    made = callers(judge, **reach)
    caller = made.caller_of(request())
    assert (caller.name, caller.scope, caller.nodes, caller.queues) == ("", scope, nodes, queues)
    before = judge.asked
    assert made.caller_of(request()) is caller
    assert judge.asked == before


def test_of_a_namespace_whose_creation_may_not_be_read_nothing_past_is_shown() -> None:
    """It may be a former tenant's."""
    judge = Judge("list podgroups mine")
    judge.created, before = None, time.time()
    [(name, born)] = callers(judge).caller_of(request()).scope.born
    assert name == "mine"
    assert born >= int(before) * 1000


def test_who_may_not_even_list_one_namespace_is_told_what_to_ask_for() -> None:
    """There is nothing to show."""
    with pytest.raises(HTTPException, match="gangs of namespace mine: ask its administrator") as refused:
        callers(Judge("list nodes")).caller_of(request())
    assert refused.value.status_code == 403


def test_rights_are_those_of_the_kubeconfig() -> None:
    """And its client, which stays open."""
    judge = Judge("list podgroups", "get pods mine")
    made = callers(judge)
    assert made.may(request(), ResourceAttributes("get", "", "pods", namespace="mine"))
    assert not made.may(request(), ResourceAttributes("delete", "", "pods", namespace="mine"))
    with made.client_of(request()) as client:
        assert client is judge  # type: ignore[comparison-overlap]


def test_each_kind_is_followed_as_far_as_it_may_be_watched() -> None:
    """Everywhere, in one namespace, or not at all; kinds without namespaces have nothing between."""
    rights = [f"{verb} {kind}" for verb in ("list", "watch") for kind in ("podgroups", "pods mine")]
    found = reach_of(Judge(*rights, "list nodes", "list queues mine", "watch queues mine"), "mine")  # type: ignore[arg-type]
    assert (found[POD_GROUPS], found[PODS]) == (ListableScope(), ListableScope(everywhere=False))
    assert found[NODES] == found[QUEUES] == ListableScope(everywhere=False, at_all=False)
