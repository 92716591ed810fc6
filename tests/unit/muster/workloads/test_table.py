"""The table of workload kinds is all there is: admission, the controller and `muster shape` know the same kinds."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from frameworks_world import OWNERS, Group, template

from controller.gangs.owners import pod_owner
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import PODS, PodSpec
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.volcano.batch import JOBS
from muster.kube.errors import NotFound
from muster.workloads.adapter import Adapter, OwnerError
from muster.workloads.kind import Path as TemplatePath
from muster.workloads.kind import PodContext, WorkloadKind, pod_templates
from muster.workloads.sample import JSON
from muster.workloads.table import KINDS, adapter_for, kind_of, source_of
from musterctl.chart import roles
from webhook.offline.admission import sample_pods
from webhook.registration import configurations

ROOT = Path(__file__).resolve().parents[4]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.resource.plural}.{kind.resource.group}")


def manifest(kind: WorkloadKind) -> JSON:
    """A workload named `train`, with a pod template wherever the kind has one."""
    metadata = {"name": "train", "namespace": "team", "uid": "uid"}
    result: JSON = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "metadata": metadata}
    for path in kind.templates:
        put(result, path, {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "node"}]}})
    return result


def put(node: JSON, path: TemplatePath, value: JSON) -> None:
    """Puts a value into a document; lists get one element, named `node`."""
    first, *rest = path
    if not rest:
        node[first] = value
    elif rest[0] == "*":
        [element] = node.setdefault(first, [{"name": "node", "replicas": 1}])
        put(element, tuple(rest[1:]), value)
    else:
        put(node.setdefault(first, {}), tuple(rest), value)


def registered() -> Iterator[tuple[str, str, str]]:
    """Group, plural and route of all that the mutating webhook is sent, but for kinds that are no owners of pods."""
    [mutating, _] = configurations(url="https://x", ca_bundle=b"")
    for each in mutating["webhooks"]:
        for rule in each["rules"]:
            [group], [plural] = rule["apiGroups"], rule["resources"]
            if plural not in {"podgroups", "queues", "trainjobs"}:
                yield group, plural, each["clientConfig"]["url"].removeprefix("https://x")


def test_admission_is_sent_what_the_table_has() -> None:
    """The labels of those kinds that say so are brought to their templates; Volcano Jobs and pods have their routes.

    What makes Jobs later is no workload itself: of it admission only says who created it.
    """
    wanted = {(kind.resource.group, kind.resource.plural, "/mutate/workload") for kind in KINDS if kind.labelled}
    routes = {(JOBS, "/mutate/job"), (PODS, "/mutate/pod")}
    assert {each for each in registered() if each[2] != "/mutate/creator"} == wanted | {
        (kind.group, kind.plural, route) for kind, route in routes
    }
    assert {kind for kind, _ in routes} <= {kind.resource for kind in KINDS if not kind.labelled}


class Asked:
    """As much of a Client as reading an owner needs; there is none."""

    def __init__(self) -> None:
        self.asked: list[Resource[Any]] = []

    def get(self, resource: Resource[Any], _name: str, _namespace: str) -> Any:
        """See muster.kube.client."""
        self.asked.append(resource)
        raise NotFound("none")


@each_kind
def test_the_controller_reads_the_owners_that_the_table_says(kind: WorkloadKind) -> None:
    """Those that say something about the gang of their pods, and no others."""
    owner = OwnerReference(
        api_version=kind.resource.api_version, kind=kind.resource.kind, name="train", uid="uid", controller=True
    )
    client: Any = Asked()
    assert pod_owner(client, ObjectMeta(namespace="team", owner_references=[owner])) is None
    assert client.asked == ([kind.resource] if kind.gang else [])


@each_kind
def test_sample_pods(kind: WorkloadKind) -> None:
    """Whatever admission is sent and has a template is shown with its first pods, which are made of that template."""
    found = list(sample_pods(manifest(kind)))
    assert bool(found) == (kind.labelled or kind.resource is JOBS)
    assert all(each.pod["metadata"]["labels"]["app"] == "x" for each in found)
    assert list(pod_templates(manifest(kind), kind.templates)) or kind.resource in {PODS, TRAIN_JOBS}


@each_kind
def test_the_adapter_of_a_sample_pod(kind: WorkloadKind) -> None:
    """The pods of a kind lead back to it, by what controls them, and by their label where that is something else."""
    for each in sample_pods(manifest(kind)):
        meta = msgspec.convert(each.pod["metadata"], ObjectMeta)
        if kind.ranks:
            assert source_of(meta) == kind.ranks.controller
            owner = adapter_of(Group(each.pod, each.owner or manifest(kind))).owner
            assert kind_of(owner.api_version, owner.kind) is kind
            assert (owner.name, meta.labels.get(kind.ranks.name_label, "train")) == ("train", "train")


def adapter_of(group: Group) -> Adapter:
    """The adapter of a pod."""
    meta, spec = msgspec.convert(group.pod["metadata"], ObjectMeta), msgspec.convert(group.pod["spec"], PodSpec)
    source = source_of(meta)
    owner = msgspec.convert(group.owner, source.type) if source else None
    return adapter_for(owner, PodContext(meta, spec, group.pod))


def test_every_kind_with_ranks_is_documented() -> None:
    """The owners of docs/frameworks.md, which are tested one by one, are those that have an adapter."""
    owners = [adapter_of(make(template("torch", {}, {}))).owner for make in OWNERS.values()]
    assert {kind_of(each.api_version, each.kind) for each in owners} == {each for each in KINDS if each.ranks}


@each_kind
def test_who_has_no_ranks_says_why(kind: WorkloadKind) -> None:
    """A pod of such an owner is refused with a reason, and with what to use instead."""
    owner = OwnerReference(
        api_version=kind.resource.api_version, kind=kind.resource.kind, name="train", uid="uid", controller=True
    )
    if kind.no_ranks:
        with pytest.raises(OwnerError) as refused:
            source_of(ObjectMeta(owner_references=[owner]))
        instead = "use a batch/v1 Job with completionMode Indexed, a JobSet, a StatefulSet, a LeaderWorkerSet or a "
        assert f"{refused.value}" == f"{kind.no_ranks}; {instead}Volcano Job. This pod belongs to {owner.kind} train"
    elif kind.templates:
        assert kind.ranks or any(sample_pods(manifest(kind))), "its pods are those of another kind"


def verbs(role: str, resource: Resource[Any]) -> set[str]:
    """What a role of the chart lets its holder do with a kind."""
    rules = (rule for rule in roles.rules(role) if resource.group in rule.api_groups)
    return {verb for rule in rules if resource.plural in rule.resources for verb in rule.verbs}


@each_kind
def test_the_chart_grants_what_a_row_asks_for(kind: WorkloadKind) -> None:
    """The controller reads the owners of gangs, the webhook those of pods with ranks."""
    assert "get" in verbs(roles.CONTROLLER, kind.resource) or not (kind.gang or kind.world)
    controller = kind.ranks.controller if kind.ranks else None
    assert controller is None or {"get", "list", "watch"} <= verbs(roles.WEBHOOK, controller)


def test_kinds_are_declared_once() -> None:
    """No part has a list of kinds of its own: each one's place in the API server is written down in one file."""
    text = "".join(
        path.read_text(encoding="utf-8")
        for part in ("muster", "webhook", "extender", "controller", "gangs", "web", "musterctl")
        for path in (ROOT / part).rglob("*.py")
    )
    found = Counter(re.findall(r'\(\s*"([a-z0-9.-]*)",\s*"v[a-z0-9]+",\s*"([a-z]+)"', text))
    alone = (kind.resource for kind in KINDS if kind.resource is not TRAIN_JOBS)  # its group is a constant
    known = [(resource.group, resource.plural) for resource in alone]
    assert {each: found[each] for each in known} == dict.fromkeys(known, 1)


def test_rows_follow_what_they_are_made_of() -> None:
    """A kind whose pods something else controls stands behind that: its adapter is asked first."""
    seen: list[Resource[Any]] = []
    for kind in KINDS:
        seen.append(kind.resource)
        if kind.ranks and kind.ranks.controller:
            assert kind.ranks.controller in seen
    assert len(set(seen)) == len(seen)


PROGRAM = Path(__file__).parents[2] / "worlds" / "invented_table.py"


def test_pods_of_an_invented_kind_are_a_gang() -> None:
    """To admission, the controller, the planner and a simulation, none of which knows the kind.

    In a process of its own: the table is read when its module is imported, and there is one.
    """
    told = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, PROGRAM], env=told, capture_output=True, text=True, check=False, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
