"""Workloads of every kind are refused for what their pods would be refused for, in the same words, at creation."""

import copy
from typing import Any

import msgspec
import pytest
from webhook_world import JSON
from workload_kinds import (
    KINDS,
    Change,
    annotated,
    ask,
    env,
    job_spec,
    jobset,
    labelled,
    made,
    template,
    with_annotation,
)

from muster.kube.errors import APIError, Forbidden
from webhook.review import MalformedError

JOBSET_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
UNRANKED = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicationController": "v1"}


def errors(document: JSON, old: JSON | None = None) -> dict[str, str]:
    """Field path → message of each error."""
    return {error.path: error.cause for error in ask(document, old).errors}


# What is wrong → the change of the template, the path ("T" for the template's), and words of the message.
MISTAKES: dict[str, tuple[Change, str, str]] = {
    "reserved env": (env("PET_NNODES"), "T.spec.containers[0].env[0].name",
        "is set by Muster for framework torch; remove it"),
    "unknown framework": (labelled("framework", "tortch"), "metadata.labels[muster.dev/framework]", "one of"),
    "unknown queue": (labelled("queue", "none"), "metadata.labels[muster.dev/queue]", "unable to find job queue"),
    "no processes": (annotated("nproc-per-node", "0"), "T.metadata.annotations[muster.dev/nproc-per-node]", '"0"'),
    "minimum above all pods": (annotated("min-member", "9"), "T.metadata.annotations[muster.dev/min-member]",
        "from 1 to"),
    "unknown container": (annotated("inject-into", "x"), "T.metadata.annotations[muster.dev/inject-into]", '"x"'),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_passes(kind: str) -> None:
    """No error, and no warning."""
    make, _ = KINDS[kind]
    verdict = ask(make(template()))
    assert (list(verdict.errors), list(verdict.warnings)) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_every_mistake_is_refused(kind: str, mistake: str) -> None:
    """At the path where its user has written it; on an update too, unless it was there before."""
    change, path, words = MISTAKES[mistake]
    make, place = KINDS[kind]
    pods = template()
    change(pods)
    document = make(pods)
    document["metadata"]["labels"] = dict(pods["metadata"]["labels"])
    found = errors(document)
    where = path.replace("T.", f"{place}.")
    assert list(found) == [where]
    assert words in found[where]
    assert errors(document, make(template())) == found
    assert errors({**document, "metadata": {**document["metadata"], "annotations": {"a": "b"}}}, document) == {}
    going = {**document["metadata"], "deletionTimestamp": "2020-01-01T00:00:00Z"}
    assert errors({**document, "metadata": going}, make(template())) == {}


SHAPES: dict[str, tuple[JSON, str, str]] = {
    "a CronJob without indexes": (
        made("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": template()}}}),
        "spec.jobTemplate.spec.completionMode",
        "must be Indexed for muster.dev/framework",
    ),
    "a JobSet of fewer pods than ranks": (
        made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [
            {"name": "a", "template": {"spec": {"template": {"spec": {}}}}},
            {"name": "b", "template": {"spec": {**job_spec(template()), "parallelism": 2}}},
        ]}),
        "spec.replicatedJobs[1].template.spec.parallelism",
        "must equal completions (4)",
    ),
    "a StatefulSet one by one": (
        made("apps/v1", "StatefulSet", {"replicas": 4, "serviceName": "s", "template": template()}),
        "spec.podManagementPolicy",
        "must be Parallel: the gang waits for 4 pods",
    ),
    "a StatefulSet without a Service": (
        made("apps/v1", "StatefulSet", {"replicas": 1, "template": template()}),
        "spec.serviceName",
        "must name a headless Service",
    ),
    "a leader that must be ready": (
        made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {
            "startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()},
        }),
        "spec.startupPolicy",
        "must be LeaderCreated",
    ),
    "a leader that must have a node": (
        with_annotation(made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {
            "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()},
        }), "leaderworkerset.sigs.k8s.io/exclusive-topology", "rack"),
        "metadata.annotations[leaderworkerset.sigs.k8s.io/exclusive-topology]",
        "to keep each group in one domain, set muster.dev/topology-required: rack",
    ),
    "a JobSet that is exclusive": (
        with_annotation(made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [
            {"name": "a", "template": {"spec": job_spec(template())}},
        ]}), JOBSET_EXCLUSIVE, "rack"),
        f"metadata.annotations[{JOBSET_EXCLUSIVE}]",
        "must be left out for gangs (muster.dev/framework): JobSet creates a Job's other pods only when",
    ),
    "an exclusive part of a JobSet": (
        made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [
            {"name": "a", "template": {"spec": {"template": {"spec": {}}}}},
            {"name": "b", "template": with_annotation(
                {"metadata": {}, "spec": job_spec(template())}, JOBSET_EXCLUSIVE, "rack"
            )},
        ]}),
        f"spec.replicatedJobs[1].template.metadata.annotations[{JOBSET_EXCLUSIVE}]",
        "muster.dev/topology-slice-required: rack on the pod template",
    ),
    **{
        f"a {kind}": (
            made(version, kind, {"template": template()}),
            "metadata.labels[muster.dev/framework]",
            "have no index, so none of them has a rank; use a batch/v1 Job with completionMode Indexed",
        )
        for kind, version in UNRANKED.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_that_form_no_group(shape: str) -> None:
    """With the field that must change."""
    document, path, words = SHAPES[shape]
    found = errors(document)
    assert list(found) == [path]
    assert words in found[path]


@pytest.mark.parametrize("metadata", [7, {"annotations": 7}, {"annotations": []}])
def test_a_malformed_part_of_a_job_set(metadata: Any) -> None:
    """It is told as what the client has sent, and not as a failure of the webhook."""
    one = jobset(template())
    one["spec"]["replicatedJobs"][0]["template"]["metadata"] = metadata
    if metadata == {"annotations": []}:
        assert errors(one) == {}
    else:
        with pytest.raises(MalformedError):
            errors(one)


@pytest.mark.parametrize("own", [{"worker-index": "0"}, {"group-index": "1"}], ids=["leaders", "workers"])
def test_stateful_sets_of_a_leader_worker_set(own: dict[str, str]) -> None:
    """They are no worlds of their own; the rest of a pod's place is written by the set's own webhook on the pod."""
    pods, domain = template(), "leaderworkerset.sigs.k8s.io"
    pods["metadata"]["labels"] |= {f"{domain}/name": "train"} | {f"{domain}/{key}": each for key, each in own.items()}
    pods["metadata"]["annotations"] = {f"{domain}/size": "4"}
    spec = {"replicas": 3, "serviceName": "train", "podManagementPolicy": "Parallel", "template": pods}
    assert errors(made("apps/v1", "StatefulSet", {**spec, "ordinals": {"start": 1}})) == {}
    del pods["metadata"]["annotations"]
    assert list(errors(made("apps/v1", "StatefulSet", spec))) == [
        "metadata.annotations[leaderworkerset.sigs.k8s.io/size]"
    ]


def test_exclusive_topologies_of_single_pods() -> None:
    """They are JobSet's matter unless pods start together, by a minimum too; and so is the way by node selectors."""
    pods = template()
    del pods["metadata"]["labels"]["muster.dev/framework"]
    one = with_annotation(jobset(pods), JOBSET_EXCLUSIVE, "rack")
    one["metadata"]["labels"] = {}
    assert errors(one) == {}
    [(path, message)] = errors(with_annotation(one, "muster.dev/min-member", "2")).items()
    assert path == f"metadata.annotations[{JOBSET_EXCLUSIVE}]"
    assert "must be left out for gangs (muster.dev/min-member): " in message
    by_selector = with_annotation(
        with_annotation(jobset(template()), JOBSET_EXCLUSIVE, "rack"), "alpha.jobset.sigs.k8s.io/node-selector", "true"
    )
    assert errors(by_selector) == {}


@pytest.mark.parametrize("kind", UNRANKED)
def test_without_a_framework_ranks_are_not_needed(kind: str) -> None:
    """A queue is enough; and what is left alone is not looked at."""
    pods = template()
    del pods["metadata"]["labels"]["muster.dev/framework"]
    assert errors(made(UNRANKED[kind], kind, {"template": pods})) == {}
    pods["metadata"]["labels"] = {
        "muster.dev/queue": "none",
        "muster.dev/framework": "x",
        "muster.dev/managed": "false",
    }
    assert errors(made(UNRANKED[kind], kind, {"template": pods})) == {}


def test_a_single_job_of_a_jobset_needs_no_counts() -> None:
    """As the API server fills them in: one pod."""
    jobs = [{"name": "node", "template": {"spec": {"template": template()}}}]
    assert errors(made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})) == {}


def test_a_leader_alone_needs_no_ranks_of_workers() -> None:
    """No pod is made of the second template, though it has the label."""
    spec = {"leaderWorkerTemplate": {"size": 1, "leaderTemplate": template(), "workerTemplate": template()}}
    assert errors(made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec)) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_keys(kind: str) -> None:
    """A warning with the key that was meant, if one is close; in the template too; an update repeats none."""
    make, place = KINDS[kind]
    pods = template()
    pods["metadata"]["annotations"] = {"muster.dev/nproc-per-nod": "2", "kwok.muster.dev/run-seconds": "1"}
    document = make(pods)
    document["metadata"]["labels"]["muster.dev/gpus"] = "2"
    document["metadata"]["annotations"] = {"muster.dev/queue": "a"}
    unknown = {
        "metadata.labels[muster.dev/gpus]": "label; it has no effect",
        "metadata.annotations[muster.dev/queue]": "annotation; did you mean label muster.dev/queue?",
        f"{place}.metadata.annotations[muster.dev/nproc-per-nod]": (
            "annotation; did you mean annotation muster.dev/nproc-per-node?"
        ),
    }
    wanted = [f"{path}: Muster does not know this {advice}" for path, advice in unknown.items()]
    assert sorted(ask(document).warnings) == sorted(wanted)
    assert list(ask(copy.deepcopy(document), document).warnings) == []


def test_a_workload_of_another_shape() -> None:
    """Is told, and never admitted."""
    with pytest.raises((MalformedError, msgspec.ValidationError)):
        ask(made("apps/v1", "StatefulSet", {"replicas": "four", "template": template()}))


class NoClasses:
    """`DryRuns` of a cluster without PriorityClasses."""

    def attempt(self, pod: JSON, _namespace: str) -> APIError | None:
        """See webhook.apiserver.DryRuns."""
        name = pod["spec"].get("priorityClassName")
        return Forbidden(f"pods is forbidden: no PriorityClass with name {name} was found") if name else None


@pytest.mark.parametrize("kind", KINDS)
def test_a_priority_class_that_is_missing(kind: str) -> None:
    """Else the workload is admitted, and its controller can create no pod; pods that opt out are none of Muster's."""
    make, place = KINDS[kind]

    def refused(priority: str, before: str | None = None, managed: str = "true") -> list[str]:
        documents = []
        for name in (priority, before):
            pods = template()
            pods["spec"]["priorityClassName"] = name
            pods["metadata"]["labels"]["muster.dev/managed"] = managed
            documents.append(make(pods))
        verdict = ask(documents[0], documents[1] if before is not None else None, dry_runs=NoClasses())
        return [str(error).partition(", so")[0] for error in verdict.errors]

    missing = f'{place}.spec.priorityClassName: Not found: "high": no PriorityClass with name high was found'
    assert missing in refused("high")
    assert missing in refused("high", before="low")
    assert refused("high", before="high") == []
    assert refused("high", managed="false") == []
