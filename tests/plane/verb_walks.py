"""A workload of each kind that a plane serves by itself, for the tests of verbs."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gang_jobs import job
from planes import Muster
from train_jobs import patch, train_job
from verb_outcomes import CONDITIONS, OUTCOMES, VERBS

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import INDEXED_JOBS, PODS
from muster.api.volcano.batch import JOBS
from muster.workloads.verbs import ACTED_ON, Condition

JSON = dict[str, Any]
NOWHERE = {"nodeSelector": {"tests.muster.dev/no": "node"}}
"""Of pods that wait."""


def raw(plural: str, kind: str) -> Resource[JSON]:
    """A kind of apps/v1 as it comes."""
    return Resource("apps", "v1", plural, kind, JSON)


def pods_with(spec: JSON, **more: Any) -> JSON:
    """A pod template."""
    containers = [{"name": "main", "image": "none"}]
    return {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": containers, **spec, **more}}


def batch_job(_: str, spec: JSON) -> JSON:
    """An Indexed Job of two ranks."""
    pods = pods_with(spec, restartPolicy="Never")
    return {"spec": {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": pods}}


def replicas(_: str, spec: JSON) -> JSON:
    """Two replicas, that start together."""
    return {
        "spec": {
            "replicas": 2,
            "serviceName": "w",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "w"}},
            "template": pods_with(spec),
        }
    }


def deployment(space: str, spec: JSON) -> JSON:
    """A Deployment of two."""
    made = replicas(space, spec)
    made["spec"] = {key: made["spec"][key] for key in ("replicas", "selector", "template")}
    return made


def training(_: str, spec: JSON) -> JSON:
    """A TrainJob of two nodes."""
    return {"spec": train_job("w", nodes=2, runtimePatches=[patch("tests.muster.dev/place", **spec)])["spec"]}


def single(_: str, spec: JSON) -> JSON:
    """A Pod."""
    return {"spec": pods_with(spec)["spec"]}


def volcano(space: str, spec: JSON) -> JSON:
    """A Volcano Job of two."""
    made = job("w", space, replicas=2, gpus=0)
    made["spec"]["tasks"][0]["template"]["spec"].update(spec)
    return made


class Walk(NamedTuple):
    """A kind, its workload, and the verbs that it refuses."""

    resource: Resource[Any]
    made: Callable[[str, JSON], JSON]
    refuses: frozenset[str] = frozenset()
    labels: JSON | None = None


PLAIN = {names.QUEUE: "default"}
WORLD = {**PLAIN, names.FRAMEWORK: "torch"}
STATEFUL_SETS = raw("statefulsets", "StatefulSet")
WALKS = {
    "job.batch": Walk(INDEXED_JOBS, batch_job, frozenset({"priority"})),
    "statefulset.apps": Walk(STATEFUL_SETS, replicas),
    "deployment.apps": Walk(raw("deployments", "Deployment"), deployment, labels=PLAIN),
    "job.batch.volcano.sh": Walk(JOBS, volcano, frozenset({"move"})),
    "trainjob.trainer.kubeflow.org": Walk(TRAIN_JOBS, training, frozenset({"move", "priority", "resize"})),
    "pod": Walk(PODS, single, frozenset({"priority", "resize", "hold", "release"}), labels=PLAIN),
}


ROWS = {kind.resource.reference("").rstrip("/"): f"{kind.resource.plural}.{kind.resource.group}" for kind in ACTED_ON}
"""Kind, as kubectl writes it -> its name in the table of outcomes."""


def contradictions(muster: Muster, kind: str, name: str, space: str, condition: Condition, high: str) -> Iterator[str]:
    """Try each verb as a dry run; yield those that are refused, or not refused, against the table of outcomes."""
    values = {"move": ["--queue=default"], "resize": ["--size=3"], "priority": [f"--class={high}"]}
    for verb in VERBS:
        refused = OUTCOMES[ROWS[kind]][verb].split(" | ")[CONDITIONS.index(condition)] == "no"
        fixed = (kind, verb) == ("trainjob.trainer.kubeflow.org", "resize")  # by its runtime, which is not elastic
        arguments = (verb, f"{kind}/{name}", *values.get(verb, []), "--dry-run", f"--namespace={space}")
        try:
            output = muster(*arguments, code=int(refused or fixed))
        except AssertionError as error:
            yield f"{verb} {kind}: {error}"
        else:
            if f"{kind}/{name}" not in output:
                yield f"{verb} {kind}: {output}"
