"""Who a token is of and what he may see: asked of the API server, and believed for half a minute."""

import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from starlette.exceptions import HTTPException
from starlette.requests import Request
from web_world import Pages, gang

from history.model import EVERYTHING, Scope
from muster.api.base import Resource
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.core import NAMESPACES, Namespace
from muster.api.kubernetes.reviews import (
    TOKEN_REVIEWS,
    SubjectAccessReview,
    SubjectAccessReviewStatus,
    TokenReview,
    TokenReviewStatus,
)
from muster.kube.config import ClientConfig
from web.callers import COOKIE, FORWARDED, TOKEN_BYTES, TokenCallers
from web.rights import BELIEVED_S, Remembered, listing
from web.view import Caller

NOW = [0.0]


class Judge:
    """An API server that knows tokens and rights, and counts questions."""

    def __init__(self, *rights: str) -> None:
        self.rights = set(rights)
        """`list podgroups mine`, or `list nodes` for the whole cluster."""
        self.users = {"token-of-ada": UserInfo(username="ada", groups=["people"])}
        self.asked: Counter[str] = Counter()

    def create(self, resource: Resource[Any], asked: Any) -> Any:
        """Answer a review."""
        self.asked[resource.plural] += 1
        if resource is TOKEN_REVIEWS:
            user = self.users.get(asked.spec.token)
            status = TokenReviewStatus(authenticated=user is not None, user=user or UserInfo())
            return TokenReview(spec=asked.spec, status=status)
        right = asked.spec.resource_attributes
        told = " ".join(filter(None, (right.verb, right.resource, right.namespace)))
        assert (asked.spec.user, asked.spec.groups) == ("ada", ["people"])
        allowed = told in self.rights or f"{right.verb} {right.resource}" in self.rights
        return SubjectAccessReview(spec=asked.spec, status=SubjectAccessReviewStatus(allowed=allowed))


def request(**headers: str) -> Request:
    """A request with these headers."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": given})


def bearer(token: str = "token-of-ada") -> Request:  # noqa: S107 # no secret
    """A request with a token."""
    return request(authorization=f"Bearer {token}")


def callers(judge: Judge, *namespaces: str, forwarded: bool = False) -> TokenCallers:
    """Callers of a page with gangs in these namespaces."""
    pages = Pages({})
    for each in namespaces:
        gang(pages, each, "one")
    made = TokenCallers(judge, ClientConfig("https://api"), pages.caches, forwarded=forwarded)  # type: ignore[arg-type]
    made._answers, made._rights = Remembered(lambda: NOW[0]), Remembered(lambda: NOW[0])
    return made


def test_who_may_list_everything_sees_everything() -> None:
    """No namespace is asked about."""
    judge = Judge("list podgroups", "list pods", "list nodes")
    caller = callers(judge, "mine", "theirs").caller_of(bearer())
    assert (caller.name, caller.scope, caller.nodes, caller.queues) == ("ada", EVERYTHING, True, False)
    assert judge.asked["subjectaccessreviews"] == 4


@given(groups=st.sets(st.sampled_from("abcde")), pods=st.sets(st.sampled_from("abcde")))
def test_a_caller_sees_the_namespaces_whose_gangs_and_pods_he_may_list(groups: set[str], pods: set[str]) -> None:
    """And no others; who sees none is told which right lacks."""
    rights = {f"list podgroups {each}" for each in groups} | {f"list pods {each}" for each in pods}
    made = callers(Judge(*rights), *"abcde")
    if groups & pods:
        assert made.caller_of(bearer()).scope.namespaces == groups & pods
    else:
        with pytest.raises(HTTPException, match=r"podgroups\.scheduling\.volcano\.sh") as refused:
            made.caller_of(bearer())
        assert refused.value.status_code == 403


def test_a_namespace_whose_gangs_have_all_gone_is_seen_by_its_users() -> None:
    """Its history is theirs; others' is not."""
    made = callers(Judge("list podgroups old", "list pods old"), "theirs")
    made.past = lambda: ["old", "theirs", "elsewhere"]
    assert made.caller_of(bearer()).scope.namespaces == {"old"}


def test_the_past_of_a_namespace_begins_with_its_creation() -> None:
    """What was there under its name before was others'."""
    made = callers(Judge("list podgroups mine", "list pods mine"), "mine", "theirs")
    named = {"metadata": {"name": "mine", "creationTimestamp": "2027-01-15T08:00:00Z"}}
    made._caches._stores[NAMESPACES].add_object(convert(named, Namespace))
    scope = made.caller_of(bearer()).scope
    assert scope == Scope(frozenset({"mine"}), frozenset({("mine", 1_800_000_000_000)}))


def test_a_namespace_that_is_not_cached_yet_has_no_past() -> None:
    """It was created again a moment ago, and the history under its name is of another tenant."""
    began = time.time()
    made = callers(Judge("list podgroups new", "list pods new"), "theirs")
    made.past = lambda: ["new"]
    [(name, born)] = made.caller_of(bearer()).scope.born
    assert name == "new"
    assert round(began * 1000) <= born


@pytest.mark.parametrize("url", ["/gangs", "/live?page=gangs"])
def test_nobodys_rights_are_asked_before_the_caches_are_filled(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Without the namespaces and their times a caller would see too little for the time that answers are believed."""
    pages = Pages({"user": Caller()})
    asked = list[Request]()
    monkeypatch.setattr(pages.site.callers, "caller_of", asked.append)
    pages.site.not_ready = lambda: "pods are not read yet"
    assert (pages.get(url).status, asked) == (503, [])


def test_answers_are_believed_for_half_a_minute_each() -> None:
    """Nothing is asked again meanwhile; a token or right that is gone has gone within a minute in all."""
    judge = Judge("list podgroups a", "list pods a")
    made = callers(judge, "a", "b")
    NOW[0] = 0.0
    made.caller_of(bearer())
    asked = judge.asked.total()
    NOW[0] = BELIEVED_S - 1
    made.caller_of(bearer())
    assert judge.asked.total() == asked
    judge.rights.clear()
    NOW[0] = 2 * BELIEVED_S
    with pytest.raises(HTTPException):
        made.caller_of(bearer())
    judge.users.clear()
    NOW[0] += BELIEVED_S + 1
    with pytest.raises(HTTPException) as refused:
        made.caller_of(bearer())
    assert refused.value.status_code == 401


@pytest.mark.parametrize("sent", [
    {},
    {"authorization": "Bearer other"},
    {"authorization": "Basic token-of-ada"},
    {"cookie": f"{COOKIE}=other"},
    {"cookie": "muster=token-of-ada"},
    {FORWARDED: "token-of-ada"},
    {"authorization": "Bearer tök"},
])  # fmt: skip
def test_without_a_token_that_counts_nobody_is_known(sent: dict[str, str]) -> None:
    """The answer says how to sign in; a proxy's header counts only where it is expected."""
    with pytest.raises(HTTPException, match="/signin") as refused:
        callers(Judge("list podgroups", "list pods")).caller_of(request(**sent))
    assert refused.value.status_code == 401


def test_a_token_may_come_in_three_ways() -> None:
    """As a header of its own, in the cookie of the sign-in, and from a proxy where that is expected."""
    made = callers(Judge("list podgroups", "list pods"), forwarded=True)
    cookie = made.signed_in(" token-of-ada\n").headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=token-of-ada; ")
    assert {"HttpOnly", "Path=/", "SameSite=strict", "Secure"} <= set(cookie.split("; "))
    for sent in (bearer(), request(cookie=f"{COOKIE}=token-of-ada"), request(**{FORWARDED: "token-of-ada"})):
        assert made.caller_of(sent).name == "ada"


def test_a_token_that_no_cookie_takes_is_refused_with_the_reason() -> None:
    """Browsers drop longer cookies in silence."""
    with pytest.raises(HTTPException, match="oauth2-proxy"):
        callers(Judge()).signed_in("x" * (TOKEN_BYTES + 1))


def test_what_a_user_does_is_done_with_his_token_alone() -> None:
    """The client that acts for him has the server's address, and his token in place of the server's."""
    made = callers(Judge("list podgroups", "list pods"))
    made._config = ClientConfig("https://api", authorization=lambda: "Bearer of-the-server")
    with made.client_of(bearer()) as client:
        config = client._make.args[0]
    assert config.server == "https://api"
    assert config.authorization() == "Bearer token-of-ada"


def test_no_token_is_kept() -> None:
    """What is remembered stands under a hash."""
    made = callers(Judge("list podgroups", "list pods"))
    made.caller_of(bearer())
    assert "token-of-ada" not in repr(made._answers._of)


def test_service_accounts_of_a_namespace_count_as_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who may edit a namespace can create any number of them, which would displace others' rights."""
    made = callers(Judge())
    monkeypatch.setattr(made, "_reviewed_right", lambda *_: True)
    for name in ("ada", *(f"system:serviceaccount:evil:robot-{number}" for number in range(3))):
        assert made._may(UserInfo(username=name), listing(NAMESPACES))
    assert {*made._rights._of} == {"ada", "system:serviceaccount:evil"}
