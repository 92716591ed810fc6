"""What one tenant makes does not count for another's Job, whatever it claims, on the simulated cluster."""

from typing import Any

import pytest
from simulated_cluster import Cluster
from simulated_jobs import job, pods, submit

from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS
from muster.volcano.podgroup import group_name


def forge(cluster: Cluster, of: Job, namespace: str, name: str, phase: str, **annotations: str) -> None:
    """Somebody makes a pod that names the Job as its controller, and has it end in this phase."""
    owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": of.metadata.name, "controller": True}
    owner_references = [owner | {"uid": of.metadata.uid}]
    metadata = {"name": name, "namespace": namespace, "annotations": annotations, "ownerReferences": owner_references}
    cluster.api.add(PODS, {"metadata": metadata, "spec": {"nodeName": "node-1"}}, namespace)
    cluster.api.change(PODS, name, {"status": {"phase": phase}}, namespace, subresource="status")


def told(cluster: Cluster) -> None:
    """Another controller takes over, which looks at every Job, and does what follows."""
    cluster.restart()
    for _ in range(20):
        cluster.deliver(everything=True)
        cluster.work(50)
        cluster.now_s += 1


def as_it_was(cluster: Cluster) -> tuple[Any, ...]:
    """What must not change."""
    status = job(cluster, "j").status
    own = sorted(
        pod.metadata.uid for pod in pods(cluster) if pod.metadata.namespace == "n" and "j-w" in pod.metadata.name
    )
    return (status.state.phase, status.running, status.succeeded, status.failed, status.retry_count, own)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Running"])
def test_a_pod_of_another_namespace_counts_for_nothing(cluster: Cluster, phase: str) -> None:
    """Neither does it take the place of the real one of its name, nor do its ends raise the Job's policies."""
    made = submit(cluster, "j", 1, {"events": ["*"], "action": "AbortJob"})
    before = as_it_was(cluster)
    slot = {names.TASK_SPEC: "w", names.TASK_INDEX: "0", names.JOB_VERSION: "0"}
    forge(cluster, made, "other", "j-w-0", phase, **slot)
    told(cluster)
    assert as_it_was(cluster) == before
    assert cluster.api.find(PODS, "j-w-0", "other").status.phase == phase, "and nobody has deleted it"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Running"])
@pytest.mark.parametrize("slot", [{}, {names.TASK_SPEC: "w", names.TASK_INDEX: "0"}])
def test_a_pod_of_the_namespace_that_the_job_does_not_have(cluster: Cluster, phase: str, slot: dict[str, str]) -> None:
    """One that is not called as the Job would call it is nobody's, though it names the Job as its controller."""
    made = submit(cluster, "j", 1, {"events": ["*"], "action": "AbortJob"})
    before = as_it_was(cluster)
    forge(cluster, made, "n", "mine", phase, **slot)
    told(cluster)
    assert as_it_was(cluster) == before


def test_a_pod_group_that_is_not_the_jobs(cluster: Cluster) -> None:
    """One that somebody has made under the name of the Job's does not admit the Job."""
    created = cluster.api.add(JOBS, {"metadata": {"name": "j", "uid": "u"}, "spec": {"tasks": []}}, "n")
    cluster.api.add(
        POD_GROUPS, {"metadata": {"name": group_name(created)}, "spec": {}, "status": {"phase": "Inqueue"}}, "n"
    )
    told(cluster)
    assert cluster.controller.jobs._reconciler._context.groups.find(created) is None


def test_caches_of_kinds_that_tenants_create_have_a_memory_limit(cluster: Cluster) -> None:
    """All but pods, all of which are counted; a Job of Kubernetes may have a megabyte."""
    caches = {each._resource: each.mirror.budget for each in cluster.controller.reflectors.values()}
    assert {kind.plural for kind, budget in caches.items() if kind.namespaced and budget is None} == {"pods"}
    assert {"jobs", "configmaps", "commands", "trainingruntimes"} <= {kind.plural for kind in caches}
