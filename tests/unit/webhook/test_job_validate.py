"""A bad Volcano Job is refused with every wrong field's path, its value and what would be right."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from webhook_world import FRAMEWORK, JSON, QueueWorld, lookups, request, task, vcjob

from muster.api.volcano.batch import Job
from muster.volcano.plugins.registry import known, plugins_for, required
from muster.volcano.pods import complete_pod
from muster.volcano.tasks import slot
from webhook.objects.names import is_subdomain
from webhook.validate.volcano_job.job import reviewer

QUEUES = QueueWorld(fresh=("root", ""), closed=("root", "Closed"), parent=("root", "Open"), leaf=("parent", "Open"))


def errors(job: JSON) -> dict[str, str]:
    """Field path → message of each error."""
    return {error.path: error.cause for error in reviewer(lookups(QUEUES), FRAMEWORK)(request(job)).errors}


def policy(**fields: Any) -> JSON:
    """A lifecycle policy."""
    return {"action": "RestartJob", **fields}


def labelled(framework: str, **container: Any) -> JSON:
    """A template whose pods ask for a framework."""
    labels = {"muster.dev/framework": framework}
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", **container}]}}


def cpus(amount: Any, kind: str = "requests") -> JSON:
    """A container that asks for so many CPUs."""
    return {"resources": {kind: {"cpu": amount}}}


def aligned(policy: str, **spec: Any) -> JSON:
    """A Job whose pods are aligned with NUMA nodes."""
    return vcjob(task(topologyPolicy=policy, template={"spec": spec}))


def partitioned(total: int, size: int, policy: JSON | None = None, **fields: Any) -> JSON:
    """A Job of one task in partitions."""
    return vcjob(task(partitionPolicy={"totalPartitions": total, "partitionSize": size, **(policy or {})}, **fields))


LONG = "x" * 70
BUDGETS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
BOTH_TIERS = {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}}
BAD = {
    "no tasks": ({**vcjob(), "spec": {"queue": "default"}}, "spec.tasks", "No task specified in job spec"),
    "70 characters": (vcjob(name=LONG), "metadata.name", "at most 63 characters (it has 70)"),
    "name of a job": (vcjob(name="A"), "metadata.name",
        '"A": create job with name A validate failed: must be a DNS label'),
    "dots in the name": (vcjob(name="a.b"), "metadata.name", "must be a DNS label"),
    "last pod's name too long": (vcjob(task(replicas=1001), name="x" * 52), "spec.tasks[0].name",
        "-worker-1000 validate failed: it would have 64 characters, and 63 are allowed; shorten the name of the job"),
    "task minimum": (vcjob(task(minAvailable=3)), "spec.tasks[0].minAvailable",
        "3: 'minAvailable' is greater than 'replicas' in task: worker, job: train; at most 2"),
    "job minimum": (vcjob(minAvailable=3), "spec.minAvailable",
        "3: job 'minAvailable' should not be greater than total replicas in tasks; at most 2"),
    "duplicate task": (vcjob(task("a"), task("a")), "spec.tasks[1].name", '"a": duplicated task name a'),
    "both tiers": (vcjob(**BOTH_TIERS), "spec.networkTopology.highestTierName",
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"),
    "both tiers of a partition": (partitioned(1, 2, BOTH_TIERS),
        "spec.tasks[0].partitionPolicy.networkTopology.highestTierName", "simultaneously"),
    "unknown plugin": (vcjob(plugins={"scv": []}), "spec.plugins[scv]",
        "unable to find job plugin: scv; the plugins are env, svc, ssh, pytorch, tensorflow, mpi, ray, hcclrank"),
    "mpi without master": (vcjob(plugins={"mpi": ["--master=boss"]}), "spec.plugins[mpi]",
        "The specified mpi master task was not found"),
    "ray without head": (vcjob(task("leader"), plugins={"ray": []}), "spec.plugins[ray]",
        "The specified ray head task was not found: it must be one of the tasks leader, for example --head=leader"),
    "pytorch without the master that it names": (vcjob(plugins={"pytorch": ["--master=chief"]}),
        "spec.plugins[pytorch]",
        "The specified pytorch master task was not found: it must be one of the tasks worker, for example --master="),
    "two masters of pytorch": (vcjob(task("master", replicas=2), task("worker"), plugins={"pytorch": []}),
        "spec.tasks[0].replicas", "must be 1, because each pod of the master task of plugin pytorch has rank 0"),
    "a name that is too long for ray's Service": (vcjob(task("head", replicas=1), name="n" * 55, plugins={"ray": []}),
        "metadata.name", "must have at most 54 characters, because plugin ray creates Service <name>-head-svc"),
    "unknown queue": (vcjob(queue="nowhere"), "spec.queue",
        "Not found: \"nowhere\": unable to find job queue: 'nowhere'; usable queues are: default, fresh, parent, leaf"),
    "closed queue": (vcjob(queue="closed"), "spec.queue",
        "can only submit job to queue with state `Open`, queue `closed` status is `Closed`"),
    "root queue": (vcjob(queue="root"), "spec.queue", "can not submit job to root queue"),
    "queue with children": (vcjob(queue="parent"), "spec.queue", "can only submit job to leaf queue"),
    "event and exit code": (vcjob(policies=[policy(event="PodFailed", exitCode=3)]), "spec.policies[0].exitCode",
        "must not specify event and exitCode simultaneously"),
    "neither event nor exit code": (vcjob(policies=[policy()]), "spec.policies[0]",
        "either event and exitCode should be specified"),
    "internal event": (vcjob(policies=[policy(event="OutOfSync")]), "spec.policies[0].event",
        "invalid policy event; must be one of: *, PodFailed"),
    "internal event in a list": (vcjob(policies=[policy(events=["PodFailed", "CommandIssued"])]),
        "spec.policies[0].events", "invalid policy event"),
    "unknown action": (vcjob(policies=[policy(event="PodFailed", action="Explode")]), "spec.policies[0].action",
        '"Explode": invalid policy action; must be one of: AbortJob'),
    "unknown action for an exit code": (vcjob(policies=[policy(exitCode=3, action="SyncJob")]),
        "spec.policies[0].action", "invalid policy action"),
    "duplicate event": (vcjob(policies=[policy(event="PodFailed"), policy(events=["PodEvicted", "PodFailed"])]),
        "spec.policies[1]", "duplicate event PodFailed across different policy; spec.policies[0] has it already"),
    "exit code 0": (vcjob(policies=[policy(exitCode=0)]), "spec.policies[0].exitCode", "0 is not a valid error code"),
    "duplicate exit code": (vcjob(policies=[policy(exitCode=3), policy(exitCode=3)]), "spec.policies[1].exitCode",
        "duplicate exitCode 3"),
    "any event and another": (vcjob(policies=[policy(event="*"), policy(event="PodFailed")]), "spec.policies[0]",
        "if there's * here, no other policy should be here"),
    "timeout without a unit": (vcjob(policies=[policy(event="PodFailed", timeout="30")]), "spec.policies[0].timeout",
        "'30' is not a duration; write it like 30s, 5m or 1h30m"),
    "timeout before now": (vcjob(policies=[policy(event="PodFailed", timeout="-5m")]), "spec.policies[0].timeout",
        "'-5m' is not a duration"),
    "policies of a task": (vcjob(task(), task("b", policies=[policy()])), "spec.tasks[1].policies[0]",
        "either event and exitCode should be specified"),
    "no partitions": (partitioned(0, 2), "spec.tasks[0].partitionPolicy.totalPartitions",
        "'TotalPartitions' must be greater than 0 in task: worker"),
    "empty partitions": (partitioned(2, 0), "spec.tasks[0].partitionPolicy.partitionSize",
        "'PartitionSize' must be greater than 0 in task: worker"),
    "partitions that don't fit": (partitioned(2, 4, replicas=7), "spec.tasks[0].replicas",
        "7: 'Replicas' are not equal to TotalPartitions*PartitionSize in task: worker; 2*4 is 8"),
    "too many minimum partitions": (partitioned(1, 2, {"minPartitions": 2}),
        "spec.tasks[0].partitionPolicy.minPartitions", "must not be greater than totalPartitions (1)"),
    "minimum between partitions": (partitioned(1, 2, {"minPartitions": 1}, minAvailable=1),
        "spec.tasks[0].minAvailable",
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: worker; 1*2 is 2"),
    "half a CPU with a topology policy": (aligned("single-numa-node", containers=[cpus("1500m")]),
        "spec.tasks[0].template.spec.containers[0].resources.requests[cpu]",
        '"1500m": the cpu request isn\'t an integer'),
    "half a CPU of an init container with a topology policy": (aligned("restricted", containers=[cpus("1", "limits")],
        initContainers=[cpus("1"), cpus(0.5)]), "spec.tasks[0].template.spec.initContainers[1].resources.requests[cpu]",
        "0.5: the cpu request isn't an integer, and topologyPolicy restricted needs whole CPUs"),
    "framework without names for the pods": (vcjob(task(template=labelled("torch"))), "spec.plugins",
        "must include svc for muster.dev/framework"),
    "unknown framework": (vcjob(task(template=labelled("torhc")), plugins={"svc": []}),
        "spec.tasks[0].template.metadata.labels[muster.dev/framework]", '"torhc": must be one of: '),
    "a reserved variable": (vcjob(task(template=labelled("torch", env=[{"name": "PET_NNODES", "value": "2"}])),
        plugins={"svc": []}), "spec.tasks[0].template.spec.containers[0].env[0].name",
        "is set by Muster for framework torch; remove it"),
    "unknown dependency": (vcjob(task("a", dependsOn={"name": ["c"]})), "spec.tasks[0].dependsOn.name[0]",
        "doesn't form a directed acyclic graph(DAG): must be the name of another task of this job: a"),
    "circle of dependencies": (vcjob(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
        "spec.tasks[0].dependsOn", "doesn't form a directed acyclic graph(DAG): a needs b needs a; remove one of them"),
    "task that waits for itself": (vcjob(task("a", dependsOn={"name": ["a"]})), "spec.tasks[0].dependsOn", "a needs a"),
    "volume without a place": (vcjob(volumes=[{"volumeClaimName": "data"}]), "spec.volumes[0].mountPath",
        "mountPath is required"),
    "two volumes in one place": (vcjob(volumes=[{"mountPath": "/a", "volumeClaimName": "x"},
        {"mountPath": "/a", "volumeClaimName": "y"}]), "spec.volumes[1].mountPath", '"/a": duplicated mountPath'),
    "volume without a source": (vcjob(volumes=[{"mountPath": "/a"}]), "spec.volumes[0]",
        "either VolumeClaim or VolumeClaimName must be specified"),
    "volume with two sources": (vcjob(volumes=[{"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": {}}]),
        "spec.volumes[0].volumeClaimName",
        "conflict: If you want to use an existing PVC, just specify VolumeClaimName"),
    "bad claim name": (vcjob(volumes=[{"mountPath": "/a", "volumeClaimName": "A_b"}]),
        "spec.volumes[0].volumeClaimName", "invalid VolumeClaimName"),
    "disruption budget": ({**vcjob(), "metadata": {"name": "train",
        "annotations": {"volcano.sh/jdb-min-available": "0"}}}, "metadata.annotations[volcano.sh/jdb-min-available]",
        'invalid value <"0"> for volcano.sh/jdb-min-available, it must be a positive integer'),
    "two disruption budgets of one pod": (vcjob(task(template={"metadata": {"annotations": dict.fromkeys(BUDGETS,
        "1")}})), f"spec.tasks[0].template.metadata.annotations[{BUDGETS[1]}]",
        f"not allow configure multiple annotations <[{BUDGETS[0]} {BUDGETS[1]}]> at"),
}  # fmt: skip


@pytest.mark.parametrize(("job", "path", "words"), BAD.values(), ids=BAD.keys())
def test_each_error_has_its_path(job: JSON, path: str, words: str) -> None:
    """One thing wrong: one error, at its field, with its value and what would be right."""
    found = errors(job)
    assert list(found) == [path]
    assert words in found[path]


GOOD = {
    "plain": vcjob(),
    "longest names": vcjob(task(replicas=1000), name="x" * 52),
    "queue just created": vcjob(queue="fresh"),
    "leaf below another queue": vcjob(queue="leaf"),
    "one policy repeats an event": vcjob(policies=[policy(event="PodFailed", events=["PodFailed"])]),
    "any event and an exit code": vcjob(policies=[policy(event="*"), policy(exitCode=3)]),
    "chain of dependencies": vcjob(task("a"), task("b", dependsOn={"name": ["a"]}),
        task("c", dependsOn={"name": ["a", "b"]})),
    "mpi with its own master name": vcjob(task("boss", 1), task("w"),
        plugins={"mpi": ["--master=boss", "--unknown"], "ssh": ["--no-root"]}),
    "mpi flag with one dash": vcjob(task("boss", 1), plugins={"mpi": ["-master", "boss"]}),
    "timeouts": vcjob(policies=[policy(event=event, timeout=timeout) for event,
        timeout in (("PodFailed", "1h30m"), ("PodEvicted", "0"), ("Unknown", ".5s"))]),
    "timeout with a sign": vcjob(policies=[policy(event="PodFailed", timeout="+5m")]),
    "an empty name beside a tier": vcjob(networkTopology={"highestTierAllowed": 1, "highestTierName": ""}),
    "whole CPUs by limit": aligned("restricted", containers=[cpus(2, "limits")]),
}  # fmt: skip


@pytest.mark.parametrize("job", GOOD.values(), ids=GOOD.keys())
def test_what_is_right_passes(job: JSON) -> None:
    """None of the rules is too strict."""
    assert errors(job) == {}


def test_all_errors_come_together() -> None:
    """Independent mistakes are all reported in one refusal."""
    job = vcjob(task("a", minAvailable=5), task("a"), minAvailable=9, plugins={"x": []}, queue="nowhere", name=LONG)
    assert set(errors(job)) == {
        "metadata.name",
        "spec.tasks[0].minAvailable",
        "spec.minAvailable",
        "spec.tasks[1].name",
        "spec.plugins[x]",
        "spec.queue",
    }


FLAG_WARNINGS = {
    "unknown": ({"mpi": ["--no-root", "--port=2222"]},
        "spec.plugins[mpi]: unknown flag no-root is ignored; its flags are master, worker, port"),
    "no flags at all": ({"env": ["-x", "y"]}, "spec.plugins[env]: unknown flag x is ignored; it has no flags"),
    "a switch that is neither": ({"svc": ["--inject-hosts-env=maybe"]},
        "spec.plugins[svc]: the value of flag inject-hosts-env is invalid; its default true is used"),
    "a port that is none": ({"pytorch": ["--port=99999"]},
        "spec.plugins[pytorch]: the value of flag port is invalid; its default 23456 is used"),
}  # fmt: skip


@pytest.mark.parametrize(("plugins", "words"), FLAG_WARNINGS.values(), ids=FLAG_WARNINGS.keys())
def test_flags_that_mean_nothing_are_warnings(plugins: JSON, words: str) -> None:
    """The Job is let through, and the user is told which flags there are."""
    verdict = reviewer(lookups(QUEUES), FRAMEWORK)(request(vcjob(task("master", replicas=1), plugins=plugins)))
    assert not verdict.errors
    assert list(verdict.warnings) == [words]


def test_flags_behind_an_unknown_one_count() -> None:
    """The name of the master's task comes after an unknown flag."""
    assert errors(vcjob(task("boss", 1), plugins={"mpi": ["--no-such", "x", "--master=boss"]})) == {}


def test_unknown_compat_is_a_warning() -> None:
    """Unknown quirks are named, with the known ones."""
    manifest = vcjob()
    manifest["metadata"]["annotations"] = {"muster.dev/compat": "resume-counts, old-bug"}
    (warning,) = reviewer(lookups(QUEUES), FRAMEWORK)(request(manifest)).warnings
    message = "old-bug is unknown and has no effect; known values are resume-counts, ttl-spares-aborted"
    assert warning == f"metadata.annotations[muster.dev/compat]: {message}"


@pytest.mark.parametrize(
    ("event", "action", "warned"), [("PodFailed", "RestartTask", False), ("PodFailed", "TerminateJob", True)]
)
def test_a_restart_budget_needs_a_policy_that_restarts(event: str, action: str, *, warned: bool) -> None:
    """Without one it is let through, with a warning; one that cannot be read is refused."""
    manifest = vcjob(policies=[{"event": event, "action": action}])
    manifest["metadata"]["annotations"] = {"muster.dev/restart-budget": "5 in 1h"}
    verdict = reviewer(lookups(QUEUES), FRAMEWORK)(request(manifest))
    assert not verdict.errors
    assert any("no policy of the Job restarts pods" in each for each in verdict.warnings) is warned
    manifest["metadata"]["annotations"] = {"muster.dev/restart-budget": "often"}
    assert "metadata.annotations[muster.dev/restart-budget]" in errors(manifest)


def test_foreign_scheduler_is_a_warning() -> None:
    """A Job for a foreign scheduler is admitted, and the user is told."""
    verdict = reviewer(lookups(QUEUES), FRAMEWORK)(request(vcjob(schedulerName="default-scheduler")))
    assert not verdict.errors
    assert "spec.schedulerName" in verdict.warnings[0]


ARGUMENTS = {"mpi": ["--master=master"], "ray": ["--head=master"]}
SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


@given(
    first=st.sampled_from("a1"), size=st.integers(1, 253), plugin=st.sampled_from(sorted(known())),
    task_size=st.integers(1, 63), replicas=st.sampled_from((1, 10, 1000)),
)  # fmt: skip
def test_every_name_that_is_made_of_an_admitted_one_is_valid(
    first: str, size: int, plugin: str, task_size: int, replicas: int
) -> None:
    """Of pods, their labels, and the objects of all plugins, whatever the lengths."""
    plugins: JSON = {plugin: ARGUMENTS.get(plugin, [])}
    plugins |= {implied: [] for implied in required(plugins)}
    tasks = (task("master", replicas=1), task("t" * task_size, replicas=replicas))
    document = vcjob(*tasks, name=f"{first}{'x' * (size - 1)}", plugins=plugins)
    if errors(document):
        return
    job = msgspec.convert(document, Job)
    made = plugins_for(plugins)
    for owned in (each for one in made for each in one.objects(job)):
        name = owned.manifest["metadata"]["name"]
        assert SERVICE.fullmatch(name) if owned.resource.kind == "Service" else is_subdomain(name), name
    for each in job.spec.tasks:
        pod = complete_pod(job, slot(job, each, each.replicas - 1), made)
        spec, labels = pod["spec"], pod["metadata"]["labels"]
        values = [pod["metadata"]["name"], spec.get("hostname", ""), spec.get("subdomain", ""), *labels.values()]
        assert all(len(value) <= 63 for value in values), values
