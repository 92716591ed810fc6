"""The rows of the table: the description of one kind of workload, and the pod templates in a workload of that kind."""

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
"""Names of members, from the outside in; `*` matches each element of a list."""
Place = tuple[str | int, ...]
"""Names of members and indexes of elements."""

TEMPLATE: Path = ("spec", "template")


@dataclass(frozen=True, slots=True)
class PodContext:
    """The pod for which an adapter is made: metadata, spec and the document itself. Empty before there is a pod."""

    meta: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a kind's pods."""

    adapter: Callable[[Any, PodContext], Adapter | None]
    """The adapter for a pod of this `controller`; None if the controller is not one of this kind's."""
    controller: Resource[Any] | None
    """The controller of the pods, which is read first: the kind itself, or a kind that it makes. None: no owner."""
    name_label: str = ""
    """The label of pods that has the workload's name, if another kind controls them."""
    index: str = ""
    """The label of pods with their index in the controller; older clusters have it as an annotation."""
    recommended_as: str = ""
    """The kind in a message that recommends it, with the article: `a JobSet`. Empty: not recommended."""


@dataclass(frozen=True, slots=True)
class GangRules:
    """The rules for the gang of an owner's pods, in addition to labels and annotations. The functions get the owner."""

    at_once: Callable[[Any], int] | None = None
    """The most pods at a time, at least 1: a gang never needs more, and the gang of a framework needs all."""
    left: Callable[[Any], int | None] | None = None
    """The number of members that have not ended for good; None if the owner does not define it."""
    minimum: Callable[[Any], int | None] | None = None
    """The pods that must start together by the owner's own fields; None if no field defines it."""
    level: Callable[[Any], str] | None = None
    """The node label by which the owner's fields keep its pods together; "" if they name none."""
    wants_none: Callable[[Any], bool] | None = None
    """True if the owner is scaled to zero or suspended: its gang is over until it wants pods again."""
    is_over: Callable[[Any], bool] | None = None
    """True if the owner has ended, one way or the other; None for a kind that runs until it is deleted."""
    size_of_ended: Callable[[Any, Iterable[Pod]], int | None] | None = None
    """The size with which the owner of these pods is complete after the end of its elastic world; None: no other size.
    """
    failure: Callable[[Any], str] | None = None
    """The reason for the owner's failure, as text; "" if it has not failed."""
    service: Callable[[Any], JSON] | None = None
    """The headless Service that Muster makes for its pods; None if its own controller or its user makes one."""


@dataclass(frozen=True, slots=True)
class FrameworkWorld:
    """The world of a framework if it is not the pods of one controller: parts of a workload that are one gang."""

    group: Callable[[ObjectMeta], str]
    """The name of the PodGroup of a pod with this metadata; "" for pods of other kinds."""
    rules: GangRules = field(default_factory=GangRules)
    """The rules for the end of such a gang; the functions get the workload."""
    uid_label: str = ""
    """The label of pods that has the workload's UID; empty if they have none."""
    part_label: str = ""
    """The label of pods that distinguishes the parts of a workload, also where they are one gang."""


class Addition(NamedTuple):
    """A field that admission adds to a workload, with its reason and the field that it follows from."""

    place: Place
    value: Any
    reason: str
    source: str


def _nothing(*_: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class Admission:
    """Special admission of a kind, in addition to copying labels to templates and checking these.

    `additions` and `warnings` get manifests whose shape was not checked, with templates whose pods will be Muster's.
    """

    own_queue: bool = False
    """True if the workload itself gets the queue of its namespace, as one of its `additions`."""
    additions: Callable[[JSON], Iterable[Addition]] = _nothing
    """Fields that it gets in addition to labels."""
    warnings: Callable[[JSON, Collection[Place]], Iterable[str]] = _nothing
    """Warnings to its user; the second argument has the places of the templates."""
    mistakes: Callable[[JSON, Mapping[Place, str]], Iterable[FieldError]] = _nothing
    """Mistakes of the workload that keep gangs from starting, and that no adapter can see.

    The second argument has the templates of pods that start together, with the label or annotation that requires it.
    """
    copied: Path = ()
    """The place whose metadata its controller copies to all objects that it makes; empty if there is none."""
    count: Path = ()
    """The place of the number of its pods at a time, 1 if left out; empty if no single field has it."""
    service_name: Path = ()
    """The place of the name of the headless Service that its user makes; empty if they make none."""


class Samples(Protocol):
    """The pods of a manifest: the first one of each shape or, with `every`, all that run at once."""

    def __call__(self, workload: JSON, /, *, every: bool = False) -> Iterator[SamplePod]:
        """Yield the pods, each with its owner if that is an object that the manifest does not contain."""
        ...


def _no(_: JSON) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Verbs:
    """Changes that a user can make to a workload that exists, by `muster hold` and its like (`workloads.verbs`).

    The functions get the workload as it was read, and return merge patches.
    """

    stop: Path = ()
    """The member that is true while the workload is held."""
    commands: tuple[str, str] | None = None
    """The Commands that hold it and release it, if no member does."""
    count: Path = ()
    """The member that is 0 while it is held, if neither a member nor a Command holds it."""
    claims: Path = ()
    """The member that is `Delete` if its volumes are deleted while `count` is 0."""
    held: Callable[[JSON], bool] = _no
    """True if it is held by something else than `stop` and `count`."""
    stopped: Callable[[JSON], bool] = _no
    """True if it is held and its pods have ended."""
    ended: Callable[[JSON], bool] = _no
    """True if it has ended for good."""
    sizes: tuple[Path, ...] = ()
    """The members with the number of pods of a world, which are fixed while it has some."""
    resized: Callable[[JSON, int, str], JSON] | None = None
    """The patch for this number of pods, of this task or of the only one; ValueError has the reason if there is none.
    """
    world_tasks: Callable[[JSON], Collection[str]] = _nothing
    """The tasks whose pods know their number although they have no label of a framework."""
    scales: bool = False
    """True if `resized` changes the number of worlds, or of members of an elastic one: no pod is created again."""
    classes: tuple[Path, ...] = ()
    """The members with the PriorityClass; waiting pods of a kind without `count` follow by themselves."""
    instead: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Verb -> why the kind does not have it, and the way that works."""


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One kind of workload, as admission, the controller and `muster shape` know it."""

    resource: Resource[Any]
    """Its place in the API server, and the type that reads it."""
    templates: tuple[Path, ...] = (TEMPLATE,)
    """The paths of its pod templates."""
    labelled: bool = False
    """True if admission copies its labels to its templates: users write it, and its pods run on any node."""
    one_template: bool = False
    """True if all of its pods are made from one template."""
    grouped: bool = False
    """True if Kubernetes may create a native PodGroup for each of them, even without a request."""
    maker: bool = False
    """True if it makes workloads on a schedule, and gets the messages about their gangs."""
    names_gangs: bool = False
    """True if its workloads give their names to their gangs, because users write this kind."""
    remade_s: float = 0.0
    """The longest time until its controller makes a pod again that was evicted."""
    one_node_each: bool = False
    """True if each of its pods belongs to a certain node, so no node must be chosen for it."""
    ranks: Ranks | None = None
    """The ranks of its pods; None if they have none or get them from another kind."""
    no_ranks: str = ""
    """The reason for which its pods have no ranks, as the beginning of a sentence."""
    gang: GangRules | None = None
    """The rules for the gang of its pods, or of its parts; None if only the pods' own labels count."""
    world: FrameworkWorld | None = None
    """Pods that form one world of a framework; None if the world is the pods of one controller."""
    admission: Admission = Admission()
    """Its special admission."""
    samples: Samples | None = None
    """The pods of such a manifest, as its controller makes them. None: none are shown."""
    verbs: Verbs | None = None
    """Changes that its user can make later; None for a kind whose objects others make."""


def replicated(templates: Iterable[Path], *, scales: bool = False, claims: Path = ()) -> Verbs:
    """Return the verbs of a kind with `spec.replicas`, whose pods follow these templates.

    `claims` is the member that has a policy for the volumes of a StatefulSet, if any.
    """
    return Verbs(
        claims=(*claims, "persistentVolumeClaimRetentionPolicy", "whenScaled") if claims else (),
        count=("spec", "replicas"),
        stopped=lambda workload: not value_at(workload, ("status", "replicas")),
        sizes=(("spec", "replicas"),),
        resized=lambda _workload, size, _task: {"spec": {"replicas": size}},
        scales=scales,
        classes=tuple((*path, "spec", "priorityClassName") for path in templates),
    )


def again(why: str) -> str:
    """Return why a kind does not support a verb, with the alternative for fields that cannot change."""
    return f"{why}: delete it, and create it again with the other value; it loses its place in its queue"


def dotted(place: Place) -> str:
    """Return the path of a place in a document, as messages have it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def pod_templates(workload: Any, paths: Iterable[Path]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the templates at these paths, with their places. The API server refuses values of another shape."""
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
