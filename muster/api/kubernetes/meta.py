"""Object metadata of meta/v1, RFC 3339 times, and types for parts of objects that are kept exactly as written."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""A time as RFC 3339 text."""

Duration = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$"})
]
"""A duration in Go's format, such as `1h30m`. The API server rejects durations in other formats, because typed clients
could not read them."""


class OwnerReference(Wire):
    """One owner of an object."""

    api_version: str
    """Group and version of the object."""
    kind: str
    """Kind of the object."""
    name: str
    """Name of the object."""
    uid: str
    """UID of the object."""
    controller: bool = False
    """True if the owner manages the object."""
    block_owner_deletion: bool = False
    """True if foreground deletion of the owner waits for this object."""

    @classmethod
    def to(cls, kind: Resource[Any], meta: "ObjectMeta", **how: bool) -> "OwnerReference":
        """Return a reference to an object of this kind; `how` sets `controller` and `block_owner_deletion`."""
        return cls(api_version=kind.api_version, kind=kind.kind, name=meta.name, uid=meta.uid, **how)


class ObjectMeta(Wire):
    """metadata of any object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: list[OwnerReference] = field(default_factory=list)
    finalizers: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object; None if no owner does."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class LabelSelectorRequirement(Wire):
    """One expression of a label selector."""

    key: str
    """The label."""
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: list[str] = field(default_factory=list)
    """Values for In and NotIn."""


class LabelSelector(Wire):
    """A label selector, in which all labels and expressions must match."""

    match_labels: dict[str, str] = field(default_factory=dict)
    """Labels that an object must have, with their values."""
    match_expressions: list[LabelSelectorRequirement] = field(default_factory=list)
    """Expressions about labels, all of which must match."""


class Object(Wire):
    """An object of which Muster reads only the metadata; also the base class of all kinds."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class LocalReference(Wire):
    """Reference to an object in the namespace of the referring object."""

    name: str
    """Name of the object."""


class TemplateMeta(Wire):
    """metadata of a template, for the objects that are created from it."""

    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the created objects."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of the created objects."""
    name: str = ""
    """Name of the object; required only for claims."""
    namespace: str = ""
    """Namespace of the object; must be empty or the workload's namespace."""
    finalizers: list[str] = field(default_factory=list)
    """Finalizers of the created objects."""


class Condition(Wire):
    """One condition of an object. All fields except the generation are required."""

    type: str
    """Name of the condition."""
    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""
    last_transition_time: Time
    """Time since which the status holds."""
    reason: str
    """Reason for the status, as one word."""
    message: str
    """Reason for the status, as a sentence."""
    observed_generation: int | None = None
    """Generation of the object's spec to which the condition refers."""


class ReportedCondition(Wire):
    """One condition of an object, such as PodScheduled, that another component has reported."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ListMeta(Wire):
    """metadata of a list: the token of its next page, and the version from which to watch."""

    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class Status(Wire):
    """The API server's answer to a request that failed (meta/v1 Status)."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


def format_time(seconds: float, *, micros: bool = False) -> str:
    """Return a time as RFC 3339 text in UTC, to the second (meta/v1 Time) or the microsecond (MicroTime)."""
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if micros else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def parse_time(text: str | None) -> float | None:
    """Return an RFC 3339 time as seconds since the epoch, and None for None; raise ValueError for other texts."""
    return None if not text else datetime.fromisoformat(text).timestamp()


def readable_time(text: str | None) -> float | None:
    """Parse a time like `parse_time`, but return None for an invalid text, because users may write some times."""
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        return None


JSON = dict[str, Any]

JobTemplate = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "JobTemplateSpec"})]
"""metadata and spec for a batch/v1 Job, as plain JSON."""

Env = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "EnvVar"})]
"""One environment variable: `name`, and `value` or `valueFrom`."""

Resources = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "ResourceRequirements"})]
"""requests, limits and claims of a container."""

Volume = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "Volume"})]
VolumeMount = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "VolumeMount"})]
Affinity = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "Affinity"})]
Toleration = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "Toleration"})]
SchedulingGate = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "PodSchedulingGate"})]
SecurityContext = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "SecurityContext"})]
PodSecurityContext = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "PodSecurityContext"})]

IntOrString = Annotated[int | str, Meta(extra_json_schema={"x-muster-schema": "IntOrString"})]
"""A field's value that is a number, or a string such as a percentage or the name of a port."""
