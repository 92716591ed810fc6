"""The first pods of a workload, as its controller submits them: they are what Muster shapes.

Each kind of workload makes its own (`muster.workloads`); those of a Volcano Job are made as Muster's controller does.
"""

from collections.abc import Iterator

import msgspec

from muster.api.batch import JOBS, Job
from muster.volcano.plugins.registry import plugins_for
from muster.volcano.pods import complete_pod
from muster.volcano.slots import slot
from muster.workloads.sample import JSON, SamplePod, name_of, uid_of
from muster.workloads.table import kind_of


def sample_pods(workload: JSON) -> Iterator[SamplePod]:
    """The first pod of each shape; none for kinds without pods. PluginError if a plugin of a Job cannot be had."""
    kind = kind_of(str(workload.get("apiVersion", "")), str(workload.get("kind", "")))
    if kind and kind.resource is JOBS:
        return _of_volcano_job(workload)
    return kind.samples(workload) if kind and kind.samples else iter(())


def _of_volcano_job(document: JSON) -> Iterator[SamplePod]:
    """With all that the Job's controller adds, but for the pin or gate of its gang."""
    metadata = {"uid": uid_of(name_of(document)), **document["metadata"]}
    job = msgspec.convert({**document, "metadata": metadata}, Job)
    plugins = plugins_for(job.spec.plugins)
    for task in job.spec.tasks:
        if task.replicas:
            pod = complete_pod(job, slot(job, task, 0), plugins)
            pod["metadata"] = {key: value for key, value in pod["metadata"].items() if value}
            about = f"the first pod of task {task.name} of Job {job.metadata.name}, with what its plugins add"
            yield SamplePod(pod, about, always=True)
