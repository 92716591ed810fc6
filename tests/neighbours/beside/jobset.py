"""JobSet's own controller and webhooks, and JobSets for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from beside import kubebuilder
from beside.neighbour import Neighbours
from muster.api import names
from muster.api.base import Resource
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess

JSON = dict[str, Any]
JOB_SETS: Resource[JSON] = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", JSON)
NAME_LABEL = "jobset.sigs.k8s.io/jobset-name"
ATTEMPT_LABEL = "jobset.sigs.k8s.io/restart-attempt"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
TORCH = {names.FRAMEWORK: "torch", names.QUEUE: "default"}
RIGHTS = Path(__file__).resolve().parents[3] / "examples" / "trainjobs-as-jobsets.yaml"
_PROJECT = kubebuilder.Project("jobset", "sigs.k8s.io/jobset", "sigs.k8s.io/jobset", "config.jobset.x-k8s.io/v1alpha1")


def start(neighbours: Neighbours, plane: Plane, **configuration: Any) -> PlaneProcess:
    """Installs JobSet and runs its controller, with further fields of its Configuration."""
    return kubebuilder.start(neighbours, plane, _PROJECT, **configuration)


def for_train_jobs(make_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """A plane of six nodes of eight GPUs with JobSet, on which TrainJobs become JobSets."""
    settings = dict[str, dict[str, str]]()
    one = make_plane(nodes=6, settings=settings)
    assert one.kubectl("apply", f"--filename={RIGHTS}").returncode == 0
    start(neighbours, one)
    for part in ("webhook", "controller"):
        settings[part] = {"trainJobsAs": "JobSet"}
        one.part(part).kill()
    one.start()
    return one


def replicated(
    name: str,
    pods: int,
    *,
    jobs: int = 1,
    gpus: int = 8,
    run_s: float | None = None,
    labels: dict[str, str] | None = None,
    **more: Any,
) -> JSON:
    """A ReplicatedJob of so many Jobs with so many pods each, which end after `run_s`, or never."""
    metadata: JSON = {"labels": labels or {}, "annotations": {}}
    if run_s is not None:
        metadata["annotations"]["kwok.muster.dev/run-seconds"] = str(run_s)
    resources = {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": gpus} if gpus else {}}
    containers = [{"name": "main", "image": "none", "resources": resources}]
    template = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": containers}}
    spec = {"completions": pods, "parallelism": pods, "backoffLimit": 0, "template": template}
    return {"name": name, "replicas": jobs, "template": {"spec": spec}, **more}


def job_set(
    name: str,
    *parts: JSON,
    labels: dict[str, str] | None = TORCH,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> JSON:
    """A JobSet of these ReplicatedJobs; its labels ask for torch and a queue unless others are given."""
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {
        "apiVersion": JOB_SETS.api_version,
        "kind": JOB_SETS.kind,
        "metadata": metadata,
        "spec": {"replicatedJobs": list(parts), **spec},
    }


def ended(job_set: JSON) -> str:
    """Completed or Failed, with the reason; empty while it goes on."""
    conditions = (job_set.get("status") or {}).get("conditions") or []
    found = [each for each in conditions if each["type"] in {"Completed", "Failed"} and each["status"] == "True"]
    return f"{found[0]['type']}: {found[0]['reason']}" if found else ""
