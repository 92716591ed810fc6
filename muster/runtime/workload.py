"""From an owner and a pod (or its template) to `Info`: which container runs the framework, and what parameters hold."""

from collections.abc import Mapping, Sequence

import msgspec

from muster.api.core import PodSpec
from muster.api.gang import DEFAULT_POD_SET
from muster.runtime.adapters import Adapter
from muster.runtime.fields import FieldError, InvalidFieldError
from muster.runtime.info import Container, Info, PodSet

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
TRAINER_CONTAINER = "node"


def target_container(spec: PodSpec, annotations: Mapping[str, str]) -> str:
    """The name of the container that runs the framework.

    The one that kubectl takes by default (annotation kubectl.kubernetes.io/default-container), else the one named
    `node` (Kubeflow's convention), else the first. Ask for the owner's template, not for a pod: others may have put
    a sidecar in front of the pod's containers.
    """
    named = [container.name for container in spec.containers]
    for wanted in (annotations.get(DEFAULT_CONTAINER), TRAINER_CONTAINER):
        if wanted in named:
            return wanted
    return named[0] if named else ""


def describe(
    framework: str,
    adapter: Adapter,
    spec: PodSpec,
    *,
    target: str,
    path: str,
    parameters: Mapping[str, str],
    parameters_path: str = "metadata.annotations",
) -> Info:
    """What plugins need to know of a workload whose pods look like `spec`, which stands at `path` (e.g. `spec`).

    `target` names the container that runs the framework; InvalidFieldError if `spec` has no such container.
    """
    containers = [
        Container(f"{path}.containers[{index}]", container) for index, container in enumerate(spec.containers)
    ]
    pod_set = PodSet(
        name=DEFAULT_POD_SET,
        count=adapter.size(),
        rank=adapter.rank(),
        endpoints=adapter.endpoints(),
        subdomain=adapter.subdomain(),
        target=_named(containers, target, path),
        containers=containers,
    )
    return Info(framework, adapter.workload, [pod_set], parameters, parameters_path)


def _named(containers: Sequence[Container], name: str, path: str) -> Container:
    for container in containers:
        if container.name == name:
            return container
    message = f"must hold container {name!r}, which runs the framework"
    raise InvalidFieldError(FieldError(f"{path}.containers", message, [container.name for container in containers]))


def template_of(template: Mapping[str, object]) -> tuple[PodSpec, dict[str, str], dict[str, str]]:
    """Spec, labels and annotations of a raw pod template; msgspec.ValidationError says what is malformed."""
    metadata = msgspec.convert(template.get("metadata") or {}, dict[str, object])
    return (
        msgspec.convert(template.get("spec") or {}, PodSpec),
        msgspec.convert(metadata.get("labels") or {}, dict[str, str]),
        msgspec.convert(metadata.get("annotations") or {}, dict[str, str]),
    )
