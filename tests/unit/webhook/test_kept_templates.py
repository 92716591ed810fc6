"""The webhook's caches keep of templates with a megabyte of short arguments no more than their text."""

from typing import Any

import msgspec
import pytest
from short_args import TEMPLATE, fill, growth, metadata

from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob
from muster.api.kubernetes.meta import OwnerReference
from muster.kube.client import Client
from muster.kube.config import Config
from webhook import lookup
from webhook.lookup import Cached, ClusterLookups, OwnerLookup

JSON = dict[str, Any]


def runtime(number: int) -> JSON:
    """A TrainingRuntime."""
    job = {"name": "node", "replicas": 1, "template": {"spec": {"template": TEMPLATE}}}
    return {"metadata": metadata(number), "spec": {"template": {"spec": {"replicatedJobs": [job]}}}}


def owner(number: int) -> JSON:
    """A StatefulSet or Job with a framework."""
    return {"metadata": metadata(number, labels={"muster.dev/framework": "torch"}), "spec": {"template": TEMPLATE}}


@pytest.mark.parametrize("kind", ["trainingruntimes.trainer.kubeflow.org", "jobs.batch", "statefulsets.apps"])
def test_a_cache_keeps_the_text_of_templates(kind: str) -> None:
    """At most."""
    client = Client(Config("http://127.0.0.1:1"))
    caches = {each.kind: each.reflector for each in ClusterLookups(client).caches}
    with growth() as grown:
        size = fill(caches[kind], runtime if "runtimes" in kind else owner)
    client.close()
    assert grown.size_bytes < 1.2 * size


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are read from the API server, which has owners of all names."""
    read: list[str] = []

    def one(_: Cached[Any], name: str, _namespace: str = "") -> IndexedJob:
        read.append(name)
        whole = owner(int(name[1:])) | {"kind": "Job"}
        whole["metadata"].pop("labels")
        return msgspec.convert(whole, IndexedJob)

    monkeypatch.setattr(Cached, "live", one)
    return read


def test_owners_of_a_second_are_remembered_as_texts(live: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to so many bytes in all: each of many pods may name another owner."""
    client = Client(Config("http://127.0.0.1:1"))
    owners = OwnerLookup(client, lambda: 100.0)
    size = len(msgspec.json.encode(owner(0)))
    monkeypatch.setattr(owners, "_recent", type(owners._recent)(3 * size, 1.0, lambda: 100.0, len))
    references = [OwnerReference(api_version="batch/v1", kind="Job", name=f"j{n}", uid=f"u{n}") for n in range(6)]
    owners.find(INDEXED_JOBS, "ns", references[0])
    with growth() as grown:
        for each in references[1:]:
            found = owners.find(INDEXED_JOBS, "ns", each)
            assert found == owners.find(INDEXED_JOBS, "ns", each)
        del found
    client.close()
    assert live == [f"j{number}" for number in range(6)]
    assert grown.size_bytes < 3.2 * size
    assert lookup._MOST_RECENT_BYTES < 32 * 2**20


def test_one_over_the_budget_is_read_when_it_is_asked_for(live: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last version, which the cache had, is no answer."""
    client = Client(Config("http://127.0.0.1:1"))
    cached = OwnerLookup(client).caches[INDEXED_JOBS]
    assert cached.reflector.mirror.budget is not None
    cached.reflector.mirror.put(msgspec.convert({"metadata": metadata(7, creationTimestamp="1")}, IndexedJob))
    assert cached.get("j7", "ns") == cached.store.list()[0]
    monkeypatch.setattr(cached.reflector.mirror.budget, "_of_namespace", 1000)
    newer = owner(7)
    newer["metadata"]["resourceVersion"] = "2"
    cached.reflector.mirror.put(msgspec.convert(newer, IndexedJob))
    client.close()
    assert len(cached.store) == 0
    assert cached.get("j7", "ns")
    assert live == ["j7"]
