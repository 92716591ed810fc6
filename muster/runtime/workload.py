"""Conversion of an owner and a pod (or its template) into an `Info`: settings, and the framework's container."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from muster.api import names
from muster.api.fields import FieldError, InvalidFieldError
from muster.api.kubernetes.core import PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import DEFAULT_POD_SET
from muster.resources.accelerators import Claims, no_claims
from muster.resources.gpus import share_errors
from muster.runtime.info import Info, PodSet, ShapedContainer, UserEnv
from muster.runtime.settings import INJECT_INTO, Setting, from_annotations
from muster.workloads.adapter import Adapter, own_rank
from muster.workloads.sample import mapping

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
TRAINER_CONTAINER = "node"


def target_container(spec: PodSpec, annotations: Mapping[str, str]) -> str:
    """Return the name of the container that runs the framework.

    The result is the container that kubectl uses by default (annotation kubectl.kubernetes.io/default-container),
    otherwise the container named `node` (Kubeflow's convention), otherwise the first container. Call the function with
    the owner's template, not with a pod, because another webhook may have inserted a sidecar before the pod's
    containers.
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
    path: str,
    settings: Mapping[str, Setting],
    pod: ObjectMeta | None = None,
    claims: Claims = no_claims,
) -> Info:
    """Return the description for plugins of a workload whose pods have this `spec`, at the field path `path`.

    `pod` is the pod that is being admitted, or None for a template; `claims` returns the requests in device claims.
    Raises InvalidFieldError if `spec` lacks the container that runs the framework.
    """
    containers = containers_of(spec, path)
    template, _, annotations = template_of(adapter.template)
    target = _named(containers, target_container(template, annotations), path)
    pod_set = PodSet(
        name=DEFAULT_POD_SET,
        count=adapter.size(),
        rank=adapter.rank(pod),
        hosts=lambda _count: adapter.endpoints(),
        subdomain=adapter.subdomain(),
        target=target,
        containers=containers,
        spec=spec,
        template=mapping(adapter.template.get("spec")),
        own_rank=own_rank(adapter.rank(pod), pod) if pod else None,
        given_annotations=pod.annotations if pod else annotations,
        claims=claims,
    )
    return Info(
        framework,
        adapter.owner,
        [pod_set],
        settings,
        user_env=UserEnv(target.given.env, f"{target.path}.env"),
        injections=_injections(containers, settings, path),
    )


def describe_pod(adapter: Adapter, spec: PodSpec, meta: ObjectMeta, claims: Claims = no_claims) -> Info:
    """Return the description for plugins of a labelled pod, from the pod itself; raises InvalidFieldError."""
    path = "metadata.annotations"
    settings = from_annotations((path, meta.annotations), (path, adapter.annotations))
    return describe(
        meta.labels[names.FRAMEWORK], adapter, spec, path="spec", settings=settings, pod=meta, claims=claims
    )


def containers_of(spec: PodSpec, path: str) -> list[ShapedContainer]:
    """Return the containers of a pod spec, followed by its init containers."""
    main = [ShapedContainer(f"{path}.containers[{index}]", each) for index, each in enumerate(spec.containers)]
    init = [
        ShapedContainer(f"{path}.initContainers[{index}]", each, init=True)
        for index, each in enumerate(spec.init_containers)
    ]
    return main + init


def _named(containers: Sequence[ShapedContainer], name: str, path: str) -> ShapedContainer:
    for container in containers:
        if container.name == name and not container.init:
            return container
    message = f"must contain container {name!r}, which runs the framework"
    raise InvalidFieldError(
        FieldError(f"{path}.containers", message, [each.name for each in containers if not each.init])
    )


def _injections(
    containers: Sequence[ShapedContainer], settings: Mapping[str, Setting], path: str
) -> list[ShapedContainer]:
    """Return additional containers that get the framework's variables; their names are a list with commas."""
    setting = settings.get(INJECT_INTO)
    if setting is None:
        return []
    wanted = [name.strip() for name in setting.text.split(",") if name.strip()]
    known = {container.name: container for container in containers}
    for name in wanted:
        if name not in known:
            message = f"must name containers of {path}, which has {', '.join(known)}"
            raise InvalidFieldError(FieldError(setting.path, message, name))
    return [known[name] for name in wanted]


def gpu_errors(template: Mapping[str, object], path: str) -> Iterator[FieldError]:
    """Yield the errors in the GPU fractions that the raw pod template at `path` requests."""
    spec, _, annotations = template_of(template)
    yield from share_errors(annotations, spec, f"{path}.metadata.annotations", f"{path}.spec")


def template_of(template: Mapping[str, object]) -> tuple[PodSpec, dict[str, str], dict[str, str]]:
    """Return spec, labels and annotations of a raw pod template; raises ValidationError for a malformed template."""
    metadata = msgspec.convert(template.get("metadata") or {}, dict[str, object])
    return (
        msgspec.convert(template.get("spec") or {}, PodSpec),
        msgspec.convert(metadata.get("labels") or {}, dict[str, str]),
        msgspec.convert(metadata.get("annotations") or {}, dict[str, str]),
    )
