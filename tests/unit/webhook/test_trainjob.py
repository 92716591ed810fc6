"""TrainJobs and runtimes before the webhook: each message, and what an update may change."""

from dataclasses import replace
from typing import Any, Literal

import pytest
from webhook_world import FRAMEWORK, JSON, NamespaceWorld, RuntimeWorld, apply, lookups, request

from muster.api import names
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime
from muster.kube.errors import Invalid
from webhook.mutate import trainjob as mutate
from webhook.review import ReviewVerdict
from webhook.validate.trainjob import reviewer, runtime_reviewer

R = "spec.template.spec.replicatedJobs"


def step(name: str = "node", ancestor: str = "trainer", container: str = "node", **fields: Any) -> JSON:
    """A replicated job."""
    labels = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}}
    spec = {"template": {"spec": {"containers": [{"name": container, "image": "i"}]}}}
    return {"name": name, "template": {"metadata": labels, "spec": spec}, **fields}


def runtime(*jobs: JSON, **spec: Any) -> JSON:
    """A ClusterTrainingRuntime."""
    given = {"mlPolicy": {"torch": {}}, "template": {"spec": {"replicatedJobs": list(jobs) or [step()]}}, **spec}
    return {"kind": "ClusterTrainingRuntime", "metadata": {"name": "r"}, "spec": given}


def train_job(name: str = "train", **spec: Any) -> JSON:
    """A TrainJob."""
    given = {"runtimeRef": {"name": "r", "kind": "ClusterTrainingRuntime"}, **spec}
    return {"kind": "TrainJob", "metadata": {"name": name}, "spec": given}


def patch(manager: str = "a.io/b", job: str = "node", **spec: Any) -> JSON:
    """A runtime patch."""
    entry = {"name": job, "template": {"spec": {"template": {"spec": spec}}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [entry]}}}}


def reviewed(job: JSON, old: JSON | None = None, *runtimes: JSON) -> ReviewVerdict:
    """The verdict on a new TrainJob, or on an update."""
    world = lookups(runtimes=RuntimeWorld(*(runtimes or (runtime(),))))
    return reviewer(world, FRAMEWORK)(request(job, "UPDATE" if old else "CREATE", old))


def said(verdict: ReviewVerdict) -> list[str]:
    """Each error as people read it."""
    return [str(error) for error in verdict.errors]


NEW: dict[str, tuple[JSON, str]] = {
    "api group": (train_job(runtimeRef={"name": "r", "kind": "ClusterTrainingRuntime", "apiGroup": "x"}),
        'spec.runtimeRef.apiGroup: Unsupported value: "x": must be trainer.kubeflow.org'),
    "kind": (train_job(runtimeRef={"name": "r", "kind": "Runtime"}),
        'spec.runtimeRef.kind: Unsupported value: "Runtime": must be ClusterTrainingRuntime or TrainingRuntime'),
    "no such runtime": (
        train_job(runtimeRef={"name": "x", "kind": "TrainingRuntime"}),
        ('spec.runtimeRef: Invalid value: "x": specified trainingRuntime must be created before the TrainJob is '
         "created; no object has this name in the TrainJob's namespace"),
    ),
    "manager": (
        train_job(runtimePatches=[patch("kueue")]),
        ('spec.runtimePatches[0].manager: Invalid value: "kueue": must be a domain-prefixed path (such as '
         '"acme.io/foo")'),
    ),
    "nodes": (
        train_job(trainer={"numNodes": 100_001}),
        "spec.trainer.numNodes: Invalid value: 100001: must be at most 20000 (pods; limit 'pods per gang')",
    ),
    "no nodes": (
        train_job(trainer={"numNodes": 0}),
        "spec.trainer.numNodes: Invalid value: 0: must be at least 1; use spec.suspend to start no pods",
    ),
    "nodes up to the limit": (
        train_job(trainer={"numNodes": 20_000, "env": [{"name": "PET_NNODES"}]}),
        ('spec.trainer.env: Invalid value: ["PET_NNODES"]: must not have reserved envs, invalid envs configured: '
         "[PET_NNODES]"),
    ),
    "host name": (
        train_job("t" * 58),
        (f'metadata.name: Invalid value: "{"t" * 58}": is too long: pod {"t" * 58}-node-0 of node would have a host '
         "name of 65 characters; 63 are allowed, so shorten it by 2"),
    ),
    "queue": (
        {**train_job(), "metadata": {"name": "train", "labels": {"muster.dev/queue": "nowhere"}}},
        ('metadata.labels[muster.dev/queue]: Not found: "nowhere": unable to find job queue: \'nowhere\'; usable '
         "queues are: default"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("job", "message"), NEW.values(), ids=NEW.keys())
def test_new_train_jobs(job: JSON, message: str) -> None:
    """Refused with 403, as Kubeflow's own webhook does."""
    verdict = reviewed(job)
    assert said(verdict) == [message]
    assert verdict.refusal == 403


class NoClass:
    """An API server without PriorityClasses."""

    def attempt(self, pod: JSON, _namespace: str) -> Invalid | None:
        """See webhook.apiserver.DryRuns."""
        name = pod["spec"].get("priorityClassName")
        return Invalid(f"no PriorityClass with name {name} was found") if name else None


def test_a_priority_class_that_is_missing() -> None:
    """Is told at the runtime, which names it."""
    job = step()
    job["template"]["spec"]["template"]["spec"]["priorityClassName"] = "high"
    asked = replace(lookups(runtimes=RuntimeWorld(runtime(job))), dry_runs=NoClass())
    found = said(reviewer(asked, FRAMEWORK)(request(train_job())))
    assert [each.partition(", so")[0] for each in found] == [
        'spec.runtimeRef: Not found: "high": no PriorityClass with name high was found'
    ]


class Refusing:
    """An API server that refuses the pods of one pod set at this field of theirs."""

    def __init__(self, pod_set: str, field: str) -> None:
        self._name, self._field = f"{pod_set}-", field

    def attempt(self, pod: JSON, _namespace: str) -> Invalid | None:
        """See webhook.apiserver.DryRuns."""
        cause = {"field": self._field, "message": "no", "reason": "FieldValueInvalid"}
        refused = pod["metadata"]["generateName"] == self._name
        return Invalid("Pod is invalid", details={"causes": [cause]}) if refused else None


NODE = "spec.containers[0]"
GIVEN: JSON = {
    "trainer": {"image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resourcesPerNode": {"requests": {"nvidia.com/gpu": 1}}},
    "initializer": {"dataset": {"storageUri": "hf://a", "env": [{"name": "C", "value": "3"}]}},
}  # fmt: skip
OF_RUNTIME = "of its pods: no"


@pytest.mark.parametrize("target", ["Job", "JobSet"])
@pytest.mark.parametrize(("pod_set", "field", "error"), [
    ("node", f"{NODE}.resources.limits", "spec.trainer.resourcesPerNode.limits: no"),
    ("node", f"{NODE}.image", "spec.trainer.image: no"),
    ("node", f"{NODE}.env[0].value", f"spec.runtimeRef: {NODE}.env[0].value {OF_RUNTIME}"),
    ("node", f"{NODE}.command", f"spec.runtimeRef: {NODE}.command {OF_RUNTIME}"),
    ("node", "spec.serviceAccountName", f"spec.runtimeRef: spec.serviceAccountName {OF_RUNTIME}"),
    ("dataset-initializer", f"{NODE}.env[1].name", "spec.initializer.dataset.env[0].name: no"),
    ("dataset-initializer", f"{NODE}.image", f"spec.runtimeRef: {NODE}.image {OF_RUNTIME}"),
])  # fmt: skip
def test_what_pods_would_be_refused_for_is_told_at_the_train_job(
    pod_set: str, field: str, error: str, target: Literal["Job", "JobSet"]
) -> None:
    """At its own field, else at the reference to its runtime; never at an object that its user did not write."""
    runtimes = RuntimeWorld(runtime(step("dataset-initializer", "dataset-initializer", "dataset-initializer"), step()))
    world = lookups(runtimes=runtimes, dry_runs=Refusing(pod_set, field))
    assert said(reviewer(world, FRAMEWORK, target)(request(train_job(**GIVEN)))) == [error]


def made_with(notes: JSON, **spec: Any) -> JSON:
    """A step whose pods have these annotations, and this in their spec."""
    job = step()
    job["template"]["spec"]["template"]["metadata"] = {"annotations": notes}
    job["template"]["spec"]["template"]["spec"].update(spec)
    return job


WRONG: dict[str, tuple[JSON, str]] = {
    "a level": (made_with({"muster.dev/topology-required": "a b"}), "annotations[muster.dev/topology-required]"),
    "a minimum": (made_with({"muster.dev/min-member": "x"}), "annotations[muster.dev/min-member]"),
    "another pool's scheduler": (made_with({}, schedulerName="muster-b"), "template.spec.schedulerName"),
}


@pytest.mark.parametrize(("made_of", "field"), WRONG.values(), ids=WRONG)
def test_errors_of_its_job_set_are_reported_at_the_train_job(made_of: JSON, field: str) -> None:
    """By the rules for JobSets, at the runtime that it comes from; once what both have."""
    job = train_job()
    job["metadata"]["annotations"] = {"muster.dev/evict-notice": "x"}
    verdict = reviewer(lookups(runtimes=RuntimeWorld(runtime(made_of))), FRAMEWORK, "JobSet")(request(job))
    assert [error.path for error in verdict.errors] == [
        "metadata.annotations[muster.dev/evict-notice]",
        "spec.runtimeRef",
    ]
    assert field in said(verdict)[1]


def test_pods_of_another_cluster_are_not_tried() -> None:
    """Its policies are not those of this one."""
    world = lookups(runtimes=RuntimeWorld(runtime()), dry_runs=Refusing("node", "spec.serviceAccountName"))
    given = train_job(managedBy="kueue.x-k8s.io/multikueue")
    assert said(reviewer(world, FRAMEWORK)(request(given))) == []


def test_the_env_of_a_train_job_keeps_its_places() -> None:
    """Variables of Muster stand before it; what a patch changes is told at the patches."""
    world = lookups(runtimes=RuntimeWorld(runtime()), dry_runs=Refusing("node", f"{NODE}.env[6].value"))
    assert said(reviewer(world, FRAMEWORK)(request(train_job(**{**GIVEN, "initializer": None})))) == [
        "spec.trainer.env[1].value: no"
    ]
    patched = train_job(runtimePatches=[patch(serviceAccountName="a")])
    world = lookups(runtimes=RuntimeWorld(runtime()), dry_runs=Refusing("node", "spec.serviceAccountName"))
    assert said(reviewer(world, FRAMEWORK)(request(patched))) == [
        f"spec.runtimePatches: spec.serviceAccountName {OF_RUNTIME}"
    ]


def test_without_a_runtime_the_rest_is_told_too() -> None:
    """A missing runtime does not hide what can be said without it."""
    found = said(reviewed(train_job(runtimeRef={"name": "x"}, runtimePatches=[patch("kueue")])))
    assert [each.partition(":")[0] for each in found] == ["spec.runtimeRef", "spec.runtimePatches[0].manager"]


RUNNING = {
    "status": {"jobsStatus": [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]}
}
UPDATES: dict[str, tuple[JSON, JSON, list[str]]] = {
    "patches of a running job": (
        train_job(),
        train_job(runtimePatches=[patch()]),
        [
            (
                "spec.runtimePatches: Forbidden: can only be modified while the TrainJob is suspended; set "
                "spec.suspend to true first"
            )
        ],
    ),
    "patches while pods are active": (
        {**train_job(suspend=True), **RUNNING},
        train_job(suspend=True, runtimePatches=[patch()]),
        [
            (
                "spec.runtimePatches: Forbidden: cannot be modified while replicated job node is still active; wait "
                "for its pods to end"
            )
        ],
    ),
    "a patch that does not fit": (
        train_job(suspend=True),
        train_job(suspend=True, runtimePatches=[patch(job="nodes")]),
        [
            (
                'spec.runtimePatches: Invalid value: "nodes": must not have replicated job that doesn\'t exist in the '
                "runtime job template"
            )
        ],
    ),
    "a trainer that is added": (
        train_job(),
        train_job(trainer={"env": [{"name": "PET_NNODES"}]}),
        [
            (
                'spec.trainer.env: Invalid value: ["PET_NNODES"]: must not have reserved envs, invalid envs '
                "configured: [PET_NNODES]"
            )
        ],
    ),
    "a mistake that was there": (train_job(trainer={"env": [{"name": "PET_NNODES"}]}),
        train_job(trainer={"env": [{"name": "PET_NNODES"}], "numNodes": 3}), []),
    "another mistake beside it": (
        train_job(trainer={"env": [{"name": "PET_NNODES"}]}),
        train_job(trainer={"env": [{"name": "PET_NNODES"}, {"name": "PET_NODE_RANK"}]}),
        [
            (
                'spec.trainer.env: Invalid value: ["PET_NNODES","PET_NODE_RANK"]: must not have reserved envs, '
                "invalid envs configured: [PET_NNODES PET_NODE_RANK]"
            )
        ],
    ),
    "a number of nodes that the runtime does not allow": (
        train_job(),
        {**train_job(), "metadata": {"name": "train", "annotations": {"muster.dev/num-nodes": "3"}}},
        [
            (
                "metadata.annotations[muster.dev/num-nodes]: Forbidden: a TrainJob with runtime r keeps its number of "
                "nodes (spec.trainer.numNodes): delete it, and create it again with the other value; it loses its "
                "place in its queue; torchrun with the annotation muster.dev/elastic, "
                "for example 2:6, can change it later"
            )
        ],
    ),
    "nothing that matters": (train_job(), train_job(suspend=True), []),
    "only the time of a patch": (train_job(runtimePatches=[patch()]),
        train_job(runtimePatches=[{**patch(), "time": "2026-01-01T00:00:00Z"}]), []),
    "on its way out": (train_job(), {**train_job(runtimePatches=[patch()]),
        "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, []),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "messages"), UPDATES.values(), ids=UPDATES.keys())
def test_updates(old: JSON, new: JSON, messages: list[str]) -> None:
    """Fields that may not change, with advice."""
    assert said(reviewed(new, old)) == messages


def test_another_queue_is_without_effect() -> None:
    """A TrainJob cannot move, so the warning has the way that works; a suspended one takes it when it starts."""
    for suspend, count in ((False, 1), (True, 0)):
        old = train_job(suspend=suspend)
        new = {**old, "metadata": {**old["metadata"], "labels": {"muster.dev/queue": "default"}}}
        warnings = reviewed(new, old).warnings
        assert len(warnings) == count
        assert all("a TrainJob stays in the queue that admitted it: delete it, and create" in each for each in warnings)


def test_the_runtime_may_be_gone() -> None:
    """Then only what needs no runtime is checked."""
    old, new = train_job(suspend=True), train_job(suspend=True, runtimePatches=[patch("kueue", "nodes")])
    for job in (old, new):
        job["spec"]["runtimeRef"]["name"] = "gone"
    assert [each.partition(":")[0] for each in said(reviewed(new, old))] == ["spec.runtimePatches[0].manager"]


def test_deprecated_runtimes() -> None:
    """Its users are warned."""
    old = runtime()
    old["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
    [warning] = reviewed(train_job(), None, old).warnings
    assert warning.startswith("ClusterTrainingRuntime r is deprecated and will be removed; choose another runtime")


NO_CONTAINER = (
    f'{R}[0].template.spec.template.spec.containers: Invalid value: ["main"]: must contain the required container for '
    "the ancestor: trainer; name one of them node"
)
RUNTIMES: dict[str, tuple[JSON, list[str]]] = {
    "replicas": (runtime(step(replicas=2)), [f"{R}[0].replicas: Invalid value: 2: always must be 1 for a trainer"]),
    "container": (runtime(step(container="main")), [NO_CONTAINER]),
    "order": (runtime(step(dependsOn=[{"name": "later", "status": "Ready"}])),
              [f'{R}[0].dependsOn[0].name: Not found: "later": must be the name of an earlier replicated job: none']),
    "count": (runtime(mlPolicy={"numNodes": -1}),
              ["spec.mlPolicy.numNodes: Invalid value: -1: must be a number from 0 to 20000"]),
    "two gangs": (runtime(podGroupPolicy={"coscheduling": {}, "volcano": {}}),
                  ["spec.podGroupPolicy: Forbidden: must have either coscheduling or volcano, not both"]),
    "two at once": (runtime(step(replicas=2, container="main")),
        [f"{R}[0].replicas: Invalid value: 2: always must be 1 for a trainer", NO_CONTAINER]),
}  # fmt: skip


@pytest.mark.parametrize(("document", "messages"), RUNTIMES.values(), ids=RUNTIMES.keys())
def test_runtimes(document: JSON, messages: list[str]) -> None:
    """Refused with 403, all errors together."""
    verdict = runtime_reviewer(ClusterTrainingRuntime)(request(document))
    assert said(verdict) == messages
    assert verdict.refusal == 403


def test_flux_is_warned_of() -> None:
    """A runtime that cannot be used here may exist in the cluster."""
    verdict = runtime_reviewer(ClusterTrainingRuntime)(request(runtime(mlPolicy={"flux": {}})))
    assert not verdict.errors
    assert list(verdict.warnings) == [
        "spec.mlPolicy.flux: Muster does not run Flux; TrainJobs of this runtime will be refused"
    ]


def test_a_policy_of_a_later_version_is_refused() -> None:
    """It would have no effect."""
    verdict = runtime_reviewer(ClusterTrainingRuntime)(request(runtime(mlPolicy={"numNodes": 2, "ray": {}})))
    known = "Muster supports only jax, mpi, torch, xgboost"
    assert said(verdict) == [f'spec.mlPolicy.ray: Unsupported value: "ray": must be left out: {known}']


def test_an_unchanged_spec_is_not_looked_at_again() -> None:
    """A runtime from before Muster can be labelled, and freed of a finalizer."""
    old = runtime(mlPolicy={"ray": {}}, template={"spec": {"managedBy": "a.io/b"}})
    review = runtime_reviewer(ClusterTrainingRuntime)
    assert not review(request({**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}, "UPDATE", old)).errors
    assert review(request(old)).errors
    assert review(request({**old, "spec": {**old["spec"], "mlPolicy": {"ray": {"a": 1}}}}, "UPDATE", old)).errors


def test_no_patch_that_kubectl_applies_is_stamped() -> None:
    """It replaces the whole list: a time in it would be a change each time."""
    job = {**train_job(runtimePatches=[patch()])}
    job["metadata"] = {"name": "a", "annotations": {names.LAST_APPLIED: "{}"}}
    reviewer = mutate.reviewer(NamespaceWorld(), RuntimeWorld(), lambda: 0.0)
    assert "time" not in apply(job, reviewer(request(job)).patch)["spec"]["runtimePatches"][0]


def test_stamps_and_queue() -> None:
    """A new patch is stamped, a known one keeps its time, a changed one gets a new one; the queue is inherited."""
    review = mutate.reviewer(NamespaceWorld(team={"muster.dev/queue": "q"}), RuntimeWorld(), lambda: 1_700_000_000.0)
    now, before = "2023-11-14T22:13:20Z", "2020-01-01T00:00:00Z"
    made = apply(train_job(runtimePatches=[patch()]), review(request(train_job(runtimePatches=[patch()]))).patch)
    assert made["spec"]["runtimePatches"][0]["time"] == now
    assert made["metadata"]["labels"] == {"muster.dev/queue": "q"}
    old = train_job(runtimePatches=[{**patch("a.io/same"), "time": before}, {**patch("a.io/changed"), "time": before}])
    new = train_job(runtimePatches=[patch("a.io/same"), patch("a.io/changed", nodeSelector={"a": "b"})])
    after = apply(new, review(request(new, "UPDATE", old)).patch)
    assert [each["time"] for each in after["spec"]["runtimePatches"]] == [before, now]
    assert "labels" not in after["metadata"]


def test_the_version_of_the_runtime() -> None:
    """Noted when the TrainJob is created, whatever its user says; later it stays."""
    found = runtime()
    found["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    review = mutate.reviewer(NamespaceWorld(), RuntimeWorld(found), lambda: 0.0)
    key = "muster.dev/runtime-version"
    claimed = {**train_job(), "metadata": {"name": "t", "annotations": {key: "other/1"}}}
    for job in (train_job(), claimed):
        made = apply(job, review(request(job)).patch)
        assert made["metadata"]["annotations"] == {key: "u/7"}
    found["metadata"]["resourceVersion"] = "8"
    later = mutate.reviewer(NamespaceWorld(), RuntimeWorld(found), lambda: 0.0)
    after = apply(train_job(), later(request(train_job(), "UPDATE", made)).patch)
    assert after["metadata"]["annotations"] == {key: "u/7"}


OLDER: JSON = {
    "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}],
    "podSpecOverrides": [{"targetJobs": [{"name": "node"}], "nodeSelector": {"a": "b"}}],
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
}


def test_fields_of_older_trainers_are_warned_of() -> None:
    """They have no effect; the warning has the field that does. An update repeats none."""
    told = reviewed(train_job(**OLDER))
    assert said(told) == []
    assert [each.partition(": ")[0] for each in told.warnings] == [f"spec.{name}" for name in OLDER]
    assert all("use spec.runtimePatches: a manager, and trainingRuntimeSpec." in each for each in told.warnings)
    assert list(reviewed(train_job(**OLDER, suspend=True), train_job(**OLDER)).warnings) == []
    assert len(reviewed(train_job(**OLDER), train_job()).warnings) == len(OLDER)


def test_of_several_priority_classes_the_warning_says_which_counts() -> None:
    """That of the last job; one, or the same twice, is not warned of."""

    def warned(*names: str) -> list[str]:
        jobs = [step(f"j{number}") for number in range(len(names))]
        for job, name in zip(jobs, names, strict=True):
            job["template"]["spec"]["template"]["spec"]["priorityClassName"] = name
        return [*reviewed(train_job(), None, runtime(*jobs)).warnings]

    assert warned("high", "high") == warned("high") == []
    [told] = warned("high", "low")
    assert told == (
        "spec.runtimeRef: r: its pods have the PriorityClasses high, low; the gang has the class of the last job, low"
    )
