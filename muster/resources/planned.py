"""The parts of pod specs and templates that the planner uses; only these parts are stored and written to recordings.

Environment variables, commands, images and names of Secrets do not affect which nodes a pod fits on. Any user can write
a template with a megabyte of short arguments, which would take twelve megabytes as Python objects.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from muster.api.kubernetes.core import Container, PodSpec
from muster.api.kubernetes.meta import TemplateMeta

CLAIMS = ("name", "persistentVolumeClaim", "ephemeral")


class PlannedTemplate(msgspec.Struct, omit_defaults=True, gc=False):
    """A pod template with the parts that the planner uses."""

    metadata: TemplateMeta
    spec: PodSpec

    @property
    def size_bytes(self) -> int:
        """Size of the template as JSON, in bytes."""
        return len(msgspec.json.encode(self))


def planned_spec(spec: PodSpec) -> PodSpec:
    """Return a copy of a spec with the parts that the planner uses."""
    claims = [volume for volume in spec.volumes if "persistentVolumeClaim" in volume or "ephemeral" in volume]
    volumes = [{key: value for key, value in volume.items() if key in CLAIMS} for volume in claims]
    return replace(
        spec,
        containers=[_container(container) for container in spec.containers],
        init_containers=[_container(container) for container in spec.init_containers],
        volumes=volumes,
    )


def planned_template(template: dict[str, Any]) -> PlannedTemplate:
    """Return the parts of a user's template that the planner uses; raise ValidationError for a malformed template."""
    meta = msgspec.convert(template.get("metadata") or {}, TemplateMeta)
    spec = planned_spec(msgspec.convert(template.get("spec") or {}, PodSpec))
    return PlannedTemplate(TemplateMeta(labels=meta.labels, annotations=meta.annotations), spec)


def _container(container: Container) -> Container:
    return replace(container, image="", command=[], args=[], env=[])
