"""All objects that the planner reads, as of one moment, and the file format of `muster snapshot`.

The file is gzipped JSON with only the fields that the planner reads. The environment, commands, images, and the names
of secrets and config maps are left out. Messages about containers are left out, too. The annotations of other programs
are left out, because kubectl, for example, stores a copy of the whole manifest in an annotation.
"""

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from extender.planner.memory import PublishedInputs
from extender.planner.state.feed import FEED
from extender.planner.state.state import PlannerState
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import PODS, ContainerStatus, Pod, PodSpec, PodStatus
from muster.api.kubernetes.meta import Object, ObjectMeta, format_time, parse_time
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.configuration import Suspects
from muster.api.muster.node_faults import FaultRules, rules_in
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.muster.usage import PublishedUsage
from muster.api.volcano.batch import Job, TaskSpec
from muster.api.volcano.scheduling import POD_GROUPS
from muster.resources.planned import planned_spec

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=Object)
READ: dict[str, Resource[Any]] = {
    resource.full_name: resource for resource in (*(fed.resource for fed in FEED), PROVISIONING_REQUESTS)
}
"""Maps a kind's name in kubectl to the kind. The kind of the last entry, ProvisioningRequest, is served only if an
autoscaler is installed; its objects are listed, not watched.
"""


@dataclass(slots=True)
class ClusterDump:
    """The objects of a cluster at one moment, by kind, from a file of `muster snapshot` or read from the cluster."""

    taken_at: float
    """Time of the dump, in seconds since the epoch; all ages are relative to this time."""
    scheduler_config: str = ""
    """Text of the planner's configuration file; empty for the default configuration."""
    objects: dict[str, list[Any]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    """Kinds that the user is not allowed to list in the whole cluster; the dump's lists of these kinds are incomplete.
    No cycle can run over a dump with incomplete lists; reports then show only the objects in the dump."""
    pool_configs: dict[str, str] = field(default_factory=dict)
    """Maps a node pool to the configuration of its planner, if this configuration differs from `scheduler_config`."""
    pool: str = DEFAULT_POOL
    """The node pool for which cycles run (`extender.explain.pools`)."""
    suspects: dict[str, Suspects] = field(default_factory=dict)
    """Maps a node pool to its rules for suspect nodes; pools without an entry use the default rules of this version."""
    usage: PublishedUsage | None = None
    """Past usage of queues, which counts towards the queues' budgets; None if unknown."""
    inputs: dict[str, PublishedInputs] = field(default_factory=dict)
    """Maps a node pool to its planner's timing and memory; pools without an entry use the default values."""

    @property
    def rules(self) -> FaultRules:
        """Return the rules for suspect nodes in the planned pool."""
        return self.rules_in(self.pool)

    def rules_in(self, pool: str) -> FaultRules:
        """Return the rules for suspect nodes in a pool."""
        return rules_in(self.suspects, pool)

    @property
    def own_inputs(self) -> PublishedInputs:
        """Timing and memory of the planner that plans the pool."""
        return self.inputs.get(self.pool) or PublishedInputs()

    def set_timing(self, pool: str, **values: float) -> None:
        """Change fields of the timing of a pool's planner."""
        known = self.inputs.get(pool) or PublishedInputs()
        self.inputs[pool] = replace(known, timing=replace(known.timing, **values))

    @property
    def whole(self) -> bool:
        """True if the dump lacks no objects, so that a cycle over the dump decides like the planner in the cluster."""
        return not self.unread

    def objects_of(self, resource: Resource[T]) -> list[T]:
        """Return the list of the objects of one kind."""
        return self.objects.setdefault(resource.full_name, [])

    def add_objects(self, resource: Resource[T], items: Iterable[T]) -> None:
        """Add these objects to the dump's objects of the kind."""
        self.objects_of(resource).extend(items)

    def has(self, resource: Resource[Any]) -> bool:
        """Return True if the dump has the kind; a cluster or an older file may lack it."""
        return resource.full_name in self.objects

    def pod(self, namespace: str, name: str) -> Pod | None:
        """Return the pod of this name with all its fields; the planner's state keeps only some of them."""
        return next(
            (pod for pod in self.objects_of(PODS) if pod.metadata.name == name and pod.metadata.namespace == namespace),
            None,
        )


def state_of(dump: ClusterDump) -> PlannerState:
    """Return the planner's state after it has received all objects of the dump, gangs in order of their creation."""
    state = PlannerState(pool=dump.pool, rules=dump.rules)
    for key, avoided in dump.own_inputs.failures.items():  # before the Placements, which are newer
        state.failures.remember(key, avoided)
    for fed in FEED:
        items: list[Object] = dump.objects_of(fed.resource)
        if fed.resource in (POD_GROUPS, NATIVE_POD_GROUPS):
            items = sorted(items, key=lambda item: item.metadata.creation_timestamp or "")
        for item in items:
            fed.apply(state, None, item)
    return state


READ_DOMAINS = (
    "muster.dev", "volcano.sh", "sla-waiting-time", "scheduling.k8s.io", "scheduling.x-k8s.io", "batch.kubernetes.io",
    "pv.kubernetes.io", "volume.kubernetes.io", "volume.beta.kubernetes.io",
)  # fmt: skip
"""Domains of the annotations that the planner reads; annotations of their sub-domains are read, too."""


def scrubbed(item: ObjectT) -> ObjectT:
    """Return a copy of an object with only the fields that the planner reads."""
    meta = read_metadata(item.metadata)
    if isinstance(item, Pod):
        return replace(item, metadata=meta, spec=planned_spec(item.spec), status=_status(item.status))
    if isinstance(item, Job):
        tasks = [replace(task, template=_template(task)) for task in item.spec.tasks]
        volumes = [replace(volume, volume_claim=None) for volume in item.spec.volumes]
        spec = replace(item.spec, tasks=tasks, plugins={}, volumes=volumes)
        status = item.status
        if status.state.phase in {"Pending", "Running"}:  # the message may be about a container
            status = replace(status, state=replace(status.state, message=""))
        return replace(item, metadata=meta, spec=spec, status=status)
    return replace(item, metadata=meta)


def read_metadata(meta: ObjectMeta) -> ObjectMeta:
    """Return an object's metadata with only the annotations that the planner reads."""
    return replace(meta, annotations={key: value for key, value in meta.annotations.items() if _is_read(key)})


def _is_read(key: str) -> bool:
    domain = key.partition("/")[0]
    return any(domain == known or domain.endswith(f".{known}") for known in READ_DOMAINS)


def _template(task: TaskSpec) -> dict[str, Any]:
    meta = read_metadata(msgspec.convert(task.template.get("metadata") or {}, ObjectMeta))
    spec = planned_spec(msgspec.convert(task.template.get("spec") or {}, PodSpec))
    return {"metadata": msgspec.to_builtins(meta), "spec": msgspec.to_builtins(spec)}


def _status(status: PodStatus) -> PodStatus:
    """Return a pod's status without messages about containers, because these messages contain images and commands."""
    return replace(
        status,
        container_statuses=[_container_status(each) for each in status.container_statuses],
        init_container_statuses=[_container_status(each) for each in status.init_container_statuses],
    )


def _container_status(status: ContainerStatus) -> ContainerStatus:
    waiting = status.state.waiting
    if waiting is None:
        return status
    return replace(status, state=replace(status.state, waiting=replace(waiting, message="")))


FORMAT = "muster-snapshot/v1"
_MAGIC = b"\x1f\x8b"


class _File(msgspec.Struct, rename="camel", kw_only=True):
    format: str
    taken_at: str
    scheduler_config: str = ""
    pool_configs: dict[str, str] = {}
    suspects: dict[str, Suspects] = {}
    usage: PublishedUsage | None = None
    inputs: dict[str, PublishedInputs] = {}
    objects: dict[str, msgspec.Raw]


def save(dump: ClusterDump) -> bytes:
    """Return a dump as a file's content, with only the fields that the planner reads; equal dumps give equal files."""
    objects = {
        resource.full_name: msgspec.json.encode([scrubbed(item) for item in dump.objects_of(resource)])
        for resource in READ.values()
        if dump.has(resource) or resource is not PROVISIONING_REQUESTS
    }
    file = _File(
        format=FORMAT,
        taken_at=format_time(dump.taken_at, micros=True),
        scheduler_config=dump.scheduler_config,
        pool_configs=dump.pool_configs,
        suspects=dump.suspects,
        usage=dump.usage,
        inputs=dump.inputs,
        objects={kind: msgspec.Raw(text) for kind, text in objects.items()},
    )
    return gzip.compress(msgspec.json.encode(file), mtime=0)


def load(content: bytes) -> ClusterDump:
    """Read a dump from a file. Raises ValueError with a description of the error in the file."""
    try:
        text = gzip.decompress(content) if content.startswith(_MAGIC) else content
        file = msgspec.json.decode(text, type=_File)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"this is not a file of `muster snapshot`: {error}") from error
    if file.format != FORMAT:
        raise ValueError(f"the file has format {file.format!r}; this version reads {FORMAT!r}: create it again")
    dump = ClusterDump(parse_time(file.taken_at) or 0.0, file.scheduler_config)
    dump.pool_configs, dump.suspects, dump.usage = file.pool_configs, file.suspects, file.usage
    dump.inputs = file.inputs
    for kind, raw in file.objects.items():
        if kind in READ:  # a later version of Muster wrote the unknown kind
            items = msgspec.json.decode(raw, type=list[READ[kind].type])  # type: ignore[misc]  # chosen at run time
            dump.add_objects(READ[kind], items)
    return dump
