"""Look-ups end in time, find what was asked for and no other object of its name, and keep no more than texts."""

from typing import Any, cast

import msgspec
import pytest
from builders import manifests
from guarded_api import GuardedApi
from msgspec import structs
from short_args import TEMPLATE, fill, growth, metadata

import webhook
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.core import (
    INDEXED_JOBS,
    NAMESPACES,
    Container,
    IndexedJob,
    PodResourceClaim,
    PodSpec,
    ResourceRequirements,
)  # fmt: skip
from muster.api.kubernetes.devices import DeviceClaim, UsedClaim
from muster.api.kubernetes.meta import OwnerReference
from muster.api.kubernetes.reviews import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewStatus
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import Unreachable
from muster.resources.accelerators import accelerators
from webhook import caches, review
from webhook.apiserver import DeviceClaims, Rights
from webhook.caches import Cached, ClusterLookups, NamespaceLookup, OwnerLookup, QueueLookup, RuntimeLookup


def left(timeout: str, longest_s: float = 4.0) -> float:
    """How long a look-up may take in a review with this parameter."""
    with review.deadline(f"dryRun=x&timeout={timeout}&a=b"):
        return review.time_left(longest_s)


@pytest.mark.parametrize(("timeout", "seconds"), [("10s", 4), ("3s", 2.5), ("900ms", 0.4), ("1m", 4), ("30s", 4)])
def test_the_time_that_the_api_server_gives(timeout: str, seconds: float) -> None:
    """A look-up may take what is left, less a margin for the answer, and never more than its own limit."""
    assert left(timeout) == pytest.approx(seconds, abs=0.2)


@pytest.mark.parametrize("timeout", ["", "soon", "-1s", "1h", "9" * 400 + "s", "1s1s"])
def test_what_is_no_duration(timeout: str) -> None:
    """Anything else counts as the ten seconds that the registration names."""
    assert left(timeout, 20) == pytest.approx(9.5, abs=0.2)


def test_no_time_left() -> None:
    """A look-up that could not answer in time is not begun."""
    with pytest.raises(Unreachable, match="no time is left"):
        left("400ms")


def test_outside_of_a_review() -> None:
    """Before a review and after it there is no deadline."""
    assert review.time_left(4.0) == 4.0
    with review.deadline("timeout=1s"):
        assert review.time_left(4.0) < 1.0
    assert review.time_left(4.0) == 4.0


class Server:
    """An API server that gives rights to eve in namespace `a`, and to all of group `admins` everywhere."""

    def create(self, res: Any, what: SubjectAccessReview, **_: Any) -> SubjectAccessReview:
        """A review of a right."""
        del res
        attributes = what.spec.resource_attributes
        of_eve = what.spec.user == "eve" and attributes is not None and attributes.namespace == "a"
        allowed = of_eve or "admins" in what.spec.groups
        return SubjectAccessReview(spec=what.spec, status=SubjectAccessReviewStatus(allowed=allowed))


@pytest.mark.parametrize(("user", "namespace", "allowed"), [
    (UserInfo(username="eve"), "a", True),
    (UserInfo(username="eve"), "b", False),
    (UserInfo(username="bob"), "a", False),
    (UserInfo(username="bob", groups=["admins"]), "b", True),
])  # fmt: skip
def test_a_right_is_that_of_its_user(user: UserInfo, namespace: str, *, allowed: bool) -> None:
    """Whoever was asked about a moment ago, with whatever groups, and for whatever namespace."""
    rights = Rights(Server(), lambda: 100.0)  # type: ignore[arg-type]  # all that is called
    verb = {"verb": "update", "resource": "queues", "name": "q"}
    for before in (UserInfo(username="eve"), UserInfo(username="bob"), UserInfo(username="bob", groups=["admins"])):
        for where in ("a", "b"):
            rights.allows(before, ResourceAttributes(namespace=where, **verb))
    assert rights.allows(user, ResourceAttributes(namespace=namespace, **verb)) is allowed


def test_claims_are_cached_without_their_selectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim may have a megabyte of them, and a thousand claims are cached."""
    selectors = [{"cel": {"expression": "x" * 10_000}}] * 32
    exact = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2, "selectors": selectors}
    given = {"requests": [{"name": "a", "exactly": exact}, {"name": "b", "firstAvailable": [exact, exact]}]}
    claim = msgspec.convert(given, DeviceClaim)
    monkeypatch.setattr("webhook.apiserver.read_claim", lambda *_args, **_more: claim)
    found = DeviceClaims(Server()).claims_in("n")(PodResourceClaim(name="x"))  # type: ignore[arg-type]  # not called
    assert found
    assert len(msgspec.json.encode(found)) < 1_000
    spec = PodSpec(resource_claims=[PodResourceClaim(name="x")])
    container = Container(name="c", resources=ResourceRequirements(claims=[UsedClaim("x")]))
    assert [accelerators(container, {}, spec, {}, lambda _, one=one: one) for one in (found, claim)] == [(4, False)] * 2


def test_an_owner_is_that_of_the_pods_own_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod may name the UID of a Job elsewhere, which others have just asked about: it is given no foreign Job."""

    def live(_: Cached[Any], name: str, namespace: str = "") -> IndexedJob | None:
        content = {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-in-{namespace}"}, "spec": {}}
        return msgspec.convert(content, IndexedJob)

    monkeypatch.setattr(Cached, "live", live)
    client = Client(ClientConfig("http://127.0.0.1:1"))
    owners = OwnerLookup(client, lambda: 100.0)

    def found(namespace: str, uid: str) -> str:
        reference = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid=uid)
        job = owners.find(INDEXED_JOBS, namespace, reference)
        return job.metadata.namespace if job else ""

    assert [found("a", "uid-in-a"), found("b", "uid-in-a"), found("b", "uid-in-b"), found("a", "uid-in-b")] == [
        "a", "", "b", ""
    ]  # fmt: skip
    assert [found("a", "uid-in-a"), found("b", "uid-in-b")] == ["a", "b"]
    client.close()


class Cluster:
    """An API server, and the look-ups in it."""

    def __init__(self) -> None:
        self.api = GuardedApi(webhook)
        self.client = cast("Any", self.api)

    def add(self, kind: Any, name: str, **metadata: Any) -> Any:
        """An object, which no cache has."""
        return self.api.add(kind, {"metadata": {"name": name, **metadata}, "spec": {}}, "n")


def test_runtimes_of_a_namespace_and_of_the_cluster() -> None:
    """Each kind has its own names."""
    cluster = Cluster()
    own, shared = cluster.add(TRAINING_RUNTIMES, "own"), cluster.add(CLUSTER_TRAINING_RUNTIMES, "shared")
    runtimes = RuntimeLookup(cluster.client)
    assert runtimes.find(RuntimeRef(name="own", kind="TrainingRuntime"), "n") == own
    assert runtimes.find(RuntimeRef(name="own", kind="TrainingRuntime"), "other") is None
    assert runtimes.find(RuntimeRef(name="shared"), "n") == shared
    assert runtimes.find(RuntimeRef(name="own"), "n") is None


def test_an_owner_is_the_one_of_its_uid() -> None:
    """The cache may have an earlier one; a foreign namespace's is not found."""
    cluster, seconds = Cluster(), [0.0]
    job = cluster.add(INDEXED_JOBS, "train")
    owners = OwnerLookup(cluster.client, lambda: seconds[0])
    reference = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid=job.metadata.uid)
    assert owners.find(INDEXED_JOBS, "n", reference) == job
    assert owners.find(INDEXED_JOBS, "other", reference) is None
    cluster.api.remove(INDEXED_JOBS, job)
    assert owners.find(INDEXED_JOBS, "n", reference) == job, "remembered for the other pods of the moment"
    assert owners.find(JOBS, "n", reference) is None, "it is a Job of another group"
    seconds[0] += 60.0
    assert owners.find(INDEXED_JOBS, "n", reference) is None


def test_an_owner_that_wants_no_pods_is_read_again() -> None:
    """It was released a moment ago, as a pod of its comes: one of the first would be in a world of none."""
    cluster = Cluster()
    job = cluster.add(INDEXED_JOBS, "train")
    owners = OwnerLookup(cluster.client)
    held = structs.replace(job, spec=structs.replace(job.spec, suspend=True))
    owners.caches[INDEXED_JOBS].store.add_object(held)
    reference = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid=job.metadata.uid)
    assert owners.find(INDEXED_JOBS, "n", reference) == job


def test_queues_and_namespaces() -> None:
    """Queues that are open and have none below them; a namespace's label that the cache does not show yet."""
    cluster = Cluster()
    queues, namespaces = QueueLookup(cluster.client), NamespaceLookup(cluster.client)
    for each in (manifests.queue("root"), manifests.queue("a"), manifests.queue("b", parent="a"),
                 manifests.queue("c", state="Closed")):  # fmt: skip
        cluster.api.add(QUEUES, each)
        cluster.api.change(QUEUES, each["metadata"]["name"], {"status": each["status"]}, subresource="status")
        queues.store.add_object(cluster.api.find(QUEUES, each["metadata"]["name"]))
    assert (queues.names(), queues.children("root"), queues.children("a")) == (["b"], ["a", "c"], ["b"])
    assert queues.get("missing") is None
    namespaces.store.add_object(cluster.api.add(NAMESPACES, {"metadata": {"name": "n"}}))
    cluster.api.change(NAMESPACES, "n", {"metadata": {"labels": {"muster.dev/queue": "b"}}})
    assert namespaces.metadata("n").labels == {}
    assert namespaces.metadata("n", with_queue=True).labels == {"muster.dev/queue": "b"}
    assert namespaces.metadata("gone", with_queue=True).labels == {}


def test_caches_behind_all_look_ups() -> None:
    """Each kind once, by the name on the page of health checks."""
    kinds = [each.kind for each in ClusterLookups(Cluster().client).caches]
    assert len(kinds) == len(set(kinds))
    assert {"queues.scheduling.volcano.sh", "namespaces", "jobs.batch"} <= set(kinds)
    assert ClusterLookups(Cluster().client).lookups.native_groups is None
    assert ClusterLookups(Cluster().client, native=True).lookups.native_groups is not None


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
    client = Client(ClientConfig("http://127.0.0.1:1"))
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
    client = Client(ClientConfig("http://127.0.0.1:1"))
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
    assert caches._MOST_RECENT_BYTES < 32 * 2**20


def test_one_over_the_budget_is_read_when_it_is_asked_for(live: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last version, which the cache had, is no answer."""
    client = Client(ClientConfig("http://127.0.0.1:1"))
    cached = OwnerLookup(client).caches[INDEXED_JOBS]
    assert cached.reflector.mirror.budget is not None
    cached.reflector.mirror.add_object(msgspec.convert({"metadata": metadata(7, creationTimestamp="1")}, IndexedJob))
    assert cached.get("j7", "ns") == cached.store.list()[0]
    monkeypatch.setattr(cached.reflector.mirror.budget, "_of_namespace", 1000)
    newer = owner(7)
    newer["metadata"]["resourceVersion"] = "2"
    cached.reflector.mirror.add_object(msgspec.convert(newer, IndexedJob))
    client.close()
    assert len(cached.store) == 0
    assert cached.get("j7", "ns")
    assert live == ["j7"]
