"""The form over `simulate`: what is wrong in it stands beside the field, and nothing of it can cost much."""

from types import SimpleNamespace
from typing import cast

import pytest
from explain_world import ExplainWorld

from history.model import EVERYTHING, Scope
from muster.api.kubernetes.core import NAMESPACES, PRIORITY_CLASSES, Namespace, PriorityClass
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from web.context import RequestContext
from web.pages.whatif import _dump
from web.view import Caller
from web.views.whatif import JOB_PODS, OBJECTS, YAML_BYTES, TrialResult, WhatIfTrial, trial, tried

JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: asked}
spec:
  minAvailable: 2
  schedulerName: muster
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: none, resources: {limits: {nvidia.com/gpu: "8"}}}
"""

MANY = f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: many, labels: {{muster.dev/queue: default}}}}
spec:
  parallelism: {JOB_PODS + 1}
  template: {{spec: {{restartPolicy: Never, containers: [{{name: main, image: none}}]}}}}
"""


@pytest.fixture
def world() -> ExplainWorld:
    """Two nodes with eight GPUs each, one of them taken; two gangs wait for both."""
    world = ExplainWorld().nodes(2)
    world.runs("busy", 1, {"nvidia.com/gpu": 8})
    return world


def ask(
    world: ExplainWorld, *, scope: Scope = EVERYTHING, whole: bool = True, **form: str
) -> tuple[WhatIfTrial, TrialResult | None]:
    """The trial of a form."""
    asked = trial(form, ["ns"])
    assert not asked.errors
    return asked, tried(asked, ["ns"], world.dump(), scope, whole=whole)


def test_a_gang_that_would_wait_says_why(world: ExplainWorld) -> None:
    """And where in its queue."""
    _, answer = ask(world, manifests=JOB)
    assert answer is not None
    [gang] = answer.gangs
    assert (gang.title, gang.submitted, gang.starts) == ("Job ns/asked", True, False)
    assert "nvidia.com/gpu" in gang.why
    assert gang.queue == "default, place 1 of 1 in it"


def test_more_nodes_let_it_start(world: ExplainWorld) -> None:
    """On the node that is free and a new one."""
    _, answer = ask(world, manifests=JOB, add_nodes="1", like="node-0")
    assert answer is not None
    [gang] = answer.gangs
    assert gang.starts
    assert gang.pods == 2
    assert "node-1" in gang.nodes[0]


def test_who_sees_one_namespace_is_told_of_his_own_gang(world: ExplainWorld) -> None:
    """What it would ask of its queue; nothing is planned on a cluster that he may not see."""
    _, answer = ask(world, manifests=JOB, scope=Scope(frozenset({"ns"})), whole=False)
    assert answer is not None
    assert answer.gangs == []
    assert [(each.workload, each.min_member) for each in answer.asked] == [("Job ns/asked", 2)]


def test_gangs_of_others_that_wait_are_not_named(world: ExplainWorld) -> None:
    """Even if the cycle has placed them."""
    world.gang("waits", {"worker": (2, {"nvidia.com/gpu": 8})})
    _, answer = ask(world, manifests=JOB, scope=Scope(frozenset({"other"})))
    assert answer is not None
    assert answer.gangs == []


@pytest.mark.parametrize(("form", "field", "words"), [
    ({"add_nodes": "many", "like": "node-0"}, "add_nodes", "a whole number"),
    ({"add_nodes": "9" * 99, "like": "node-0"}, "add_nodes", "a whole number"),
    ({"add_nodes": "1"}, "like", "give both fields"),
    ({"like": "node-0"}, "add_nodes", "give both fields"),
    ({"namespace": "theirs"}, "namespace", "there is ns"),
    ({"cordon": "a " * 50}, "cordon", "at most"),
    ({"manifests": "x" * (YAML_BYTES + 1)}, "manifests", "at most"),
])  # fmt: skip
def test_what_is_wrong_stands_beside_its_field(form: dict[str, str], field: str, words: str) -> None:
    """With a message that contains the correct form; errors are found before the cluster is read."""
    assert words in trial(form, ["ns"]).errors[field]


@pytest.mark.parametrize(("form", "field", "words"), [
    ({"cordon": "node-9"}, "cordon", "there is no node"),
    ({"add_nodes": "1", "like": "node-9"}, "like", "there is no node"),
    ({"queues": "default.color=red"}, "queues", "a queue has no"),
    ({"queues": "nothing.weight=1"}, "queues", "does not name a queue"),
    ({"manifests": JOB.replace("replicas: 2", "replicas: -2")}, "manifests", "replicas"),
    ({"manifests": "kind: ["}, "manifests", "cannot read the manifests"),
    ({"manifests": "- 1"}, "manifests", "Kubernetes objects"),
    ({"manifests": "a: &a [1]\nb: [*a, *a]"}, "manifests", "aliases"),
    *(({"manifests": sign * (YAML_BYTES // 2)}, "manifests", "nested") for sign in ("[", "- ", "? ")),
    ({"manifests": "---\nkind: Pod\n" * (OBJECTS + 1)}, "manifests", "objects"),
    ({"manifests": JOB.replace("asked", "asked, namespace: theirs")}, "manifests", "is visible to you"),
    ({"manifests": JOB.replace("asked", "asked, namespace: [ns]")}, "manifests", "is visible to you"),
    ({"manifests": MANY}, "manifests", f"more than {JOB_PODS}"),
    *(({"manifests": f"{JOB}\na: {odd}"}, "manifests", "cannot read") for odd in (
        "!!timestamp 99999-99-99", "!!set [1]", "!!omap 3", "!!pairs [3]", "!!map [1]", "!!seq 1", "!!binary \u00e4",
        "!!python/name:os.system", "{[1]: 2}",
    )),
])  # fmt: skip
def test_errors_that_only_the_trial_finds(world: ExplainWorld, form: dict[str, str], field: str, words: str) -> None:
    """Missing nodes and queues, texts that are no manifest of Kubernetes, and objects that admission refuses."""
    asked, answer = ask(world, **form)
    assert answer is None
    assert words in asked.errors[field]


def test_changes_of_the_cluster_are_for_who_may_see_it(world: ExplainWorld) -> None:
    """Others are told so."""
    asked, answer = ask(world, whole=False, cordon="node-0")
    assert answer is None
    assert "whole cluster" in asked.errors["form"]


@pytest.mark.parametrize(("everything", "queues"), [(True, True), (False, True), (False, False)])
def test_who_may_see_a_part_tries_with_that_part(world: ExplainWorld, *, everything: bool, queues: bool) -> None:
    """Nothing of others is in what is planned with: neither nodes, nor pods, nor the names of namespaces."""
    dump = world.dump()
    dump.add_objects(PRIORITY_CLASSES, [PriorityClass(metadata=ObjectMeta(name="high", uid="high"))])
    dump.add_objects(NAMESPACES, [Namespace(metadata=ObjectMeta(name=name, uid=name)) for name in ("ns", "theirs")])
    caller = Caller(name="eve", scope=EVERYTHING if everything else Scope(frozenset({"ns"})), queues=queues)
    site = SimpleNamespace(explainer=SimpleNamespace(dump=lambda: dump))
    found = _dump(cast("RequestContext", SimpleNamespace(caller=caller, site=site)))
    if everything:
        assert found is dump
        return
    assert {kind: len(items) for kind, items in found.objects.items() if items} == {
        PRIORITY_CLASSES.full_name: 1, NAMESPACES.full_name: 1, **({QUEUES.full_name: 1} if queues else {}),
    }  # fmt: skip
    assert [each.metadata.name for each in found.objects_of(NAMESPACES)] == ["ns"]
    assert found.unread == {POD_GROUPS.full_name}


def test_a_preemptor_names_what_it_evicts(world: ExplainWorld) -> None:
    """With the work that is lost."""
    world.state.on_priority_class(None, PriorityClass(metadata=ObjectMeta(name="high"), value=10))
    _, answer = ask(world, manifests=JOB.replace("minAvailable", "priorityClassName: high\n  minAvailable"))
    assert answer is not None
    assert [each.evicts for each in answer.gangs] == [["evicts Job ns/busy (1 pod)"]]
