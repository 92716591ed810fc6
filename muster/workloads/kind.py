"""What the table says of one kind of workload."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubernetes.core import PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.workloads.adapter import Adapter
from muster.workloads.sample import JSON, SamplePod
from muster.workloads.templates import TEMPLATE, Path


@dataclass(frozen=True, slots=True)
class AskedPod:
    """The pod whose owner is asked: its metadata and spec, and the document itself. Empty while there is no pod yet."""

    meta: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ranks:
    """How the pods of a kind learn their place in a group."""

    adapter: Callable[[Any, AskedPod], Adapter | None]
    """Who answers for a pod of this `controller`; None where the controller is not one of this kind's."""
    controller: Resource[Any] | None
    """What controls the pods and must be read first: the kind itself, or what it makes. None: pods without an owner."""
    name_label: str = ""
    """The label of pods that has the workload's name, where something else controls them."""
    called: str = ""
    """What a message recommends, with the article: `a JobSet`. Empty where it does not."""


@dataclass(frozen=True, slots=True)
class GangRules:
    """What an owner says about the gang of its pods, beside its labels and annotations. The functions get the owner."""

    at_once: Callable[[Any], int] | None = None
    """How many pods it has at a time, at least 1: a gang needs no more of them, and that of a framework all."""
    wants_none: Callable[[Any], bool] | None = None
    """Whether it is scaled to zero or suspended: its gang is over until it wants pods again."""
    is_over: Callable[[Any], bool] | None = None
    """Whether it has ended, one way or the other; None for a kind that goes on until it is deleted."""
    service: Callable[[Any], JSON] | None = None
    """The headless Service that Muster makes for its pods; None where its own controller or its user does."""


@dataclass(frozen=True, slots=True)
class World:
    """The world of a framework where it is not the pods of one controller: parts of a workload that are one gang."""

    group: Callable[[ObjectMeta], str]
    """The name of the PodGroup of the world that a pod with this metadata is in; "" for pods of other kinds."""
    rules: GangRules = field(default_factory=GangRules)
    """When such a gang is over; the functions get the workload."""


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One kind of workload, as admission, the controller and `muster shape` know it."""

    resource: Resource[Any]
    """Where it lives in the API server, and what reads it."""
    templates: tuple[Path, ...] = (TEMPLATE,)
    """Where its pod templates stand, see `templates`."""
    labelled: bool = False
    """Whether admission brings its labels to its templates: users write it, and each pod waits for some node."""
    one_node_each: bool = False
    """Whether each of its pods belongs to one node, so that nobody has to find a place for it."""
    ranks: Ranks | None = None
    """How its pods learn their place; None where they have none, or where they are another kind's."""
    no_ranks: str = ""
    """Why its pods have none, as the beginning of a sentence."""
    gang: GangRules | None = None
    """What it says of the gang of its pods, or of its parts; None where the pods must say it all themselves."""
    world: World | None = None
    """Which of its pods are one world of a framework; None where those of one controller are."""
    mistakes: Callable[[JSON], list[FieldError]] | None = None
    """What keeps pods of a framework from starting, as far as only the workload itself says it; not their adapter."""
    samples: Callable[[JSON], Iterator[SamplePod]] | None = None
    """The first pods of such a manifest, as its controller makes them: one of each shape. None where none are shown."""
