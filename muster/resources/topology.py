"""Topology requests of workloads: annotations, and Volcano's networkTopology. Pure.

Three groups of annotations have the same meaning on a pod template or a pod: Muster's own (`muster.dev/topology-…`),
Kueue's (`kueue.x-k8s.io/podset-…`) and KAI-Scheduler's (`kai.scheduler/topology-…`). If levels in two of these groups
contradict each other, Muster's own annotation applies. `muster.dev/topology` names the topology for all levels. A
*level* is a node label key, the tierName of HyperNodes, or a tier's number. A malformed annotation has no effect;
admission rejects it, because `mistakes` reports it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.limits import PODS, whole_number
from muster.api.volcano.scheduling import NetworkTopology

HYPER_NODES = "hypernodes"
"""Name of the topology that HyperNodes describe."""
LAYERS = 3
"""Maximum number of nested layers of slices, as in Kueue."""
Level = str | int
"""A level of a topology: a label key, a tierName, or a number, which stands for the tier with this number and all lower
tiers."""
_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Nearness:
    """A request that pods are placed in one domain of the topology."""

    topology: str = ""
    """Name of the topology; if empty, the topology that has the requested level."""
    required: Level | None = None
    """Level of the domain that must contain all pods; the pods wait until there is such a domain. A domain of a lower
    level is also accepted."""
    preferred: Level | None = None
    """Level at which the pods are close enough to each other; None if the pods should be as close as possible."""
    anywhere: bool = False
    """True for Kueue's mode "unconstrained": any nodes are allowed, preferably in domains with little free capacity."""

    def __bool__(self) -> bool:
        return self.required is not None or self.preferred is not None or self.anywhere or bool(self.topology)


NOTHING = Nearness()


@dataclass(frozen=True, slots=True)
class Slices:
    """A request that each group of `size` consecutive ranks is placed in one domain."""

    size: int
    near: Nearness


@dataclass(frozen=True, slots=True)
class PodTopology:
    """The topology requests of a pod template, or of a pod."""

    near: Nearness = NOTHING
    slices: tuple[Slices, ...] = ()
    """Nested slices, outermost first; the size of each slice divides the previous size."""
    group: str = ""
    """Name of a group of pod sets. Pod sets with the same group, such as a leader and its workers, are placed in one
    domain together."""
    kind: str = ""
    """Name that distinguishes pods in one pod set of the gang: the replicated job of a JobSet."""


class _Layer(msgspec.Struct, forbid_unknown_fields=True):
    topology: str
    size: int


_MOST_CHARS = 8_192
"""Length up to which parsed annotations are cached and slice layers are parsed; the limit exists because each event of
a pod parses them."""
_KEYS = frozenset((*names.TOPOLOGY_KEYS, *names.KUEUE_TOPOLOGY_KEYS, *names.KAI_NEAR_KEYS))


def of_pods(annotations: Mapping[str, str], labels: Mapping[str, str], parts: Iterable[str] = ()) -> PodTopology | None:
    """Return the topology requests in these annotations of a pod or template; None if there are none.

    `parts` are the labels that distinguish the pods within one pod set.
    """
    if _KEYS.isdisjoint(annotations):
        return None
    given = tuple(sorted((key, annotations[key]) for key in _KEYS & annotations.keys()))
    read = _of_pods if sum(len(text) for _, text in given) <= _MOST_CHARS else _of_pods.__wrapped__
    return read(given, next((labels[key] for key in parts if key in labels), ""))


@lru_cache(maxsize=4096)
def _of_pods(given: tuple[tuple[str, str], ...], kind: str) -> PodTopology | None:
    annotations = dict(given)
    required, preferred = (annotations.get(key) or None for key in names.KUEUE_NEAR_KEYS)
    kueue = Nearness("", required, preferred, annotations.get(names.KUEUE_UNCONSTRAINED) == "true")
    near = _with_kueues(of_gang(annotations), kueue)
    group = next((annotations[key] for key in names.TOPOLOGY_GROUP if annotations.get(key)), "")
    found = PodTopology(near, _slices(annotations, near.topology), group, kind)
    return found if found.near or found.slices or found.group else None


def _with_kueues(own: Nearness, kueue: Nearness) -> Nearness:
    """Add requests from Kueue's annotations where Muster's annotations are missing, so that no requirement is lost."""
    if own.required is not None:
        return own
    if own.preferred is not None:
        return replace(own, required=kueue.required)
    return replace(kueue, topology=own.topology)


def of_gang(annotations: Mapping[str, str]) -> Nearness:
    """Return the requests in the annotations `muster.dev/topology…` of a gang's PodGroup, or of pods.

    KAI-Scheduler's annotations of the same meaning are used if Muster's are missing.
    """
    topology = annotations.get(names.TOPOLOGY, "")
    keys = zip(names.TOPOLOGY_NEAR_KEYS, names.KAI_NEAR_KEYS, strict=True)
    required, preferred = (_level(topology, annotations.get(own) or annotations.get(kai, "")) for own, kai in keys)
    return Nearness(topology, required, preferred)


def of_network(topology: NetworkTopology | None) -> Nearness:
    """Return the requests in Volcano's networkTopology: as close as possible and, if hard, within the allowed tier.

    As in Volcano, "hard" without a tier means the same as "soft": any tier suffices, up to the whole cluster.
    """
    if topology is None:
        return NOTHING
    highest: Level | None = topology.highest_tier_name or topology.highest_tier_allowed
    return Nearness(HYPER_NODES, highest if topology.mode == "hard" else None)


def mistakes(annotations: Mapping[str, str], path: str, pods: int | None = None) -> Iterator[FieldError]:
    """Yield the errors in these annotations, at this field path; `pods` is the number of annotated pods, if known."""
    if _KEYS.isdisjoint(annotations):
        return
    yield from _wrong_levels(annotations, path)
    modes = [key for key in names.KUEUE_TOPOLOGY_MODES if key in annotations]
    for key in modes[1:]:
        yield FieldError(f"{path}[{key}]", f"only one of {', '.join(modes)} may be set", annotations[key])
    anywhere = annotations.get(names.KUEUE_UNCONSTRAINED)
    if anywhere not in {None, "true", "false"}:
        yield FieldError(f"{path}[{names.KUEUE_UNCONSTRAINED}]", "must be true or false", anywhere)
    yield from _wrong_slices(annotations, path, pods)
    yield from _wrong_group(annotations, path)


def _wrong_levels(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    topology = annotations.get(names.TOPOLOGY)
    if topology is not None and not _NAME.fullmatch(topology):
        message = "must be the name of a topology: default, hypernodes, or one that is configured"
        yield FieldError(f"{path}[{names.TOPOLOGY}]", message, topology)
    for key in (*names.TOPOLOGY_LEVEL_KEYS, *names.KUEUE_TOPOLOGY_LEVEL_KEYS, *names.KAI_NEAR_KEYS):
        value = annotations.get(key)
        if value is not None and not (_KEY.fullmatch(value) or (topology == HYPER_NODES and value)):
            message = "must be the key of a node label, such as topology.kubernetes.io/zone, that is a topology's level"
            yield FieldError(f"{path}[{key}]", message, value)


def _wrong_slices(annotations: Mapping[str, str], path: str, pods: int | None) -> Iterator[FieldError]:
    for level, size in (names.TOPOLOGY_SLICE_KEYS, names.KUEUE_SLICE_KEYS):
        one, other = (level, size) if level in annotations else (size, level)
        if one in annotations and other not in annotations:
            yield FieldError(f"{path}[{other}]", f"must be set if {one} is set", reason="Required")
        number = annotations.get(size)
        if number is not None and not 0 < (whole_number(number, PODS.value) or 0) <= (pods or PODS.value):
            yield FieldError(f"{path}[{size}]", f"must be a number from 1 to {pods or PODS.value}", number)
    layers = annotations.get(names.KUEUE_SLICE_LAYERS)
    if layers is None:
        return
    where = f"{path}[{names.KUEUE_SLICE_LAYERS}]"
    for key in names.KUEUE_SLICE_KEYS:
        if key in annotations:
            yield FieldError(
                f"{path}[{key}]", f"must not be set together with {names.KUEUE_SLICE_LAYERS}", annotations[key]
            )
    if wrong := _wrong_layers(layers, pods):
        yield FieldError(where, wrong, layers)


def _wrong_layers(text: str, pods: int | None) -> str:
    try:
        layers = msgspec.json.decode(text[:_MOST_CHARS], type=list[_Layer])
    except msgspec.DecodeError as error:
        return f'must be a list such as [{{"topology": "example.com/rack", "size": 8}}]: {error}'
    if not 0 < len(layers) <= LAYERS:
        return f"must have from 1 to {LAYERS} layers"
    before = pods
    for layer in layers:
        if not _KEY.fullmatch(layer.topology):
            return f"topology {layer.topology!r} must be the key of a node label"
        if not 0 < layer.size <= PODS.value:
            return f"size {layer.size} must be from 1 to {PODS.value}"
        if before is not None and (before < layer.size or (layer is not layers[0] and before % layer.size)):
            return f"size {layer.size} must divide {before}, the size of the layer around it"
        before = layer.size
    return ""


def _wrong_group(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    for key in names.TOPOLOGY_GROUP:
        group = annotations.get(key)
        if group is None:
            continue
        if not group or group.isdigit():
            yield FieldError(f"{path}[{key}]", "must be a name that is not a number", group)
        if not any(level in annotations for level in (*names.TOPOLOGY_NEAR_KEYS, *names.KUEUE_NEAR_KEYS)):
            message = f"needs a level: one of {', '.join((*names.TOPOLOGY_NEAR_KEYS, *names.KUEUE_NEAR_KEYS))}"
            yield FieldError(f"{path}[{key}]", message, group)
        slices = [slice_key for slice_key in names.SLICE_KEYS if slice_key in annotations]
        if slices:
            yield FieldError(f"{path}[{key}]", f"must not be set together with {', '.join(slices)}", group)


def _slices(annotations: Mapping[str, str], topology: str) -> tuple[Slices, ...]:
    if (text := annotations.get(names.KUEUE_SLICE_LAYERS)) is not None and not _wrong_layers(text, None):
        layers = msgspec.json.decode(text, type=list[_Layer])
        return tuple(Slices(layer.size, Nearness(topology, layer.topology)) for layer in layers)
    for level_key, size_key in (names.TOPOLOGY_SLICE_KEYS, names.KUEUE_SLICE_KEYS):
        size = whole_number(annotations.get(size_key), PODS.value)
        level = _level(topology, annotations.get(level_key, ""))
        if size and level is not None:
            return (Slices(size, Nearness(topology, level)),)
    return ()


def _level(topology: str, text: str) -> Level | None:
    number = whole_number(text) if topology == HYPER_NODES else None
    return number if number is not None else text or None
