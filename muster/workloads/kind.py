"""Rows of the table of workload kinds, each of which describes one kind, and access to a workload's pod templates."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.unchecked import value_at
from muster.workloads.adapter import Adapter
from muster.workloads.sample import JSON, SamplePod

Path = tuple[str, ...]
"""Path to values in a manifest: field names from the outermost inwards; `*` matches each element of a list."""
Place = tuple[str | int, ...]
"""Path to one value in a manifest: field names and indexes of list elements."""

TEMPLATE: Path = ("spec", "template")


@dataclass(frozen=True, slots=True)
class PodContext:
    """The pod for which an adapter is created: its metadata, its spec, and the pod as JSON.

    The fields are empty before a pod exists.
    """

    meta: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Description of the ranks of a kind's pods."""

    adapter: Callable[[Any, PodContext], Adapter | None]
    """Function that returns the adapter for a pod of this `controller`; None for a controller of another kind."""
    controller: Resource[Any] | None
    """Kind of the pods' controller, which must be read before the adapter is created: the kind itself, or a kind that
    it creates. None stands for pods without an owner."""
    name_label: str = ""
    """Label of pods with the workload's name, if an object of another kind controls the pods."""
    index: str = ""
    """Label of pods with their index in the controller; in older clusters, an annotation has this key."""
    recommended_as: str = ""
    """The kind's name with its article, such as `a JobSet`, in messages that recommend the kind; empty for a kind that
    is not recommended."""


@dataclass(frozen=True, slots=True)
class GangRules:
    """Rules for the gang of an owner's pods, in addition to labels and annotations.

    The functions in these rules take the owner as argument.
    """

    at_once: Callable[[Any], int] | None = None
    """Maximum number of pods at a time, at least 1. A gang never needs more members, and a gang with a framework needs
    all of them."""
    left: Callable[[Any], int | None] | None = None
    """Number of members that have not ended for good; None if the owner does not define this number."""
    minimum: Callable[[Any], int | None] | None = None
    """Number of pods that must start together by the owner's own fields; None if no field defines it."""
    level: Callable[[Any], str] | None = None
    """Node label that must have the same value for all pods, according to the owner's fields; "" without such a
    label."""
    wants_none: Callable[[Any], bool] | None = None
    """True if the owner is scaled to zero or suspended. The owner's gang has then ended, until the owner wants pods
    again."""
    is_over: Callable[[Any], bool] | None = None
    """True if the owner has ended with success or failure; None for a kind whose objects run until they are deleted."""
    size_of_ended: Callable[[Any, Iterable[Pod]], int | None] | None = None
    """Size with which the owner is complete after its elastic world has ended with these pods; None if the size must
    not change."""
    failure: Callable[[Any], str] | None = None
    """Reason for the owner's failure, as text; "" if the owner has not failed."""
    service: Callable[[Any], JSON] | None = None
    """Headless Service that Muster creates for the pods; None if the owner's controller or the user creates this
    Service."""


@dataclass(frozen=True, slots=True)
class FrameworkWorld:
    """World of a framework whose pods belong to several controllers: parts of one workload that form one gang."""

    group: Callable[[ObjectMeta], str]
    """Function that returns the name of the PodGroup of a pod with this metadata; "" for pods of other kinds."""
    rules: GangRules = field(default_factory=GangRules)
    """Rules for the end of the gang; the functions of the rules take the workload as argument."""
    uid_label: str = ""
    """Label of pods with the workload's UID; empty without such a label."""
    part_label: str = ""
    """Label of pods that distinguishes the parts of a workload, even if they form one gang."""


class Addition(NamedTuple):
    """A field that admission adds to a workload, with the reason and the field on which it depends."""

    place: Place
    value: Any
    reason: str
    source: str


def _nothing(*_: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class Admission:
    """Admission rules of a kind, in addition to copying labels to templates and checking the templates.

    `additions` and `warnings` get manifests that have not been validated yet. The templates in the manifests are for
    pods that Muster will place.
    """

    own_queue: bool = False
    """True if admission writes the namespace's queue to the workload itself, as one of the `additions`."""
    additions: Callable[[JSON], Iterable[Addition]] = _nothing
    """Fields that admission adds to the workload, in addition to labels."""
    warnings: Callable[[JSON, Collection[Place]], Iterable[str]] = _nothing
    """Function that returns warnings to the user; its second argument has the places of the templates."""
    mistakes: Callable[[JSON, Mapping[Place, str]], Iterable[FieldError]] = _nothing
    """Function that returns errors that would prevent the workload's gangs from starting, and that no adapter can
    detect.

    The second argument of the function maps places of templates to a label or annotation. The label or annotation
    requires that the template's pods start together."""
    copied: Path = ()
    """Place of the metadata that the kind's controller copies to all objects that it creates; empty without such a
    place."""
    count: Path = ()
    """Place of the field with the number of pods at a time, 1 if left out; empty if no single field has this number."""
    service_name: Path = ()
    """Place of the field with the name of the headless Service that users create; empty for kinds without such a
    Service."""


class Samples(Protocol):
    """Function that yields a manifest's pods: the first pod of each shape or, with `every`, all that run at once."""

    def __call__(self, workload: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
        """Yield sample pods, each with its owner if the manifest does not contain the owner."""
        ...


def _no(_: JSON) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Verbs:
    """Changes that a user can make to an existing workload by `muster hold` and similar commands (`workloads.verbs`).

    The functions in this row get the workload as read, and return merge patches.
    """

    stop: Path = ()
    """Path of the field that is true while the workload is held."""
    commands: tuple[str, str] | None = None
    """Actions of the Commands that hold and release the workload, for a kind without the field `stop`."""
    count: Path = ()
    """Path of the field that is 0 while the workload is held, for a kind without `stop` and `commands`."""
    group_size: Path = ()
    """Path of the number of pods of each replica, 1 if left out; empty if each replica is one pod."""
    claims: Path = ()
    """Path of a field. If the field's value is `Delete`, the workload's volumes are deleted when `count` becomes 0."""
    held: Callable[[JSON], bool] = _no
    """Function that returns True if the workload is held in another way than by `stop` and `count`."""
    stopped: Callable[[JSON], bool] = _no
    """Function that returns True if the workload is held and its pods have ended."""
    ended: Callable[[JSON], bool] = _no
    """Function that returns True if the workload has ended for good."""
    sizes: tuple[Path, ...] = ()
    """Paths of fields with the world size, which must not change while pods exist."""
    resized: Callable[[JSON, int, str], JSON] | None = None
    """Function that returns the patch for a number of pods of a task (or of the only task). The function raises a
    ValueError with the reason if this is impossible."""
    world_tasks: Callable[[JSON], Collection[str]] = _nothing
    """Function that returns the tasks whose pods receive the number of pods although they have no framework label."""
    scales: bool = False
    """True if `resized` changes only the number of worlds, or of members of an elastic world, and therefore re-creates
    no pod."""
    classes: tuple[Path, ...] = ()
    """Paths of fields with the PriorityClass. For a kind without `count`, a change also applies to waiting pods."""
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Maps a verb that the kind does not support to the reason and an alternative."""


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One kind of workload, as used by admission, the controller and `muster shape`."""

    resource: Resource[Any]
    """The kind in the API server, with the type that decodes its objects."""
    templates: tuple[Path, ...] = (TEMPLATE,)
    """Paths of the kind's pod templates."""
    labelled: bool = False
    """True if admission copies the workload's labels to its templates; this holds for kinds that users write and whose
    pods may run on any node."""
    one_template: bool = False
    """True if all pods of a workload are created from one template."""
    grouped: bool = False
    """True if Kubernetes may create a native PodGroup for each workload of the kind, even if the workload does not
    request one."""
    maker: bool = False
    """True if the kind creates workloads on a schedule. Events about the gangs of these workloads are then not recorded
    for the creating object."""
    names_gangs: bool = False
    """True if a gang is shown under the name of its workload, because users write this kind."""
    remade_s: float = 0.0
    """Maximum time in seconds after which the kind's controller re-creates an evicted pod."""
    one_node_each: bool = False
    """True if each pod belongs to a certain node, so that the planner need not choose one."""
    ranks: Ranks | None = None
    """Description of the ranks of the pods; None if the pods have no ranks, or get them from another kind."""
    no_ranks: str = ""
    """Reason why pods of this kind have no ranks, as the beginning of a sentence."""
    gang: GangRules | None = None
    """Rules for the gangs of a workload of this kind; None if only the labels of the pods themselves determine the
    gang."""
    world: FrameworkWorld | None = None
    """Pods that form one world of a framework; None if the world is the pods of one controller."""
    admission: Admission = Admission()
    """Additional rules for the admission of the kind."""
    samples: Samples | None = None
    """Function that returns the pods that the controller would create for a manifest; None for a kind whose pods are
    not shown."""
    verbs: Verbs | None = None
    """Changes that a user can make to an existing workload; None for a kind that other objects create."""


def replicated(templates: Iterable[Path], *, scales: bool = False, claims: Path = (), group_size: Path = ()) -> Verbs:
    """Return the `muster` verbs of a kind that scales by `spec.replicas` and creates its pods from these templates.

    `claims` is the path of the field with the policy for a StatefulSet's volumes, if the kind has this field.
    `group_size` is the path of the field with the number of pods in each replica.
    """
    return Verbs(
        claims=(*claims, "persistentVolumeClaimRetentionPolicy", "whenScaled") if claims else (),
        count=("spec", "replicas"),
        group_size=group_size,
        stopped=lambda workload: not value_at(workload, ("status", "replicas")),
        sizes=(("spec", "replicas"),),
        resized=lambda _workload, size, _task: {"spec": {"replicas": size}},
        scales=scales,
        classes=tuple((*path, "spec", "priorityClassName") for path in templates),
    )


def again(why: str) -> str:
    """Return why a kind does not support a verb, with the advice to delete and re-create the workload."""
    return f"{why}: delete it, and create it again with the other value; it loses its place in its queue"


def dotted(place: Place) -> str:
    """Return the path of a place in a manifest, as messages show it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def pod_templates(workload: Any, paths: Iterable[Path]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the templates at these paths, with their places; malformed templates are left out."""
    for path in paths:
        yield from _below(workload, path, ())


def with_templates(workload: Any, paths: Iterable[Path]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the workload itself, and its templates at these paths, with their places."""
    yield (), workload
    yield from pod_templates(workload, paths)


def _below(node: Any, path: Path, place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    if not path:
        if isinstance(node, Mapping):
            yield place, node
    elif path[0] == "*":
        for index, element in enumerate(node if isinstance(node, list) else ()):
            yield from _below(element, path[1:], (*place, index))
    elif isinstance(node, Mapping) and node.get(path[0]) is not None:
        yield from _below(node[path[0]], path[1:], (*place, path[0]))
