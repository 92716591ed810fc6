"""A sender may ask so much, whatever it sends; without a certificate it learns nothing that is not for it."""

from collections.abc import Callable
from typing import Any

import pytest
from builders.clocks import Clock
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import FRAMEWORK, QueueWorld, lookups, vcjob

from muster.api.kubernetes.admission import AdmissionRequest, UserInfo
from muster.api.kubernetes.reviews import ResourceAttributes
from muster.api.volcano.batch import JOBS
from muster.kube.errors import Forbidden, TooManyRequests
from webhook.apiserver import DryRuns, Rights
from webhook.app import create_app, routes
from webhook.caches import Cached
from webhook.lookup import Lookups
from webhook.senders import BURST, MOST_REMEMBERED, RATE, RESERVE, Senders, charged, is_known

JSON = dict[str, Any]
QUOTED = "exceeded quota: kept-back, used: pods=7"


class Refuses:
    """An API server's client that knows no right, admits no pod, and counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def create(self, *_: Any, **_more: Any) -> Any:
        """Refuse everything."""
        self.asked += 1
        raise Forbidden(QUOTED)

    def get(self, *_: Any, **_more: Any) -> Any:
        """Refuse everything."""
        return self.create()


def spent(senders: Senders, peer: str = "10.0.0.1", user: str = "anna") -> int:
    """Questions that this user can ask right now."""
    for count in range(round(BURST) + 1):
        try:
            senders.count_question(peer, user)
        except TooManyRequests:
            return count
    pytest.fail("there is no end")


def test_a_bucket_is_emptied_and_fills_with_time() -> None:
    """Each address has its own, and none holds more than its size; one user leaves the reserve of others."""
    clock = Clock(0.0)
    senders = Senders(clock)
    assert spent(senders, "10.0.0.1") == spent(senders, "10.0.0.2") == BURST - RESERVE
    clock.now += 1
    assert spent(senders) == pytest.approx(RATE, rel=0.1)
    clock.now += 3600
    assert spent(senders) == BURST - RESERVE


@pytest.mark.parametrize("floods", [1, 5])
def test_users_who_flood_leave_others_at_their_address_a_share(floods: int) -> None:
    """All users share the API server's address: 34 Jobs of another tenant are looked up at each moment."""
    clock = Clock(0.0)
    senders = Senders(clock)
    for _ in range(60):
        for number in range(floods):
            spent(senders, user=f"flood {number}")
        for _ in range(3 * 34 if clock.now % 20 == 19 else 0):
            senders.count_question("10.0.0.1", "theirs")
        clock.now += 1


@pytest.mark.parametrize(("user", "namespace", "counted"), [
    ("anna", "theirs", "anna in theirs"),
    ("anna", "", "anna"),
    ("system:serviceaccount:evil:robot-17", "evil", "system:serviceaccount:evil in evil"),
    ("system:serviceaccount:kube-system:replicaset-controller", "evil", "system:serviceaccount:kube-system in evil"),
    ("x" * 10_000, "y" * 10_000, f"{'x' * 253} in {'y' * 253}"),
])  # fmt: skip
def test_accounts_of_a_namespace_are_one_and_controllers_act_for_all(user: str, namespace: str, counted: str) -> None:
    """A tenant makes any number of accounts; and of Deployments, whose pods one controller of the cluster makes."""
    assert charged(AdmissionRequest("u-1", user_info=UserInfo(username=user), namespace=namespace)) == counted


@given(steps=st.lists(st.tuples(st.floats(0, 10), st.integers(0, 3000), st.integers(0, 5)), max_size=12))
def test_no_address_gets_more_look_ups_than_its_share(steps: list[tuple[float, int, int]]) -> None:
    """Over any time: a burst and the rate, whatever the pauses and the users that it names."""
    clock, taken = Clock(0.0), 0
    senders = Senders(clock)
    for pause_s, wished, user in steps:
        clock.now += pause_s
        for _ in range(wished):
            try:
                senders.count_question("10.0.0.1", str(user))
            except TooManyRequests:
                break
            taken += 1
    assert taken <= BURST + RATE * clock.now + 1


def test_so_many_addresses_are_remembered() -> None:
    """Those that have asked last; one that goes on asking is among them."""
    senders = Senders(Clock(0.0))
    spent(senders)
    for number in range(2 * MOST_REMEMBERED):
        senders.count_question(f"fd00::{number:x}", "anna")
        with pytest.raises(TooManyRequests):
            senders.count_question("10.0.0.1", "anna")
    assert len(senders._left) == MOST_REMEMBERED


@pytest.mark.parametrize("question", [
    lambda client, number: DryRuns(client).attempt({"spec": {"hostname": str(number)}}, "theirs"),
    lambda client, number: Rights(client).allows(UserInfo(username=f"user-{number}"),
        ResourceAttributes(verb="get", resource="secrets")),
    lambda client, number: Cached(client, JOBS).live(f"name-{number}", "theirs"),
], ids=["dry runs", "rights", "owners"])  # fmt: skip
@pytest.mark.parametrize("certified", [True, False])
def test_every_question_to_the_api_server_is_counted(question: Callable[[Any, int], Any], certified: bool) -> None:  # noqa: FBT001 - a column of the table
    """Also for an API server with a certificate, because it has many users; not for offline admission."""
    client, senders = Refuses(), Senders(Clock(0.0), certified=certified)
    most = round(BURST - RESERVE)
    with senders.review("10.0.0.1", AdmissionRequest("u-1", user_info=UserInfo(username="anna"))):
        outcomes = [_asked(question, client, number) for number in range(most + 1)]
        assert is_known() is certified
    assert outcomes == ["asked"] * most + ["limited"]
    assert client.asked == most
    assert is_known()
    assert {_asked(question, client, number) for number in range(round(BURST) + 1)} == {"asked"}


def _asked(question: Callable[[Any, int], Any], client: Refuses, number: int) -> str:
    try:
        question(client, number)
    except TooManyRequests:
        return "limited"
    except Forbidden:
        pass
    return "asked"


def app(client: Refuses, senders: Senders) -> FlaskClient:
    """The app without a server, whose dry runs and rights ask this client."""
    world = lookups(QueueWorld(theirs=("root", "Open"), above=("root", "Open"), below=("above", "Open")))
    world = Lookups(
        world.queues,
        world.owners,
        world.namespaces,
        world.runtimes,
        DryRuns(client),  # type: ignore[arg-type] # all that is called
        Everything(),
    )
    return create_app(routes(world, FRAMEWORK), senders).test_client()


class Everything:
    """Rights of a user who may do everything, as a forged `userInfo` says."""

    def allows(self, _user: UserInfo, _action: ResourceAttributes) -> bool:
        """True."""
        return True


def asked(client: FlaskClient, route: str, obj: JSON, peer: str = "10.0.0.1", **fields: Any) -> JSON:
    """The response to a review that this address sends."""
    request = {"uid": "u-1", "operation": "CREATE", "namespace": "n", "object": obj, **fields}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response: JSON = client.post(route, json=review, environ_base={"REMOTE_ADDR": peer}).get_json()["response"]
    return response


def test_a_flood_of_reviews_is_told_to_wait_and_others_are_answered() -> None:
    """With the code that clients know: try again."""
    senders = Senders(Clock(0.0))
    client = app(Refuses(), senders)
    spent(senders, user="anna in n")
    anna = {"userInfo": {"username": "anna"}}
    response = asked(client, "/validate/job", vcjob(), **anna)
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (429, "TooManyRequests")
    assert (
        "10.0.0.1 cause more than 200 look-ups per second, many of them for anna in n" in response["status"]["message"]
    )
    assert asked(client, "/validate/job", vcjob(), "10.0.0.2", **anna)["allowed"] is True
    assert asked(client, "/validate/job", vcjob(), userInfo={"username": "ben"})["allowed"] is True


@pytest.mark.parametrize("known", [True, False])
def test_quotas_and_queues_are_told_to_known_senders_only(known: bool) -> None:  # noqa: FBT001 - a column of the table
    """A forged user has every right; still it learns of no quota, and of no queue that it does not name."""
    client = app(Refuses(), Senders(certified=known))
    told = [
        str(asked(client, "/validate/job", vcjob())),
        str(asked(client, "/validate/job", vcjob(queue="nowhere"))),
        str(asked(client, "/validate/job", vcjob(queue="above"))),
        str(asked(client, "/validate/queue", {}, operation="DELETE", name="above")),
    ]
    words = ("kept-back", "theirs", "it: below", "queues: below")
    assert [word in text for word, text in zip(words, told, strict=True)] == [known] * 4, told
    if not known:
        assert "kubectl get queues" in told[1]
