"""Preconditions reach the API server; and what writes beside controller and extender names them, or needs none."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest
from guarded_api import sites_of

import certs
import history
import muster.kube
import webhook
from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, PODS
from muster.kube.config import ClientConfig
from muster.kube.loopclient import APPLY_PATCH, MERGE_PATCH, LoopClient

Call = Callable[[LoopClient], Awaitable[Any]]


class Recording(LoopClient):
    """A client that sends nothing, and keeps what it would."""

    def __init__(self) -> None:
        super().__init__(ClientConfig("http://127.0.0.1:1"))
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


@pytest.mark.parametrize(("options", "preconditions"), [
    ({}, None),
    ({"uid": "u"}, {"uid": "u"}),
    ({"resource_version": "7"}, {"resourceVersion": "7"}),
    ({"uid": "u", "resource_version": "7"}, {"uid": "u", "resourceVersion": "7"}),
])  # fmt: skip
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
                "events.EventWriter._write create",
                "events.EventWriter._write merge_patch",  # names are random: nobody else's Event has it
                "lease.Elector._try create",
                "lease.Elector._patched merge_patch",
                "served.Served._ask request",  # a GET
            ],
        ),
        (webhook, ["apiserver.DryRuns._create create", "apiserver.Rights._review create"]),
    ],
)
def test_nothing_else_is_written(package: ModuleType, writes: list[str]) -> None:
    """The webhook writes nothing that stays."""
    assert sites_of(package) == Counter(writes)
