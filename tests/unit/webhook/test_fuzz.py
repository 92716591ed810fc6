"""Reviews that are broken in every possible way get a clean answer: never a 5xx, never a failing handler."""

import copy
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
from builders import manifests
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st
from webhook_world import (
    FRAMEWORK,
    NamespaceWorld,
    OwnerWorld,
    RuntimeWorld,
    container,
    indexed_job,
    lookups,
    pod_of,
    task,
    vcjob,
)

from webhook.app import create_app, routes
from webhook.config import parse
from webhook.senders import Senders

JSON = dict[str, Any]
RUNTIMES = sorted((Path(__file__).parents[3] / "charts" / "muster" / "runtimes").glob("*.yaml"))
SHIPPED = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in RUNTIMES]
GROUPS = parse(
    """
resourceGroups:
- resourceGroup: team
  object: {key: namespace, value: [team]}
  schedulerName: volcano
  tolerations: [{key: pool, value: team}]
  labels: {pool: team}
  affinity: {nodeAffinity: {}}
"""
)
BOTH = {"muster.dev/queue": "default", "muster.dev/framework": "torch"}


def train_job(runtime: str, **spec: Any) -> JSON:
    """A TrainJob with something in every field."""
    template = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}, "containers": [{"name": "node"}]}}}}
    jobs = {"replicatedJobs": [{"name": "node", "template": template}]}
    trainer = {
        "numProcPerNode": "auto", "command": ["tune", "run"], "args": ["a.b=c"], "env": [{"name": "A", "value": "b"}],
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": 1, "cpu": "500m"}},
    }  # fmt: skip
    return manifests.train_job(
        "train", runtime, "", nodes=2, trainer=trainer, labels={"muster.dev/queue": "default"}, suspend=True,
        initializer={"dataset": {"storageUri": "hf://a"}}, **spec,
        runtimePatches=[{"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": jobs}}}],
    )  # fmt: skip


def workloads(job: JSON) -> Iterator[JSON]:
    """Workloads of other kinds, with the pods of this Job."""
    metadata, pods = job["metadata"], job["spec"]["template"]
    template = {"spec": job["spec"]}
    group = {"leaderWorkerTemplate": {"size": 2, "workerTemplate": pods}}
    for version, kind, spec in (
        ("batch/v1", "CronJob", {"jobTemplate": template}),
        ("apps/v1", "StatefulSet", {"replicas": 4, "serviceName": "s", "template": pods}),
        ("apps/v1", "Deployment", {"template": pods}),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"name": "a", "template": template}]}),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", group),
    ):
        yield {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def made_later(spec: JSON) -> Iterator[tuple[str, JSON]]:
    """What Jobs of this spec are made of."""
    after = {"targets": ["a"], "probe": {"taskStatusList": [{"taskName": "worker", "phase": "Running"}]}}
    patch = {"jobSpec": {"queue": "default", "tasks": [{"name": "worker", "replicas": 2}]}}
    flows = {"flows": [{"name": "a", "patch": patch}, {"name": "b", "dependsOn": after}], "jobRetainPolicy": "delete"}
    yield "/validate/jobflow", {"kind": "JobFlow", "metadata": {"name": "f"}, "spec": flows}
    yield "/validate/jobtemplate", {"kind": "JobTemplate", "metadata": {"name": "a"}, "spec": spec}
    cron = {"schedule": "30 6 * * mon-fri", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 9}
    cron_job = {**cron, "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}
    yield "/validate/cronjob", {"kind": "CronJob", "metadata": {"name": "c"}, "spec": cron_job}


def objects() -> Iterator[tuple[str, JSON]]:
    """Route and an object that is fine there."""
    trainer = "-trainer-kubeflow-org-v1alpha1"
    policies = [{"event": "PodFailed", "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}]
    partitions = {"totalPartitions": 2, "partitionSize": 2, "networkTopology": {"mode": "hard"}}
    volumes = [{"mountPath": "/data", "volumeClaim": {"resources": {"requests": {"storage": "1Gi"}}}}]
    job = vcjob(task(replicas=4, policies=policies, partitionPolicy=partitions, dependsOn={"name": ["other"]}),
                task("other", topologyPolicy="best-effort"), policies=policies, volumes=volumes,
                plugins={"pytorch": ["--master=worker"], "ssh": []},
                networkTopology={"mode": "hard", "highestTierAllowed": 2})  # fmt: skip
    for route in ("/mutate/job", "/validate/job"):
        yield route, job
    for framework in ("torch", "mpi", "jax", "tensorflow"):
        labels = {**BOTH, "muster.dev/framework": framework}
        indexed = indexed_job(container(env=[{"name": "A", "value": "b"}], nvidia_com_gpu=8), labels=labels)
        yield "/mutate/workload", indexed
        yield "/validate/workload", indexed
        yield "/mutate/pod", pod_of(indexed, 2)
        yield from (("/validate/workload", workload) for workload in workloads(indexed))
    held = {"annotations": {"scheduling.volcano.sh/queue-allocation-gate": "true"}}
    placed = {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "pool"}], "affinity": {"podAffinity": {}}}
    yield "/mutate/pod", {"kind": "Pod", "metadata": {"name": "p", **held}, "spec": placed}
    noted = {**job["metadata"], "annotations": {"muster.dev/grouped-templates": '{"worker": "0"}'}}
    yield "/mutate/job", {**job, "metadata": noted}
    budget = {"volcano.sh/jdb-min-available": "50%"}
    yield "/validate/pod", {"kind": "Pod", "metadata": {"name": "p", "annotations": budget}, "spec": {}}
    for document in SHIPPED:
        for route in ("mutate", "validate"):
            yield f"/{route}{trainer}-trainjob", train_job(document["metadata"]["name"])
        yield f"/validate{trainer}-clustertrainingruntime", document
        yield f"/validate{trainer}-trainingruntime", {**document, "kind": "TrainingRuntime"}
    group = {"minMember": 2, "queue": "default", "minResources": {"cpu": "1"}, "networkTopology": {"mode": "soft"}}
    yield "/validate/podgroup", {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": group}
    queue = {"capability": {"cpu": "4"}, "deserved": {"cpu": "2"}, "guarantee": {"resource": {"cpu": "1"}}}
    labelled = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    members = [
        {"type": "Node", "selector": {"exactMatch": {"name": "node-1"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^rack-1-[0-9]+$"}}},
        {"type": "Node", "selector": {"labelMatch": labelled}},
        {"type": "HyperNode", "selector": {"exactMatch": {"name": "rack-2"}}},
    ]
    hyper_node = {"tier": 1, "tierName": "rack", "members": members}
    yield "/validate/hypernode", {"kind": "HyperNode", "metadata": {"name": "rack-1"}, "spec": hyper_node}
    yield from made_later(job["spec"])
    yield "/validate/queue", {"kind": "Queue", "metadata": {"name": "q"}, "spec": {**queue, "parent": "root"}}


OBJECTS = list(objects())
JUNK = st.sampled_from([
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, -1.5, 1e308, "", "a", "A b", "-", "*", "/", "~1", "é", "\0",
    "x" * 300, "10", "0", "-1", "1e9", "9" * 500, "500m", "1Ei", "auto", "true", [], [None], [[]], [{}], ["a", "a"], {},
    {"a": None}, {"": ""}, {"name": "node"}, {"name": None}, [{"name": "a"}] * 3, {"muster.dev/queue": "default"},
    "muster.dev/gang", {"fieldRef": {"fieldPath": "x"}}, "2020-01-01T00:00:00Z", {"muster.dev/nproc-per-node": "0"},
])  # fmt: skip
CHANGES = st.lists(
    st.tuples(st.integers(0, 10_000), st.sampled_from(["set", "drop", "twice", "add"]), JUNK), max_size=5
)
BYTES = st.lists(st.tuples(st.integers(0, 100_000), st.binary(max_size=3)), max_size=3)
OPERATIONS = st.sampled_from(["CREATE", "CREATE", "UPDATE", "DELETE", "X"])
REVIEWS = st.tuples(st.sampled_from(OBJECTS), CHANGES, BYTES, OPERATIONS, st.integers(0, 3))


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a document."""
    members = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    for key, member in members:
        yield node, key
        yield from places(member)


def mutated(document: JSON, changes: list[tuple[int, str, Any]]) -> JSON:
    """The document with some places set, dropped, doubled, or given a member more."""
    for number, how, junk in changes:
        everywhere = list(places(document))
        if not everywhere:
            return document
        node, key = everywhere[number % len(everywhere)]
        if how == "drop":
            del node[key]
        elif how == "twice" and isinstance(node, list):
            node.append(copy.deepcopy(node[key]))
        elif how == "add" and isinstance(node[key], dict):
            node[key][str(junk)[:40]] = copy.deepcopy(junk)
        else:
            node[key] = copy.deepcopy(junk)
    return document


def body_of(case: Any) -> tuple[str, bytes]:
    """Route and body of a review."""
    (route, obj), changes, patches, operation, old = case
    kind = {"group": obj.get("apiVersion", "").rpartition("/")[0], "version": "v1", "kind": obj.get("kind", "Pod")}
    request = {
        "uid": "u-1", "kind": kind, "operation": operation, "namespace": "team", "name": "train",
        "userInfo": {"username": "anne"}, "object": obj, "oldObject": obj if old else None,
    }  # fmt: skip
    review = copy.deepcopy({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    # Mostly the object is what is broken: the API server writes the envelope.
    mutated(review if old == 1 else review["request"]["object"], changes)
    body = json.dumps(review).encode()
    for place, junk in patches if old == 2 else []:
        at = place % len(body)
        body = body[:at] + junk + body[at + len(junk) :]
    return route, body


@pytest.fixture(scope="module")
def client() -> Iterator[FlaskClient]:
    """The app, with owners and runtimes that fit the objects; a hundred thousand log lines would tell nothing."""
    owners = OwnerWorld(*(obj for route, obj in OBJECTS if route == "/mutate/workload"))
    namespaces = NamespaceWorld(team={"muster.dev/queue": "default"})
    world = lookups(owners=owners, namespaces=namespaces, runtimes=RuntimeWorld(*SHIPPED))
    with pytest.MonkeyPatch.context() as patch:
        silent = structlog.make_filtering_bound_logger(logging.CRITICAL)
        patch.setattr("webhook.app.log", structlog.wrap_logger(structlog.PrintLogger(), wrapper_class=silent))
        yield create_app(routes(world, FRAMEWORK, marks=True, groups=GROUPS), Senders(certified=True)).test_client()


def check(client: FlaskClient, case: Any) -> None:
    """One review: a status below 500; with 200, a verdict that no failing handler has given."""
    route, body = body_of(case)
    response = client.post(route, data=body, content_type="application/json")
    assert response.status_code in {200, 400}, (route, body)
    assert "Traceback" not in response.text
    if response.status_code == 200:
        verdict = response.get_json()["response"]
        assert verdict["allowed"] or verdict["status"]["code"] in {400, 403, 422}, (route, body, verdict)


def test_the_objects_are_fine(client: FlaskClient) -> None:
    """Unbroken, they reach their handlers: most are allowed."""
    verdicts = [
        client.post(route, data=body_of(((route, obj), [], [], "CREATE", 0))[1], content_type="application/json")
        for route, obj in OBJECTS
    ]
    assert sum(each.get_json()["response"]["allowed"] for each in verdicts) > len(OBJECTS) / 2


@settings(max_examples=300)
@given(REVIEWS)
def test_broken_reviews(client: FlaskClient, case: Any) -> None:
    """Some hundred."""
    check(client, case)


@pytest.mark.storm
@settings(max_examples=100_000)
@given(REVIEWS)
def test_a_hundred_thousand_broken_reviews(client: FlaskClient, case: Any) -> None:
    """The same, for longer."""
    check(client, case)
