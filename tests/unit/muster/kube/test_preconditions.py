"""Preconditions reach the API server; and what writes beside controller and extender names them, or needs none."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
from guarded_api import GuardedApi, Sent, sites_of

import certs
import history
import muster.kube
import webhook
from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, LEASES, PODS, Lease
from muster.kube.config import Config
from muster.kube.lease import Elector
from muster.kube.loopclient import APPLY_PATCH, MERGE_PATCH, LoopClient

Call = Callable[[LoopClient], Awaitable[Any]]


class Recording(LoopClient):
    """A client that sends nothing, and keeps what it would."""

    def __init__(self) -> None:
        super().__init__(Config("http://127.0.0.1:1"))
        self.sent: list[tuple[str, str, Any, dict[str, Any]]] = []

    async def _send(
        self, _verb: str, _res: Resource[Any], method: str, path: str, content: object = None, **call: Any
    ) -> bytes:
        self.sent.append((method, path, content, call))
        return b"{}"


def sent(call: Call) -> tuple[str, str, Any, dict[str, Any]]:
    """What a call sends: method, path, body and options."""

    async def made() -> tuple[str, str, Any, dict[str, Any]]:
        client = Recording()
        await call(client)
        (one,) = client.sent
        return one

    return asyncio.run(made())


@pytest.mark.parametrize(
    ("options", "preconditions"),
    [
        ({}, None),
        ({"uid": "u"}, {"uid": "u"}),
        ({"resource_version": "7"}, {"resourceVersion": "7"}),
        ({"uid": "u", "resource_version": "7"}, {"uid": "u", "resourceVersion": "7"}),
    ],
)
def test_a_deletion_names_the_object_that_is_meant(options: dict[str, str], preconditions: dict[str, str]) -> None:
    """Another one of its name, or another version, stays."""
    method, path, body, _ = sent(lambda client: client.delete(PODS, "p", "ns", **options))
    assert (method, path) == ("DELETE", "/api/v1/namespaces/ns/pods/p")
    assert body.get("preconditions") == preconditions


@pytest.mark.parametrize("version", [None, "7"])
def test_an_eviction_names_the_pod_that_is_meant(version: str | None) -> None:
    """And the version in which it was seen, if that counts."""
    _, path, body, _ = sent(lambda client: client.evict("ns", "p", "u", resource_version=version, grace_period_s=0))
    assert path == "/api/v1/namespaces/ns/pods/p/eviction"
    named = {"uid": "u"} | ({"resourceVersion": version} if version else {})
    assert body["deleteOptions"] == {"preconditions": named, "gracePeriodSeconds": 0}


def test_a_binding_names_the_pod_that_is_meant() -> None:
    """A successor of its name is not bound in its place."""
    _, path, body, _ = sent(lambda client: client.bind("ns", "p", "u", "node-0", {}))
    assert path == "/api/v1/namespaces/ns/pods/p/binding"
    assert (body["metadata"]["uid"], body["target"]["name"]) == ("u", "node-0")


def test_a_patch_is_sent_as_it_is() -> None:
    """Its metadata are the preconditions."""
    patch = {"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"a": None}}
    _, path, body, call = sent(lambda client: client.merge_patch(PODS, "p", patch, "ns", subresource="status"))
    assert (path, body) == ("/api/v1/namespaces/ns/pods/p/status", patch)
    assert call["content_type"] == MERGE_PATCH


@pytest.mark.parametrize("force", [False, True])
def test_only_who_may_takes_fields_from_others(*, force: bool) -> None:
    """An application without force is refused where another client has changed a field."""
    made = {"metadata": {"name": "c", "namespace": "ns", "uid": "u"}}
    _, _, body, call = sent(lambda client: client.apply(CONFIG_MAPS, made, field_manager="me", force=force))
    assert (body["metadata"]["uid"], call["content_type"]) == ("u", APPLY_PATCH)
    assert call["query"] == {"fieldManager": "me", "force": str(force).lower()}


@pytest.mark.parametrize(
    ("package", "writes"),
    [
        (certs, []),
        (history, ["publish.Publisher.changed apply"]),  # the ConfigMap of the one recorder
        (
            muster.kube,
            [
                "events.Recorder._write create",
                "events.Recorder._write merge_patch",  # names are random: nobody else's Event has it
                "lease.Elector._try create",
                "lease.Elector._write merge_patch",
                "served.Served._ask request",  # a GET
            ],
        ),
        (webhook, ["apiserver.DryRuns._create create", "apiserver.Rights._review create"]),
    ],
)
def test_nothing_else_is_written(package: ModuleType, writes: list[str]) -> None:
    """The webhook writes nothing that stays."""
    assert sites_of(package) == Counter(writes)


class Candidate:
    """A candidate for a lease, and the API server that has it."""

    def __init__(self, holder: str = "") -> None:
        self.now = 1000.0
        self.api = GuardedApi(muster.kube)
        if holder:
            self.keep(holder)
        self.stepped: list[str] = []
        self.elector = Elector(
            self.api,  # type: ignore[arg-type]  # the same methods
            "ns",
            "lease",
            "me",
            monotonic_s=lambda: self.now,
            on_started=lambda: self.stepped.append("up"),
            on_stopped=lambda: self.stepped.append("down"),
        )

    def keep(self, holder: str) -> Lease:
        """Another candidate has the lease now."""
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2027-01-01T00:00:00.000000Z"}
        self.api.kind(LEASES).clear()
        return self.api.add(LEASES, {"metadata": {"name": "lease"}, "spec": spec}, "ns")  # type: ignore[no-any-return]

    @property
    def holder(self) -> str:
        """Who has it."""
        found: Lease = self.api.find(LEASES, "lease", "ns")
        return found.spec.holder_identity or ""

    def first(self, other: str) -> None:
        """Another candidate takes it just before the next write."""

        def meddle(_: Sent) -> None:
            self.api.meddle = lambda _: None
            self.keep(other)

        self.api.meddle = meddle


def test_a_lease_that_another_has_taken_in_that_moment_is_not_taken() -> None:
    """Both have read that it is free; the second write names a version that is over."""
    candidate = Candidate(holder="old")
    candidate.elector._turn()
    candidate.now += 15.0
    candidate.first("other")
    candidate.elector._turn()
    assert (candidate.holder, candidate.elector.leading, candidate.stepped) == ("other", False, [])
    candidate.elector._turn()
    assert (candidate.holder, candidate.stepped) == ("other", [])
    candidate.now += 15.0
    candidate.elector._turn()
    assert (candidate.holder, candidate.elector.leading, candidate.stepped) == ("me", True, ["up"])


def test_of_two_that_make_it_one_leads() -> None:
    """The name is taken by then."""
    candidate = Candidate()
    candidate.first("other")
    candidate.elector._turn()
    assert (candidate.holder, candidate.elector.leading, candidate.stepped) == ("other", False, [])


def test_who_has_lost_it_between_reading_and_renewing_does_not_lead_by_that_renewal() -> None:
    """It goes on until it knows, or until its deadline, and then steps down."""
    candidate = Candidate()
    candidate.elector._turn()
    assert candidate.stepped == ["up"]
    candidate.now += 9.0
    candidate.first("other")
    candidate.elector._turn()
    assert (candidate.holder, candidate.stepped) == ("other", ["up"])
    candidate.now += 1.0
    assert not candidate.elector.leading, "the last renewal that succeeded is ten seconds ago"
    candidate.elector._turn()
    assert (candidate.holder, candidate.stepped) == ("other", ["up", "down"])


@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_lease_that_another_has_is_not_given_up(moment: str) -> None:
    """Whether that was seen, or it took it in that moment."""
    candidate = Candidate()
    candidate.elector._turn()
    if moment == "before":
        candidate.keep("other")
    else:
        candidate.first("other")
    candidate.elector._release()
    assert candidate.holder == "other"


def test_a_lease_that_is_given_up_has_no_holder() -> None:
    """So that the next candidate need not wait."""
    candidate = Candidate()
    candidate.elector._turn()
    candidate.elector._release()
    assert candidate.holder == ""


def test_a_holder_whose_name_begins_alike_is_another_one() -> None:
    """A pod's name may begin with that of another pod."""
    candidate = Candidate(holder="me-too")
    candidate.elector._turn()
    assert (candidate.holder, candidate.stepped) == ("me-too", [])
