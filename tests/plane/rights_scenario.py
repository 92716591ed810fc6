"""Everything that makes Muster's processes use a right, on a plane of its own. What is not used here is not needed."""

import os
import signal
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from audits import Use, asked
from gang_jobs import job as gang
from gang_jobs import metric, runs
from job_flows import job_flow, template
from jobs import command, job, task
from making import SERVES_NATIVE_GROUPS
from native_groups import Scene
from page_server import page_server, token_of
from tenants import bind, pod, user
from train_jobs import make_volume, patch, runtime, train_job

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import (
    CONFIG_MAPS,
    INDEXED_JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    PodResourceClaim,
)
from muster.api.kubernetes.quota import BUDGETS
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.native import PHASE
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import COMMANDS, JOBS, Job
from muster.api.volcano.cron import CRON_JOBS
from muster.api.volcano.flow import JOB_FLOWS, JOB_TEMPLATES
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.api.volcano.topology import HYPER_NODES, TOPOLOGIES
from muster.kube.claims import read_claim
from muster.kube.client import Client
from muster.kube.errors import APIError, Forbidden, NotFound
from muster.volcano.podgroup import group_name
from musterctl.chart import roles
from musterctl.plane.plane import Plane
from musterctl.plane.rights import token_file
from musterctl.plane.state import CONTROLLER, CONTROLLER_MANAGER, WEBHOOK
from webhook.apiserver import read_live
from webhook.caches import NamespaceLookup

JSON = dict[str, Any]
DEFINITIONS: Resource[JSON] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", JSON, namespaced=False
)
STATEFUL_SETS: Resource[Any] = Resource("apps", "v1", "statefulsets", "StatefulSet", JSON)
DAEMON_SETS: Resource[JSON] = Resource("apps", "v1", "daemonsets", "DaemonSet", JSON)
QUOTAS: Resource[JSON] = Resource("", "v1", "resourcequotas", "ResourceQuota", JSON)
REPLICA_SETS: Resource[JSON] = Resource("apps", "v1", "replicasets", "ReplicaSet", JSON)
JOB_SETS: Resource[JSON] = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", JSON)
LEADER_WORKER_SETS: Resource[JSON] = Resource(
    "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", JSON
)
JSON_OF: dict[str, Resource[JSON]] = {
    "batch": Resource("batch", "v1", "jobs", "Job", JSON),
    "apps": STATEFUL_SETS,
    "batch.volcano.sh": Resource(JOBS.group, JOBS.version, "jobs", "Job", JSON),
}
"""The kinds that control pods with ranks, whole."""
LWS = "leaderworkerset.sigs.k8s.io"
FOREIGN: tuple[Resource[Any], ...] = (JOB_SETS, LEADER_WORKER_SETS, PROVISIONING_REQUESTS, TOPOLOGIES)
"""Kinds of others that Muster knows."""
_LONG_S = 90.0
NODES_THERE = 4
GPUS = 8
FULL = "-full"
"""End of the name of a namespace whose quota refuses pods."""


@dataclass(slots=True)
class Scenario:
    """The plane, who submits, and where."""

    plane: Plane
    client: Client
    namespace: str
    wait_for: Callable[..., Any]
    secrets: set[str]
    """What stood in Secrets, line by line."""

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Waits for something that takes a few cycles."""
        return self.wait_for(condition, _LONG_S, what)

    def used(self, process: str, verb: str, resource: str, group: str = "") -> bool:
        """Whether a process has asked for that, and been answered."""
        use = Use(process, group, resource, verb)
        return any(one.use == use and not one.forbidden for one in asked(self.plane))

    def submit(self, manifest: JSON) -> Job:
        """Creates a Volcano Job."""
        return self.client.create(JOBS, manifest, self.namespace)

    def phase(self, name: str) -> str:
        """Of a Volcano Job; empty when it is gone."""
        try:
            return self.client.get(JOBS, name, self.namespace).status.state.phase
        except NotFound:
            return ""

    def end(self, *jobs: str) -> None:
        """Deletes Volcano Jobs with their pods."""
        for name in jobs:
            self.client.delete(JOBS, name, self.namespace, propagation="Foreground")
        self.until(lambda: not any(map(self.phase, jobs)), "the Jobs to be gone")

    @contextmanager
    def frozen(self, part: str) -> Iterator[None]:
        """A part does nothing meanwhile, and then finds what has happened."""
        pid = self.plane.part(part).pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)


def foreign_kinds(s: Scenario) -> None:
    """Kinds of others, with any content."""
    for each in FOREIGN:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {
            "name": each.version,
            "served": True,
            "storage": True,
            "schema": schema,
            "subresources": {"status": {}},
        }
        kinds = {"plural": each.plural, "kind": each.kind, "singular": each.kind.lower()}
        spec = {
            "group": each.group,
            "scope": "Namespaced" if each.namespaced else "Cluster",
            "names": kinds,
            "versions": [version],
        }
        notes = {"api-approved.kubernetes.io": "unapproved, for a test"}
        s.client.create(
            DEFINITIONS, {"metadata": {"name": f"{each.plural}.{each.group}", "annotations": notes}, "spec": spec}
        )

    def served() -> bool:
        with suppress(APIError):
            return all(s.client.list(each, s.namespace if each.namespaced else None) == [] for each in FOREIGN)
        return False

    s.until(served, "the kinds to be served")


def objects_of_a_job(s: Scenario) -> None:
    """Made with it, changed with it, and deleted at its end."""
    manifest = job("all", s.namespace, task("w", 2), plugins={"ssh": [], "svc": []})
    made = s.submit(manifest)
    s.until(lambda: s.phase("all") == "Running", "the Job to run")
    s.client.merge_patch(
        JOBS, "all", {"spec": {"tasks": [{**manifest["spec"]["tasks"][0], "replicas": 3}]}}, s.namespace
    )
    s.until(lambda: s.client.get(JOBS, "all", s.namespace).status.running == 3, "the Job to grow")
    s.client.create(COMMANDS, command("CompleteJob", made), s.namespace)
    objects = (("services", ""), ("configmaps", ""), ("secrets", ""), ("networkpolicies", "networking.k8s.io"))
    for resource, group in objects:
        s.until(lambda r=resource, g=group: s.used("controller", "delete", r, g), f"its {resource} to be deleted")
    s.end("all")
    s.client.create(COMMANDS, command("AbortJob", made), s.namespace)
    s.until(lambda: s.used("controller", "get", "jobs", JOBS.group), "the Job of the late Command to be looked for")


def a_job_whose_time_is_over(s: Scenario) -> None:
    """It goes itself, and what is left of it with it."""
    s.submit(job("short", s.namespace, task("w", 1, run_s=0), ttlSecondsAfterFinished=0))
    s.until(lambda: s.used("controller", "delete", "jobs", JOBS.group), "the Job to be over")
    s.until(lambda: not s.phase("short"), "the Job to be gone")


def jobs_that_follow_each_other(s: Scenario) -> None:
    """They are made one after the other, and their JobTemplates list them."""
    for name in ("one", "two"):
        s.client.create(JOB_TEMPLATES, template(name), s.namespace)
    steps: dict[str, list[str]] = {"one": [], "two": ["one"]}
    s.client.create(JOB_FLOWS, job_flow("flow", steps), s.namespace)
    s.until(lambda: s.used("controller", "patch", "jobtemplates/status", JOB_FLOWS.group), "the lists")
    s.until(lambda: s.client.get(JOB_FLOWS, "flow", s.namespace).status.state.phase == "Succeed", "the JobFlow to end")


def jobs_by_the_clock(s: Scenario) -> None:
    """A time that was missed, as the CronJob was suspended, is made up for."""
    spec = {"schedule": "@yearly", "suspend": True, "jobTemplate": {"spec": template("x")["spec"]}}
    s.client.create(CRON_JOBS, {"metadata": {"name": "cron"}, "spec": spec}, s.namespace)
    old = {"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}}
    s.client.merge_patch(CRON_JOBS, "cron", old, s.namespace, subresource="status")
    s.client.merge_patch(CRON_JOBS, "cron", {"spec": {"suspend": False}}, s.namespace)
    s.until(lambda: s.client.get(CRON_JOBS, "cron", s.namespace).status.last_successful_time, "the Job to end")
    s.client.delete(CRON_JOBS, "cron", s.namespace)


def claims_of_a_job(s: Scenario) -> None:
    """They are made once, and found when the Job is changed."""
    manifest = job("claims", s.namespace, task("w", 1))
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    manifest["spec"]["volumes"] = [{"mountPath": "/scratch", "volumeClaim": claim}]
    s.submit(manifest)
    s.until(lambda: s.used("controller", "create", "persistentvolumeclaims"), "the claim")
    s.client.merge_patch(JOBS, "claims", {"spec": {"minAvailable": 0}}, s.namespace)
    s.until(lambda: s.used("controller", "get", "persistentvolumeclaims"), "the claim to be looked at again")
    s.end("claims")


def workloads(s: Scenario) -> None:
    """Each kind whose size makes a gang, with pods that its own controller makes."""
    kinds: tuple[tuple[Resource[Any], JSON], ...] = (
        (STATEFUL_SETS, {"replicas": 1, "serviceName": "sets"}),
        (DAEMON_SETS, {}),
        (REPLICA_SETS, {"replicas": 1}),
    )
    for kind, more in kinds:
        name = kind.plural
        labels = {"app": name, **({names.FRAMEWORK: "torch"} if kind is STATEFUL_SETS else {})}
        template = {"metadata": {"labels": {**labels, names.QUEUE: "default"}}, "spec": _pods()}
        spec = {"selector": {"matchLabels": {"app": name}}, "template": template, **more}
        s.client.create(kind, {"metadata": {"name": name}, "spec": spec}, s.namespace)
    s.client.create(INDEXED_JOBS, _indexed("mpi", names.FRAMEWORK, "mpi"), s.namespace)
    for kind in (STATEFUL_SETS, DAEMON_SETS, REPLICA_SETS, INDEXED_JOBS):
        s.until(lambda k=kind: s.used("controller", "get", k.plural, k.group), f"{kind.plural} to be read")
    s.until(lambda: s.used("controller", "create", "secrets"), "keys for MPI")


def workloads_of_others(s: Scenario) -> None:
    """Pods of a LeaderWorkerSet, and a Job of a JobSet, as their own controllers make them."""
    s.client.create(LEADER_WORKER_SETS, {"metadata": {"name": "leaders"}, "spec": {}}, s.namespace)
    selector = {"matchLabels": {"app": "leaders"}}
    template = {"metadata": {"labels": {"app": "leaders"}}, "spec": _pods()}
    spec = {"replicas": 0, "serviceName": "leaders", "selector": selector, "template": template}
    leaders = s.client.create(STATEFUL_SETS, {"metadata": {"name": "leaders"}, "spec": spec}, s.namespace)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "leaders", "uid": leaders["metadata"]["uid"]}
    places = {f"{LWS}/name": "leaders", f"{LWS}/group-index": "0", f"{LWS}/worker-index": "0"}
    metadata = {
        "labels": {names.QUEUE: "default", names.FRAMEWORK: "torch", **places},
        "annotations": {f"{LWS}/size": "1"},
        "ownerReferences": [{**reference, "controller": True}],
    }
    with s.frozen(CONTROLLER_MANAGER):  # the StatefulSet's controller would not have this pod
        s.client.create(PODS, pod("leaders-0", metadata=metadata), s.namespace)
        s.until(lambda: s.used("controller", "get", "leaderworkersets", "leaderworkerset.x-k8s.io"), "its set")
    made = s.client.create(JOB_SETS, {"metadata": {"name": "sets"}, "spec": {}}, s.namespace)
    reference = {"apiVersion": JOB_SETS.api_version, "kind": "JobSet", "name": "sets", "uid": made["metadata"]["uid"]}
    child = _indexed("sets-job", names.QUEUE, "default")
    child["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    s.client.create(INDEXED_JOBS, child, s.namespace)
    s.until(lambda: s.used("controller", "get", "jobsets", "jobset.x-k8s.io"), "the JobSet to be read")


def a_gang_of_an_unknown_kind(s: Scenario) -> None:
    """Its pods block the deletion of their owner, to whose finalizers Muster has no right."""
    owner = s.client.create(CONFIG_MAPS, {"metadata": {"name": "unknown"}}, s.namespace)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "unknown", "uid": owner.metadata.uid}
    metadata = {
        "annotations": {names.MIN_MEMBER: "2"},
        "labels": {names.QUEUE: "default"},
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
    }
    members = [f"unknown-{index}" for index in range(2)]
    for name in members:
        s.client.create(PODS, pod(name, metadata=metadata), s.namespace)
    for name in members:
        s.until(lambda n=name: s.client.get(PODS, n, s.namespace).spec.node_name, f"pod {name} to get a node")
    for name in members:
        s.client.delete(PODS, name, s.namespace)


def _indexed(name: str, label: str, value: str) -> JSON:
    """A Job of two pods with a label."""
    labels = {names.QUEUE: "default", label: value}
    template = {"metadata": {"labels": labels}, "spec": {**_pods(), "restartPolicy": "Never"}}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": template}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _pods() -> JSON:
    return {"schedulerName": "volcano", "containers": [{"name": "main", "image": "none", "command": ["sleep", "9"]}]}


def a_gang_that_moves(s: Scenario) -> None:
    """Out of a queue into the default one, which the controller believes only if the namespace names no other."""
    s.client.create(QUEUES, {"metadata": {"name": "elsewhere"}, "spec": {}})
    s.until(lambda: s.client.get(QUEUES, "elsewhere").status.state == "Open", "the queue to open")

    def template(queue: str) -> JSON:
        return {"metadata": {"labels": {"app": "moves"}, "annotations": {names.VOLCANO_QUEUE: queue}}, "spec": _pods()}

    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "moves"}}, "template": template("elsewhere")}
    s.client.create(REPLICA_SETS, {"metadata": {"name": "moves"}, "spec": spec}, s.namespace)

    def queues() -> set[str]:
        return {group.spec.queue for group in s.client.list(POD_GROUPS, s.namespace)}

    s.until(lambda: "elsewhere" in queues(), "the gang to be in the queue")
    old = s.client.list(PODS, s.namespace, label_selector="app=moves")
    s.client.merge_patch(REPLICA_SETS, "moves", {"spec": {"replicas": 2, "template": template("default")}}, s.namespace)
    for one in old:  # which of two pods of one second is the gang's first is anybody's guess
        s.client.delete(PODS, one.metadata.name, s.namespace, uid=one.metadata.uid)
    s.until(lambda: s.used("controller", "get", "namespaces"), "the namespace to be read")


def owners_of_shaped_pods(s: Scenario) -> None:
    """The webhook reads the controller of a pod where its cache has it not: owners without a label are not kept."""
    plain = _indexed("owner", "app", "x")
    plain = {"metadata": {"name": "owner"}, "spec": {**plain["spec"], "suspend": True}}
    labels = {"matchLabels": {"app": "x"}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": _pods()}
    set_of = {"metadata": {"name": "owner"}, "spec": {"replicas": 0, "selector": labels, "template": template}}
    s.client.create(INDEXED_JOBS, plain, s.namespace)
    s.client.create(STATEFUL_SETS, set_of, s.namespace)
    s.submit(job("owner", s.namespace, task("w", 1)))
    shaped = {"app": "x", names.FRAMEWORK: "torch", names.QUEUE: "default"}
    named = {**set_of["spec"], "serviceName": "nobodys", "template": {"metadata": {"labels": shaped}, "spec": _pods()}}
    s.client.create(STATEFUL_SETS, {"metadata": {"name": "ranks"}, "spec": named}, s.namespace, dry_run=True)
    s.until(lambda: s.used("webhook", "get", "services"), "the Service of a StatefulSet to be looked for")
    for api, kind, resource in (
        ("batch/v1", "Job", INDEXED_JOBS),
        ("apps/v1", "StatefulSet", STATEFUL_SETS),
        (JOBS.api_version, "Job", JOBS),
    ):
        uid = s.client.get(JSON_OF[resource.group], "owner", s.namespace)["metadata"]["uid"]
        reference = {"apiVersion": api, "kind": kind, "name": "owner", "uid": uid, "controller": True}
        metadata = {"labels": {names.FRAMEWORK: "torch"}, "ownerReferences": [reference]}
        with suppress(APIError):
            s.client.create(PODS, pod("tried", metadata=metadata), s.namespace, dry_run=True)
        s.until(lambda r=resource: s.used("webhook", "get", r.plural, r.group), f"a {kind} to be read by the webhook")
    s.end("owner")


def runtimes_and_namespaces(s: Scenario) -> None:
    """What the webhook's caches do not have is read: runtimes and queues that nobody has made, a namespace."""
    for kind, resource in (
        ("ClusterTrainingRuntime", "clustertrainingruntimes"),
        ("TrainingRuntime", "trainingruntimes"),
    ):
        train = {"metadata": {"name": "train"}, "spec": {"runtimeRef": {"name": "nobodys", "kind": kind}}}
        with suppress(APIError):
            s.client.create(TRAIN_JOBS, train, s.namespace)
        s.until(lambda r=resource: s.used("webhook", "get", r, "trainer.kubeflow.org"), f"{resource} to be read")
    with suppress(APIError):
        s.submit(job("lost", s.namespace, task("w", 1), queue="nobodys"))
    s.until(lambda: s.used("webhook", "get", "queues", "scheduling.volcano.sh"), "the queue to be looked for")
    webhook = Client.load(s.plane.commandlines.kubeconfig(WEBHOOK), user_agent="muster-webhook")
    with closing(webhook):  # its own look-up, with a cache that is behind for certain
        assert NamespaceLookup(webhook).metadata(s.namespace, with_queue=True).labels
        assert read_live(webhook, PLACEMENTS, "nobodys", s.namespace) is None
    assert s.used("webhook", "get", "namespaces")
    s.until(lambda: s.used("webhook", "get", "placements", "muster.dev"), "the placement to be looked for")


def devices_of_claims(s: Scenario) -> None:
    """The processes of a pod follow from its claims, which webhook and controller read when they need them."""
    for process, agent in ((WEBHOOK, "webhook"), (CONTROLLER, "controller")):
        with closing(Client.load(s.plane.commandlines.kubeconfig(process), user_agent=f"muster-{agent}")) as client:
            assert read_claim(client, s.namespace, PodResourceClaim(resource_claim_name="nobodys")) is None
            assert read_claim(client, s.namespace, PodResourceClaim(resource_claim_template_name="nobodys")) is None
        for resource in ("resourceclaims", "resourceclaimtemplates"):
            s.until(partial(s.used, agent, "get", resource, "resource.k8s.io"), f"{resource} to be read")


def commands_to_queues(s: Scenario) -> None:
    """One that closes with those below it; one that is for an earlier queue, which the controller makes sure of."""
    for name, parent in (("upper", "root"), ("lower", "upper")):
        s.client.create(QUEUES, {"metadata": {"name": name}, "spec": {"parent": parent}})
        s.until(lambda n=name: s.client.get(QUEUES, n).status.state == "Open", f"{name} to open")

    def to(name: str, uid: str) -> JSON:
        target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": name, "uid": uid}
        return {"metadata": {"name": f"close-{name}"}, "action": "CloseQueue", "target": target}

    s.client.create(COMMANDS, to("upper", s.client.get(QUEUES, "upper").metadata.uid), s.namespace)
    s.until(lambda: s.client.get(QUEUES, "lower").status.state == "Closed", "the lower queue to close too")
    s.client.create(COMMANDS, to("lower", "0f4e3c6a-0000-4000-8000-000000000000"), s.namespace)
    s.until(lambda: s.used("controller", "get", "queues", "scheduling.volcano.sh"), "the queue to be looked for")


def a_stale_gang(s: Scenario) -> None:
    """It lost a member and gets no other: the rest goes, against a budget. Then it is placed anew."""
    selector = {"matchLabels": {names.JOB_NAME: "stale"}}
    budget = {"metadata": {"name": "stale"}, "spec": {"minAvailable": 10, "selector": selector}}
    s.client.create(BUDGETS, budget, s.namespace)
    s.submit(gang("stale", s.namespace, replicas=2, gpus=1))
    s.until(lambda: runs(s.client, s.namespace, "stale", 2), "the gang to run")
    everywhere = [node.metadata.name for node in s.client.list(NODES)]

    def evicted() -> bool:
        member = s.client.list(PODS, s.namespace, field_selector="metadata.name=stale-worker-0")
        if member and member[0].spec.node_name and not member[0].metadata.deletion_timestamp:
            s.client.delete(PODS, "stale-worker-0", s.namespace)  # again: it came back before the nodes were closed
        return s.used("extender", "delete", "pods")

    _cordon(s, everywhere, closed=True)
    try:
        s.until(evicted, "the other member to be evicted")
    finally:
        _cordon(s, everywhere, closed=None)
        s.client.delete(BUDGETS, "stale", s.namespace)
    s.end("stale")


def _cordon(s: Scenario, nodes: list[str], *, closed: bool | None) -> None:
    for name in nodes:
        s.client.merge_patch(NODES, name, {"spec": {"unschedulable": closed}})


def preemption(s: Scenario) -> None:
    """A gang of a higher priority takes the place of another."""
    for name, value in (("low", 1), ("high", 1000)):
        s.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    for name in ("low", "high"):
        manifest = gang(name, s.namespace, replicas=NODES_THERE, gpus=GPUS)
        manifest["spec"]["priorityClassName"] = name
        s.submit(manifest)
        s.until(lambda n=name: runs(s.client, s.namespace, n, NODES_THERE), f"{name} to run")
    assert s.used("extender", "create", "pods/eviction")
    s.end("low", "high")


def a_placement_that_is_left(s: Scenario) -> None:
    """Of a PodGroup that was deleted without it: another PodGroup of that name gets one of its own."""
    group = {"metadata": {"name": "again"}, "spec": {"minMember": 2, "queue": "default"}}

    def make(*ranks: int) -> None:
        s.client.create(POD_GROUPS, group, s.namespace)
        for rank in ranks:
            metadata = {"annotations": {names.GROUP_NAME: "again"}}
            s.client.create(PODS, pod(f"again-{rank}", gpus=1, metadata=metadata), s.namespace)

    make(0, 1)
    uid = s.until(lambda: _placement(s, "again"), "a placement")
    for rank in (0, 1):
        s.client.delete(PODS, f"again-{rank}", s.namespace, grace_period_s=0)
    s.client.delete(POD_GROUPS, "again", s.namespace, propagation="Orphan")
    s.until(lambda: "again" not in {each.metadata.name for each in s.client.list(POD_GROUPS, s.namespace)}, "its end")
    assert _placement(s, "again") == uid
    make(2, 3)
    s.until(lambda: _placement(s, "again") not in {"", uid}, "another placement")


def _placement(s: Scenario, name: str) -> str:
    try:
        return s.client.get(PLACEMENTS, name, s.namespace).metadata.uid
    except NotFound:
        return ""


def nodes_that_are_asked_for(s: Scenario) -> None:
    """By a condition, by a request; and the request is withdrawn when the queue changes its mind."""
    for mode in ("condition", "provisioning-request"):
        s.client.create(QUEUES, {"metadata": {"name": mode, "annotations": {names.SCALE_UP: mode}}, "spec": {}})
        manifest = gang(mode, s.namespace, replicas=NODES_THERE + 1, gpus=GPUS)
        manifest["spec"]["queue"] = mode
        s.submit(manifest)
    s.until(lambda: s.used("extender", "patch", "pods/status"), "the first gang to ask")
    s.until(lambda: s.client.list(PROVISIONING_REQUESTS, s.namespace), "the second gang's request")
    s.client.merge_patch(QUEUES, "provisioning-request", {"metadata": {"annotations": {names.SCALE_UP: "none"}}})
    s.until(lambda: not s.client.list(PROVISIONING_REQUESTS, s.namespace), "it to be withdrawn")
    s.end("condition", "provisioning-request")


def a_configuration_that_is_refused(s: Scenario) -> None:
    """Twice for the same reason, which is one event that counts."""
    file = s.plane.root / "planning.yaml"
    good = file.read_text(encoding="utf-8")
    for text, current in (("actions: dance\n", 0), (good, 1), ("actions: dance\n", 0), (good, 1)):
        file.write_text(text, encoding="utf-8")
        s.until(lambda w=current: metric(s.plane, "extender", "muster_config_current") == w, "it to be read")
    s.until(lambda: s.used("extender", "patch", "events"), "the event to count")


def names_that_are_taken(s: Scenario) -> None:
    """A pod and a PodGroup stand where the controller wants to make its own, and it reads whose they are."""
    s.client.create(PODS, pod("taken-w-0", scheduler="default-scheduler"), s.namespace)
    with s.frozen(CONTROLLER):
        made = s.submit(job("taken", s.namespace, task("w", 1)))
        s.client.create(
            POD_GROUPS, {"metadata": {"name": f"taken-{made.metadata.uid}"}, "spec": {"minMember": 1}}, s.namespace
        )
    s.until(lambda: s.used("controller", "get", "podgroups", "scheduling.volcano.sh"), "the PodGroup to be read")
    s.client.delete(POD_GROUPS, group_name(made), s.namespace)
    s.until(lambda: s.used("controller", "get", "pods"), "the pod to be read")
    s.end("taken")


def a_native_gang(s: Scenario) -> None:
    """Its PodGroup is told of it, and owns its Placement."""
    if not SERVES_NATIVE_GROUPS:
        return
    scene = Scene(s.plane, s.client, s.namespace, s.wait_for)
    scene.group("native", 1)
    scene.members("native", [0], gpus=0)
    s.until(lambda: scene.says("native", PHASE)[1] == "Running", "the native gang to run")
    assert scene.placement("native")
    s.client.delete(PODS, "native-0", s.namespace)
    s.client.delete(NATIVE_POD_GROUPS, "native", s.namespace)


def networks(s: Scenario) -> None:
    """A HyperNode, and Kueue's Topologies, which have come while the extender runs."""
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": ".*"}}}
    s.client.create(HYPER_NODES, {"metadata": {"name": "all"}, "spec": {"tier": 1, "members": [member]}})
    s.until(lambda: s.used("extender", "patch", "hypernodes/status", HYPER_NODES.group), "the HyperNode's count")
    s.until(lambda: s.used("extender", "watch", "topologies", TOPOLOGIES.group), "Topologies to be watched")
    s.client.delete(HYPER_NODES, "all")


def train_jobs(s: Scenario) -> None:
    """One with initializers, suspended and patched; one that grows; a report; runtimes of an older Trainer."""
    make_volume(s.client, s.namespace, "20Gi")
    tuned = train_job("tuned", "torchtune-llama3.2-1b", trainer={"command": ["tune", "run"]})
    s.client.create(TRAIN_JOBS, tuned, s.namespace)
    s.until(lambda: s.used("controller", "create", "jobs", "batch"), "an initializer")
    s.client.merge_patch(TRAIN_JOBS, "tuned", {"spec": {"suspend": True}}, s.namespace)
    s.until(lambda: s.used("controller", "patch", "jobs", "batch"), "the initializer to be suspended")
    s.until(lambda: _suspended(s, "tuned"), "the TrainJob to be suspended")
    selector = patch("kueue.x-k8s.io/manager", "dataset-initializer", nodeSelector={"kubernetes.io/os": "linux"})
    change = {"spec": {"suspend": False, "runtimePatches": [selector]}}
    s.until(lambda: _accepted(s, "tuned", change), "its pods to have ended")
    s.until(lambda: s.used("controller", "delete", "jobs", "batch"), "the initializer to be made anew")
    elastic = runtime("elastic")
    elastic["spec"]["mlPolicy"]["torch"] = {"elasticPolicy": {"minNodes": 1, "maxNodes": 4}}
    elastic["metadata"]["finalizers"] = ["trainer.kubeflow.org/resource-in-use"]
    s.client.create(TRAINING_RUNTIMES, elastic, s.namespace)
    of_all = {**runtime("of-all"), "kind": CLUSTER_TRAINING_RUNTIMES.kind}
    of_all["metadata"]["finalizers"] = ["trainer.kubeflow.org/resource-in-use"]
    s.client.create(CLUSTER_TRAINING_RUNTIMES, of_all)
    s.until(lambda: s.used("controller", "patch", "trainingruntimes", TRAIN_JOBS.group), "the finalizer to go")
    s.client.create(TRAIN_JOBS, train_job("grows", "elastic", nodes=1, kind="TrainingRuntime"), s.namespace)
    s.until(lambda: s.phase("grows") == "Running", "a TrainJob to run")
    more = {"metadata": {"annotations": {names.NUM_NODES: "2"}}}
    s.client.merge_patch(TRAIN_JOBS, "grows", more, s.namespace)
    s.until(lambda: s.used("controller", "patch", "jobs", JOBS.group), "its Job to grow")
    s.client.merge_patch(TRAIN_JOBS, "grows", {"spec": {"suspend": True}}, s.namespace)
    s.until(lambda: s.used("controller", "create", "commands", COMMANDS.group), "its Job to be suspended")
    path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{s.namespace}/trainjobs/grows/status"
    url = s.plane.commandlines.url("controller-reports", scheme="https") + path
    trust = ssl.create_default_context(cafile=str(s.plane.commandlines.pki.ca_file))
    request = urllib.request.Request(url, b"{}", {"Authorization": f"Bearer {_token(s)}"}, method="POST")  # noqa: S310 - the plane's
    with suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, context=trust, timeout=10).close()  # noqa: S310 - as above
    s.until(lambda: s.used("controller", "create", "tokenreviews", "authentication.k8s.io"), "a report to be checked")
    full = f"{s.namespace}{FULL}"
    s.client.create(NAMESPACES, {"metadata": {"name": full}})
    s.client.create(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}, full)
    s.client.create(TRAIN_JOBS, train_job("refused", "torchtune-llama3.2-1b", trainer={"command": ["tune"]}), full)
    s.until(lambda: "quota: none" in s.client.get(TRAIN_JOBS, "refused", full).blocked, "the words about its pods")
    s.client.delete(TRAIN_JOBS, "refused", full)
    for name in ("tuned", "grows"):
        s.client.delete(TRAIN_JOBS, name, s.namespace)


def _token(s: Scenario) -> str:
    """A token that is good, but not for a report."""
    return token_file(s.plane.root / "tokens", "muster-controller").read_text(encoding="utf-8")


def _accepted(s: Scenario, name: str, change: JSON) -> bool:
    with suppress(Forbidden):
        s.client.merge_patch(TRAIN_JOBS, name, change, s.namespace)
        return True
    return False


def _suspended(s: Scenario, name: str) -> bool:
    conditions = s.client.get(TRAIN_JOBS, name, s.namespace).status.conditions or []
    return any(one.type == "Suspended" and one.status == "True" for one in conditions)


def the_history(s: Scenario) -> None:
    """The recorder follows gangs, and tells what their queues have held."""
    s.client.create(JOBS, gang("recorded", s.namespace, replicas=1, gpus=0), s.namespace)
    s.until(lambda: s.phase("recorded") == "Running", "the Job to run")
    s.until(lambda: s.used(roles.HISTORY, "get", "configmaps"), "the recorder to read what was published")
    s.until(lambda: s.used(roles.HISTORY, "patch", "configmaps"), "the recorder to tell what is held")
    s.end("recorded")


def the_page(s: Scenario) -> None:
    """It follows everything, asks whose a token is and what he may see, and explains with what the extender says."""
    subject, _ = user(s.plane, s.namespace, s.plane.root, "reader")
    bind(s.plane, "cluster-admin", subject, everywhere=True)
    s.client.create(JOBS, gang("explained", s.namespace, replicas=1, gpus=0), s.namespace)
    s.until(lambda: s.phase("explained") == "Running", "the Job to run")
    with page_server(s.plane, s.plane.root / "page", s.wait_for) as server:
        token = token_of(s.client, s.namespace, subject["name"])
        path = f"/api/explain/{s.namespace}/explained"
        s.until(lambda: server.ask(path, token)[0] == HTTPStatus.OK, "the page to explain")
        s.until(lambda: s.used(roles.WEB, "watch", "topologies", "kueue.x-k8s.io"), "the page to follow topologies")
    s.end("explained")


STEPS: tuple[Callable[[Scenario], None], ...] = (
    foreign_kinds, objects_of_a_job, a_job_whose_time_is_over, jobs_that_follow_each_other, jobs_by_the_clock,
    claims_of_a_job, owners_of_shaped_pods, runtimes_and_namespaces, devices_of_claims, commands_to_queues,
    a_stale_gang, preemption, a_placement_that_is_left, nodes_that_are_asked_for, a_configuration_that_is_refused,
    names_that_are_taken, workloads, workloads_of_others, a_gang_of_an_unknown_kind, a_gang_that_moves, a_native_gang,
    networks, train_jobs, the_history, the_page,
)  # fmt: skip
