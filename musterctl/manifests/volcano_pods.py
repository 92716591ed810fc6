"""The sample of a Volcano Job: the first pod of each task, as our controller makes it.

It stands here, and not beside the other makers in `webhook.offline.pods`, because the webhook knows nothing of the
controller: only the command line may import both.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from controller.job.rules.pods import pod as pod_of
from controller.job.rules.sync import PodSlot
from controller.job.rules.volumes import mount
from controller.plugins.registry import plugins_for
from muster.api.batch import JOBS, Job
from muster.runtime.job_hosts import pod_name
from webhook.offline import pods
from webhook.offline.lookups import JSON, uid_of
from webhook.offline.pods import Makers, SamplePod


def of_volcano_job(document: JSON) -> Iterator[SamplePod]:
    """The first pods with all that the controller and the Job's plugins add, but for the pin or gate of its gang.

    Raises ValueError if one of the plugins cannot be had.
    """
    name = str(document["metadata"].get("name") or document["metadata"].get("generateName") or "")
    job = msgspec.convert({**document, "metadata": {"uid": uid_of(name), **document["metadata"]}}, Job)
    plugins = plugins_for(job.spec.plugins)
    for task in job.spec.tasks:
        if task.replicas:
            slot = PodSlot(task, 0, pod_name(job.metadata.name, task.name, 0))
            pod = pod_of(job, slot)
            mount(job, pod)
            for plugin in plugins:
                plugin.shape(job, slot, pod)
            pod["metadata"] = {key: value for key, value in pod["metadata"].items() if value}
            about = f"the first pod of task {task.name} of Job {job.metadata.name}, with what its plugins add"
            yield SamplePod(pod, about, always=True)


MAKERS: Final[Makers] = {**pods.MAKERS, (JOBS.api_version, JOBS.kind): of_volcano_job}
"""Every kind of workload whose pods Muster knows."""
