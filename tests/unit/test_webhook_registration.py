"""The API server is told to send only what asks for Muster, and to refuse it when nobody answers."""

from base64 import b64decode

import pytest
from webhook_world import JSON, OwnerWorld, QueueWorld

from muster.runtime import registry
from webhook.app import routes
from webhook.registration import configurations


def webhooks(url: str | None = "https://127.0.0.1:9443/", service: tuple[str, str] | None = None) -> list[JSON]:
    """All webhooks of both configurations."""
    return [each for one in configurations(url=url, service=service, ca_bundle=b"PEM") for each in one["webhooks"]]


def test_one_configuration_of_each_kind() -> None:
    """Both are named muster, so that applying them again replaces them."""
    found = [(one["kind"], one["metadata"]["name"]) for one in configurations(url="https://x", ca_bundle=b"")]
    assert found == [("MutatingWebhookConfiguration", "muster"), ("ValidatingWebhookConfiguration", "muster")]


def test_every_route_exists_and_is_used() -> None:
    """Each webhook points to a route of the app, and no route is left out."""
    paths = {each["clientConfig"]["url"].removeprefix("https://127.0.0.1:9443") for each in webhooks()}
    assert paths == set(routes(QueueWorld(), OwnerWorld(), registry.framework()))


def test_fail_closed_and_small() -> None:
    """Each webhook fails closed, within 10 s, without side effects, and never sees the system's namespaces."""
    for each in webhooks():
        assert (each["failurePolicy"], each["timeoutSeconds"], each["sideEffects"]) == ("Fail", 10, "None")
        assert each["matchPolicy"] == "Equivalent"
        [outside] = each["namespaceSelector"]["matchExpressions"]
        assert {"kube-system", "kube-node-lease", "muster-system"} == set(outside["values"])
        assert outside["operator"] == "NotIn"
        assert b64decode(each["clientConfig"]["caBundle"]) == b"PEM"


def test_foreign_kinds_are_filtered() -> None:
    """Pods and batch/v1 Jobs are only sent when they carry one of our labels; CRDs of ours always are."""
    for each in webhooks():
        [rule] = each["rules"]
        ours = rule["apiGroups"][0].endswith("volcano.sh")
        assert ours != ("objectSelector" in each or "matchConditions" in each)


def test_mutations_are_repeated_when_others_change_the_pod() -> None:
    """Only mutating webhooks have a reinvocation policy."""
    mutating, validating = configurations(url="https://x", ca_bundle=b"")
    assert {each["reinvocationPolicy"] for each in mutating["webhooks"]} == {"IfNeeded"}
    assert not any("reinvocationPolicy" in each for each in validating["webhooks"])


def test_behind_a_service() -> None:
    """In a cluster the webhook is reached through its Service."""
    client = webhooks(None, ("muster-system", "muster-webhook"))[0]["clientConfig"]
    assert client["service"] == {"namespace": "muster-system", "name": "muster-webhook", "path": "/mutate/job"}


def test_either_url_or_service() -> None:
    """Neither or both is a mistake of the caller."""
    with pytest.raises(ValueError, match="either url or service"):
        configurations(ca_bundle=b"")
