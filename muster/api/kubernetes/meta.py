"""Object metadata of meta/v1, RFC 3339 times, and parts of objects that stay exactly as written."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""A time as RFC 3339 text."""

Duration = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$"})
]
"""A duration as Go writes it, e.g. `1h30m`; the API server refuses others, which typed clients could not read."""


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
        """Return the reference to an object of this kind; `how` has the last two fields."""
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
        """The owner that manages this object; None without one."""
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
    """A label selector; all parts must match."""

    match_labels: dict[str, str] = field(default_factory=dict)
    """Labels and their required values."""
    match_expressions: list[LabelSelectorRequirement] = field(default_factory=list)
    """Expressions that must all hold."""


class Object(Wire):
    """Any object of which only the metadata matters; also the base of all kinds."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class LocalReference(Wire):
    """An object in the same namespace."""

    name: str
    """Name of the object."""


class TemplateMeta(Wire):
    """metadata of a template, for the objects that are created from it."""

    labels: dict[str, str] = field(default_factory=dict)
    """Labels."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations."""
    name: str = ""
    """Name of the object; only claims need a name."""
    namespace: str = ""
    """Namespace; must be empty or the workload's."""
    finalizers: list[str] = field(default_factory=list)
    """Finalizers."""


class Condition(Wire):
    """One condition of an object. All fields except the generation are required."""

    type: str
    """Name of the condition."""
    status: Literal["True", "False", "Unknown"]
    """True, False or Unknown."""
    last_transition_time: Time
    """Time since which the status holds."""
    reason: str
    """Reason, as one word."""
    message: str
    """Reason, as a sentence."""
    observed_generation: int | None = None
    """Generation of the spec that was observed."""


class ReportedCondition(Wire):
    """One condition that another component reports of an object, e.g. PodScheduled."""

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
    """Return seconds since the epoch as RFC 3339 in UTC, to the second (meta/v1 Time) or microsecond (MicroTime)."""
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if micros else "%Y-%m-%dT%H:%M:%SZ"
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def parse_time(text: str | None) -> float | None:
    """Return RFC 3339 as seconds since the epoch; None stays None. Raises ValueError for any other text."""
    return None if not text else datetime.fromisoformat(text).timestamp()


def readable_time(text: str | None) -> float | None:
    """Return a time like `parse_time`, but None for unreadable text, because any user may write some objects."""
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        return None


JSON = dict[str, Any]

JobTemplate = Annotated[JSON, Meta(extra_json_schema={"x-muster-schema": "JobTemplateSpec"})]
"""metadata and spec of a batch/v1 Job."""

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
"""A number, or a text that stands for a number or a name."""
