"""The kind JobSet on a plane, and what its controller would do with one: no plane has it."""

from collections.abc import Callable
from typing import Any

from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS
from muster.kube.client import Client

JSON = dict[str, Any]
GROUP, VERSION = "jobset.x-k8s.io", "v1alpha2"
JOBSETS: Resource[JSON] = Resource(GROUP, VERSION, "jobsets", "JobSet", JSON)
CRDS: Resource[JSON] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", JSON, namespaced=False
)
NAME = f"{JOBSETS.plural}.{GROUP}"


def install(client: Client, wait_for: Callable[..., Any], kind: Resource[JSON] = JOBSETS) -> None:
    """The kind, or another one, with any content, and a status of its own."""
    name = f"{kind.plural}.{kind.group}"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    spec = {
        "group": kind.group,
        "scope": "Namespaced",
        "names": {"plural": kind.plural, "kind": kind.kind},
        "versions": [version],
    }
    # The API server wants a reason for groups of its own project.
    notes = {"api-approved.kubernetes.io": "unapproved, for a test"}
    client.create(CRDS, {"metadata": {"name": name, "annotations": notes}, "spec": spec})

    def established() -> bool:
        conditions = (client.get(CRDS, name).get("status") or {}).get("conditions") or []  # null at first
        return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)

    wait_for(established)


def controlled(owner: JSON) -> JSON:
    """A reference to the JobSet that controls an object."""
    metadata = owner["metadata"]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "JobSet",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def make_jobs(client: Client, job_set: JSON) -> None:
    """The batch/v1 Jobs of a JobSet as its controller (0.12) makes them, with its labels, which are annotations too."""
    name, namespace = job_set["metadata"]["name"], job_set["metadata"]["namespace"]
    network = job_set["spec"].get("network") or {}
    for job in job_set["spec"]["replicatedJobs"]:
        replicas = job.get("replicas", 1)
        for index in range(replicas):
            values = {
                "jobset-name": name,
                "jobset-uid": job_set["metadata"]["uid"],
                "replicatedjob-name": job["name"],
                "replicatedjob-replicas": str(replicas),
                "job-index": str(index),
                "restart-attempt": "0",
            }
            marks = {f"jobset.sigs.k8s.io/{key}": value for key, value in values.items()}
            template = _marked(job["template"], marks)
            pods = _marked(template["spec"]["template"], marks)
            pods["spec"] = {"restartPolicy": "OnFailure", "subdomain": network.get("subdomain") or name, **pods["spec"]}
            spec = {"completionMode": "Indexed", **template["spec"], "suspend": False, "template": pods}
            owner = [controlled(job_set)]
            metadata = {**template["metadata"], "name": f"{name}-{job['name']}-{index}", "ownerReferences": owner}
            client.create(INDEXED_JOBS, {"metadata": metadata, "spec": spec}, namespace)


def _marked(template: JSON, marks: dict[str, str]) -> JSON:
    """A template whose metadata has these labels and annotations too."""
    metadata = template.get("metadata") or {}
    more = {key: {**(metadata.get(key) or {}), **marks} for key in ("labels", "annotations")}
    return {**template, "metadata": {**metadata, **more}}


def tell(client: Client, job_set: JSON, *, counts: JSON, condition: JSON | None = None) -> None:
    """Writes the status of a JobSet: the counts of its replicated job `node`, and how it has ended."""
    zero = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    status: JSON = {"replicatedJobsStatus": [{"name": "node", **zero, **counts}]}
    if condition:
        status["conditions"] = [{"lastTransitionTime": "2026-01-01T00:00:00Z", "status": "True", **condition}]
    metadata = job_set["metadata"]
    client.merge_patch(JOBSETS, metadata["name"], {"status": status}, metadata["namespace"], subresource="status")
