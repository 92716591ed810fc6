"""How the webhook finds the owners of pods: from its cache, live, and once for many pods that come together."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob
from muster.api.kubernetes.meta import OwnerReference
from muster.kube.client import Client
from webhook.caches import OwnerLookup

pytestmark = [pytest.mark.plane, pytest.mark.api]

JSON = dict[str, Any]


def job(client: Client, namespace: str, **labels: str) -> OwnerReference:
    """A suspended Job, as its pods name it."""
    template: JSON = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i"}]}}
    spec = {"suspend": True, "completionMode": "Indexed", "completions": 1, "parallelism": 1, "template": template}
    made = client.create(INDEXED_JOBS, {"metadata": {"name": "train", "labels": labels}, "spec": spec}, namespace)
    return OwnerReference(api_version="batch/v1", kind="Job", name="train", uid=made.metadata.uid, controller=True)


def test_a_job_without_the_label_is_read_once_a_second(client: Client, namespace: str) -> None:
    """Its pods come many at a time; one of another UID is never taken for it."""
    now = [100.0]
    owners = OwnerLookup(client, lambda: now[0])
    reference = job(client, namespace)
    found = owners.find(INDEXED_JOBS, namespace, reference)
    assert isinstance(found, IndexedJob)
    client.delete(INDEXED_JOBS, "train", namespace, propagation="Background")
    assert owners.find(INDEXED_JOBS, namespace, reference) == found
    now[0] += 1.5
    assert owners.find(INDEXED_JOBS, namespace, reference) is None
    again = job(client, namespace)
    assert owners.find(INDEXED_JOBS, namespace, reference) is None
    assert owners.find(INDEXED_JOBS, namespace, again)


def test_a_job_with_the_label_is_cached(client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """Before the cache has it, it is read; then it follows the Job's changes."""
    owners = OwnerLookup(client)
    reference = job(client, namespace, **{"muster.dev/framework": "torch"})
    assert owners.find(INDEXED_JOBS, namespace, reference)
    cache = owners.caches[INDEXED_JOBS].reflector
    cache.start()
    try:
        assert cache.wait_synced(30)
        client.merge_patch(INDEXED_JOBS, "train", {"metadata": {"annotations": {"a": "b"}}}, namespace)

        def changed() -> bool:
            found = owners.find(INDEXED_JOBS, namespace, reference)
            return bool(found and found.metadata.annotations.get("a") == "b")

        wait_for(changed, what="the change in the cache")
    finally:
        cache.stop()


def test_an_owner_of_another_namespace_is_not_found_by_its_uid(client: Client, namespace: str) -> None:
    """A tenant can write any UID into a pod's owner reference, also that of a Job which was read a moment ago."""
    owners = OwnerLookup(client, lambda: 100.0)
    reference = job(client, namespace)
    assert owners.find(INDEXED_JOBS, namespace, reference)
    assert owners.find(INDEXED_JOBS, "default", reference) is None
