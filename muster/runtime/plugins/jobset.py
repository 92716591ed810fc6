"""A JobSet for the pods of a TrainJob, and the host names of its pods.

If TrainJobs run as Muster's Jobs, every field of a runtime's JobSet template is either implemented or rejected; no
field is ignored. `unmapped` runs when a user submits a runtime, or a TrainJob with this runtime. The other functions
run when the Job is created. PersistentVolumeClaims that pods share (`volumeClaimPolicies`) work as with JobSet's
controller. A shared claim is named `<name>-<TrainJob>`, and a pod gets the volume if one of its containers mounts
`<name>`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import msgspec

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.endpoints import Endpoints
from muster.runtime.info import Info
from muster.runtime.plan import Component, Plan, PodSetPlan, metadata_of
from muster.runtime.template import planned
from muster.workloads.adapter import label
from muster.workloads.jobset import EXCLUSIVE, exclusive, hosts, why_not_exclusive
from muster.workloads.sample import mapping

JSON = dict[str, Any]
Fields = Mapping[str, Any]
PLAIN = "plain"
"""Name of the framework for pods that need no information about each other."""
_FAIL, _RESTART = "FailJobSet", "RestartJobSet"
_POD_FAILED = "BackoffLimitExceeded"
"""The only reason for which a task of Muster's Job can fail: one of the task's pods has failed."""
_OF_JOBS = frozenset({"template", "parallelism", "completions", "completionMode"})
"""Fields of a batch/v1 Job that determine the Job's pods or their number."""
_SAME_ANYWAY: Fields = {"backoffLimit": 0, "suspend": False, "manualSelector": False, "podReplacementPolicy": "Failed"}
"""Values of batch/v1 Job fields that are accepted and ignored, because Muster's Jobs always behave in this way."""
_INSTEAD: Fields = {
    "backoffLimit": "left out or 0",
    "activeDeadlineSeconds": "left out, and activeDeadlineSeconds of TrainJobs set",
    "ttlSecondsAfterFinished": "left out, and ttlSecondsAfterFinished of the template set",
    "podReplacementPolicy": "left out or Failed",
}
_WHY: Fields = {
    "backoffLimit": "pods are restarted together, failurePolicy.maxRestarts times",
    "podFailurePolicy": "a failed pod always fails the gang, and an evicted pod never does",
}


class Unmapped(NamedTuple):
    """A field that Muster's Job cannot implement: its path in the JobSet's spec, the required value and the reason."""

    field: str
    value: Any
    wanted: str
    why: str


def unmapped(base: Fields, members: Collection[str], framework: str) -> Iterator[Unmapped]:
    """Yield the fields that Muster's Job cannot implement; `members` are the replicated jobs that become its tasks."""
    yield from _network(base.get("network") or {}, framework)
    yield from _failures(base.get("failurePolicy") or {})
    yield from _success(base, members)
    if base.get("managedBy"):
        yield Unmapped("managedBy", base["managedBy"], "left out", "managedBy belongs in the TrainJob")
    for index, job in enumerate(base.get("replicatedJobs") or []):
        if job["name"] in members:
            yield from _of_job(f"replicatedJobs[{index}].template.spec", job["template"].get("spec") or {})


def service(base: Fields) -> dict[str, list[str]]:
    """Return plugin svc with the arguments that the runtime's `network` requires; empty if it disables host names."""
    network = base.get("network") or {}
    if network.get("enableDNSHostnames") is False:
        return {}
    return {"svc": [] if network.get("publishNotReadyAddresses") is False else ["--publish-not-ready-addresses"]}


def fails_at_once(base: Fields, job: str) -> bool:
    """Return True if the first failure rule for this replicated job fails the JobSet, without a restart."""
    rules = (base.get("failurePolicy") or {}).get("rules") or []
    actions = (rule["action"] for rule in rules if job in (rule.get("targetReplicatedJobs") or [job]))
    return next(actions, _RESTART) == _FAIL


def deciding(base: Fields, members: Sequence[str]) -> list[str]:
    """Return the replicated jobs, any of which completes the JobSet by its success; empty if all must succeed."""
    policy = base.get("successPolicy") or {}
    targets = list(policy.get("targetReplicatedJobs") or ())
    if policy.get("operator") == "Any":
        return targets or list(members)
    return targets if len(targets) == 1 else []


def claims(plan: Plan, plugin: str) -> Iterator[Component]:
    """Yield each PersistentVolumeClaim once; claims are deleted with the TrainJob unless their policy retains them."""
    for policy in plan.base.get("volumeClaimPolicies") or []:
        retained = (policy.get("retentionPolicy") or {}).get("whenDeleted") == "Retain"
        for template in policy.get("templates") or []:
            metadata = {
                **template["metadata"],
                "name": f"{template['metadata']['name']}-{plan.owner.name}",
                "namespace": plan.owner.namespace,
                **({} if retained else {"ownerReferences": [plan.owner.reference()]}),
            }
            manifest = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {key: value for key, value in metadata.items() if value},
                "spec": template.get("spec") or {},
            }
            yield Component(manifest, plugin, once=True)


def with_claims(plan: Plan, pods: dict[str, Any]) -> dict[str, Any]:
    """Return a pod template with a volume for each claim that its containers mount."""
    spec = pods["spec"]
    mounted = _mounted(spec)
    there = {volume.get("name") for volume in spec.get("volumes") or []}
    wanted = [name for name in claim_names(plan.base) if name in mounted and name not in there]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{plan.owner.name}"}} for name in wanted]
    return {**pods, "spec": {**spec, "volumes": [*(spec.get("volumes") or []), *volumes]}} if volumes else pods


def claim_names(base: Fields) -> list[str]:
    """Return the names of all claims in a JobSet spec; containers mount a claim by this name."""
    return [
        str((template.get("metadata") or {}).get("name") or "")
        for policy in base.get("volumeClaimPolicies") or []
        for template in policy.get("templates") or []
    ]


def mounted_names(base: Fields) -> set[str]:
    """Return the names of all volumes that any container of a JobSet spec mounts."""
    jobs = [mapping(job["template"].get("spec")) for job in base.get("replicatedJobs") or []]
    return {name for job in jobs for name in _mounted(mapping(mapping(job.get("template")).get("spec")))}


def _network(network: Fields, framework: str) -> Iterator[Unmapped]:
    if network.get("subdomain"):
        why = "pods are found under the name of their TrainJob"
        yield Unmapped("network.subdomain", network["subdomain"], "left out", why)
    if network.get("enableDNSHostnames") is False and framework != PLAIN:
        why = f"the pods of {framework} find each other by their host names"
        yield Unmapped("network.enableDNSHostnames", network["enableDNSHostnames"], "left out or true", why)


def _failures(policy: Fields) -> Iterator[Unmapped]:
    strategy = policy.get("restartStrategy")
    if strategy not in {None, "Recreate", "BlockingRecreate"}:
        why = "when a gang restarts, all of its pods are replaced"
        yield Unmapped("failurePolicy.restartStrategy", strategy, "Recreate or BlockingRecreate", why)
    for index, rule in enumerate(policy.get("rules") or []):
        path = f"failurePolicy.rules[{index}]"
        if rule["action"] not in {_FAIL, _RESTART}:
            why = "all pods are restarted together, and each restart counts"
            yield Unmapped(f"{path}.action", rule["action"], f"{_FAIL} or {_RESTART}", why)
        reasons = rule.get("onJobFailureReasons") or []
        if reasons and _POD_FAILED not in reasons:
            why = "a replicated job fails only when one of its pods fails"
            yield Unmapped(f"{path}.onJobFailureReasons", reasons, f"left out, or contain {_POD_FAILED}", why)
        patterns = rule.get("onJobFailureMessagePatterns") or []
        if patterns:
            why = "the pods have no batch/v1 Job whose failure message the patterns could match"
            yield Unmapped(f"{path}.onJobFailureMessagePatterns", patterns, "left out", why)


def _success(base: Fields, members: Collection[str]) -> Iterator[Unmapped]:
    policy = base.get("successPolicy") or {}
    named = policy.get("targetReplicatedJobs") or []
    targets = set(named or members)
    path = "successPolicy.targetReplicatedJobs"
    if not targets <= set(members):
        yield Unmapped(
            path, named, f"some of {', '.join(members)}", "the other replicated jobs end before the training begins"
        )
    elif policy.get("operator") == "Any":
        several = {job["name"] for job in base.get("replicatedJobs") or [] if int(job.get("replicas") or 1) > 1}
        if several & targets:
            why = "the success of one of several Jobs cannot complete the TrainJob, only the success of all"
            yield Unmapped(path, named, f"without {', '.join(sorted(several & targets))}", why)
    elif len(targets) > 1 and targets != set(members):
        why = "the training is complete when one replicated job succeeds, or when all of them have succeeded"
        yield Unmapped(path, named, f"one of {', '.join(members)}, or left out", why)


def _of_job(path: str, spec: Fields) -> Iterator[Unmapped]:
    for key, value in sorted(spec.items()):
        if key not in _OF_JOBS and value is not None and _SAME_ANYWAY.get(key) != value:
            why = _WHY.get(key, "the pods belong to one Job of Muster, which has no such field")
            yield Unmapped(f"{path}.{key}", value, _INSTEAD.get(key, "left out"), why)


def _mounted(spec: Fields) -> set[str]:
    containers = [*_maps(spec.get("containers")), *_maps(spec.get("initContainers"))]
    return {str(mount.get("name")) for each in containers for mount in _maps(each.get("volumeMounts"))}


def _maps(node: Any) -> list[dict[str, Any]]:
    return msgspec.convert(node or [], list[dict[str, Any]])


class JobSetPlugin:
    """Plugin that builds one JobSet with the TrainJob's name."""

    name = "JobSet"

    def validate(self, info: Info) -> Findings:
        """Reject a change of the number of nodes at run time, and fields by which a gang's pods are created one by one.

        The plugin warns about a restart budget, because JobSet has its own rules for restarts.
        """
        findings = Findings()
        if info.target != self.name:
            return findings
        text = info.train_job.metadata.annotations.get(names.NUM_NODES) if info.train_job else None
        if text is not None:
            message = "must be left out: in this cluster, TrainJobs become JobSets, whose sizes are fixed"
            findings.errors.append(FieldError(f"metadata.annotations[{names.NUM_NODES}]", message, text))
        if names.RESTART_BUDGET in info.annotations:
            findings.warnings.append(
                f"metadata.annotations[{names.RESTART_BUDGET}]: has no effect, because TrainJobs become JobSets in "
                "this cluster; the runtime's failurePolicy.maxRestarts limits their restarts"
            )
        several = {pod_set.name for pod_set in info.pod_sets if pod_set.count > pod_set.jobs}
        for job in info.base.get("replicatedJobs") or []:
            own = mapping(mapping(job["template"].get("metadata")).get("annotations"))
            level = exclusive([info.annotations, own])
            if level is not None and job["name"] in several:
                message = f"must refer to a runtime whose annotation {EXCLUSIVE} {why_not_exclusive(level, 'gangs')}"
                findings.errors.append(FieldError("spec.runtimeRef", message, info.runtime_name))
                break
        return findings

    def identify_pod_network(self, info: Info) -> None:
        """Set the host names `<set>-<replicated job>-<job>-<index>.<subdomain>`; the rank is the completion index."""
        if info.target != self.name:
            return
        network = info.base.get("network") or {}
        subdomain = network.get("subdomain") or info.owner.name
        for pod_set in info.pod_sets:
            pod_set.subdomain = subdomain
            pod_set.rank = label(names.COMPLETION_INDEX)
            pod_set.hosts = partial(_hosts, info.owner.name, pod_set.name, subdomain, pod_set.jobs)

    def build(self, plan: Plan) -> Iterable[Component]:
        """Yield the JobSet.

        Pod sets without pods are left out, and so are references to such pod sets in `dependsOn`.
        """
        if plan.target != self.name:
            return
        spec: JSON = deepcopy(dict(plan.base))
        there = {pod_set.name: pod_set for pod_set in plan.pod_sets if pod_set.count}
        jobs = [_replicated_job(job, there) for job in spec.get("replicatedJobs") or [] if job["name"] in there]
        manifest = {
            "apiVersion": JOB_SETS.api_version,
            "kind": JOB_SETS.kind,
            "metadata": metadata_of(plan, plan.owner.name),
            "spec": {**spec, "suspend": plan.suspend, "replicatedJobs": jobs},
        }
        yield Component(manifest, self.name, stage=1)

    def watched(self) -> Iterable[str]:
        """Return the name of the kind JobSet."""
        return [f"{JOB_SETS.plural}.{JOB_SETS.group}"]


def _hosts(jobset: str, replicated_job: str, subdomain: str, jobs: int, count: int) -> Endpoints:
    return hosts(jobset, replicated_job, subdomain, jobs=jobs, pods=count // jobs)


def _replicated_job(job: JSON, there: Mapping[str, PodSetPlan]) -> JSON:
    pod_set = there[job["name"]]
    template = job["template"]
    spec = template.get("spec") or {}
    count = pod_set.count // pod_set.jobs
    spec = {
        **spec,
        "parallelism": count,
        "completions": count,
        "template": planned(spec.get("template") or {}, pod_set),
    }
    result = {**job, "template": {**template, "spec": spec}}
    if pod_set.role != "other":
        result["replicas"] = 1
    waits = [each for each in job.get("dependsOn") or [] if each["name"] in there]
    if "dependsOn" in job:
        result["dependsOn"] = waits
    return {key: value for key, value in result.items() if (key, value) != ("dependsOn", [])}
