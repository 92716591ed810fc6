"""Objects that follow from admitted ones, and are admitted in their turn.

A workload is followed by its first pod of each shape, as Muster shapes pods; a TrainJob by its compiled objects.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from muster.api.fields import FieldError
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.runtime.plan import Plan
from muster.runtime.train_job import compile_train_job
from muster.workloads.sample import SamplePod, uid_of
from muster.workloads.table import kind_of
from webhook.offline.admission import Admitted, OfflineAdmission, Path
from webhook.offline.lookups import JSON
from webhook.patch import Why


def admit_all(admission: OfflineAdmission, documents: Iterable[JSON]) -> Iterator[Admitted]:
    """Yield each object, then those that follow from it if it is admitted. APIError if the cluster does not answer."""
    for document in documents:
        admitted = admission.admit(document)
        yield admitted
        if not admitted.errors:
            yield from _components(admission, admitted.after)
            yield from _pods(admission, admitted.after)


def sample_pods(workload: JSON) -> Iterator[SamplePod]:
    """Yield the first pod of each shape; none for kinds without pods. ValueError if a Job names an unknown plugin."""
    kind = kind_of(str(workload.get("apiVersion", "")), str(workload.get("kind", "")))
    return kind.samples(workload) if kind and kind.samples else iter(())


def _pods(admission: OfflineAdmission, workload: JSON) -> Iterator[Admitted]:
    """Yield the first pods; look-ups find an object between workload and pods, e.g. the Job of a CronJob."""
    try:
        for sample in sample_pods(workload):
            if sample.owner:
                admission.documents.add(sample.owner)
            admitted = admission.admit(sample.pod)
            admitted.about = sample.about
            if sample.always or admitted.reasons or admitted.errors:
                yield admitted
    except ValueError as error:  # msgspec.ValidationError is one
        refused = FieldError(str(workload.get("kind")), f"its pods cannot be made: {error}")
        yield Admitted(workload, workload, errors=[refused])


def _components(admission: OfflineAdmission, document: JSON) -> Iterator[Admitted]:
    """Yield the objects of a TrainJob, with a reason for each variable that the plan sets; none of other kinds."""
    if (document.get("apiVersion"), document.get("kind")) != (TRAIN_JOBS.api_version, TRAIN_JOBS.kind):
        return
    metadata = {"namespace": admission.documents.namespace, "uid": uid_of(document["metadata"].get("name", ""))}
    job = msgspec.convert({**document, "metadata": {**metadata, **document["metadata"]}}, TrainJob)
    runtime = admission.lookups.runtimes.find(job.spec.runtime_ref, job.metadata.namespace)
    compiled = compile_train_job(job, runtime, admission.framework) if runtime else None
    if compiled is None or compiled.plan is None:
        return
    variables = _variables(compiled.plan)
    for component in compiled.components:
        manifest = msgspec.to_builtins(component.manifest)
        reasons = {
            (*path, "env", index): variables[each["name"]]
            for path, listed in _environments(manifest)
            for index, each in enumerate(listed)
            if each.get("name") in variables
        }
        yield Admitted(manifest, manifest, reasons, about=f"of TrainJob {job.metadata.name}, by {component.plugin}")


def _variables(plan: Plan) -> dict[str, Why]:
    """Return the reason of each variable that the plan sets, by its name."""
    return {
        variable.name: Why(variable.source, variable.plugin)
        for pod_set in plan.pod_sets
        for container in pod_set.containers
        for variable in container.env
    }


def _environments(node: Any, path: Path = ()) -> Iterator[tuple[Path, list[JSON]]]:
    """Yield every list of variables in an object, and the path of its container."""
    if isinstance(node, Mapping):
        if isinstance(node.get("env"), list):
            yield path, node["env"]
        for key, member in node.items():
            yield from _environments(member, (*path, key))
    elif isinstance(node, list):
        for index, element in enumerate(node):
            yield from _environments(element, (*path, index))
