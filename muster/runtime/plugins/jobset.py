"""A JobSet for the pods of a TrainJob, and the host names of its pods."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.endpoints import Endpoints
from muster.runtime.component import Component, metadata_of
from muster.runtime.info import Info
from muster.runtime.plan import Plan, PodSetPlan
from muster.runtime.template import planned
from muster.workloads.adapter import label
from muster.workloads.jobset import hosts

JSON = dict[str, Any]


class JobSet:
    """One JobSet, named as the TrainJob."""

    name = "JobSet"

    def validate(self, info: Info) -> Findings:
        """Refuses another number of nodes while it runs: a JobSet's sizes are fixed."""
        text = info.train_job.metadata.annotations.get(names.NUM_NODES) if info.train_job else None
        if info.target != self.name or text is None:
            return Findings()
        message = "must be left out: TrainJobs become JobSets here, whose sizes are fixed"
        return Findings([FieldError(f"metadata.annotations[{names.NUM_NODES}]", message, text)])

    def identify_pod_network(self, info: Info) -> None:
        """`<set>-<replicated job>-<job>-<index>.<subdomain>`; the rank is the completion index."""
        if info.target != self.name:
            return
        network = info.base.get("network") or {}
        subdomain = network.get("subdomain") or info.owner.name
        for pod_set in info.pod_sets:
            pod_set.subdomain = subdomain
            pod_set.rank = label(names.COMPLETION_INDEX)
            pod_set.hosts = partial(_hosts, info.owner.name, pod_set.name, subdomain, pod_set.jobs)

    def build(self, plan: Plan) -> Iterable[Component]:
        """The JobSet; a pod set without pods is left out, also of `dependsOn`."""
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
        """JobSets."""
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
