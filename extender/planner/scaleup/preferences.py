"""Annotations of queues and workloads for autoscalers: `muster.dev/scale-up` and related annotations.

A workload's setting overrides its queue's setting, and a queue's setting overrides its ancestors' settings. The setting
of `root` applies to the whole cluster. Because the queue pays for nodes, the queue's provisioning class and parameters
apply, and the queue's timeout is the upper limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from extender.planner import reasons
from extender.planner.state.declaredgang import scale_up_of
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.muster import safetoevict
from muster.api.volcano.scheduling import PodGroup, Queue
from muster.resources.labels import is_domain
from muster.resources.runtime import parse_duration_s
from muster.volcano.access import lineage

Mode = Literal["none", "condition", "provisioning-request"]
MODES = get_args(Mode)
DEFAULT_CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""The provisioning class of cluster-autoscaler that adds nodes for all pods of a request or for no pod."""
DEFAULT_TIMEOUT_S = 900.0
MAX_VALUE_CHARS = 255
"""Maximum length of a provisioning parameter's value, as in the API."""
EVICTION_KEYS = (names.SAFE_TO_EVICT, names.SCALE_UP)
"""Annotations of queues that determine whether autoscalers may evict the queues' pods."""


@dataclass(frozen=True, slots=True)
class ScaleUpPreference:
    """The way in which a gang requests nodes from autoscalers."""

    mode: Mode = "none"
    provisioning_class: str = DEFAULT_CLASS
    parameters: tuple[tuple[str, str], ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Maximum number of seconds from the creation of a request until it is provisioned."""
    complaint: str = ""
    """Sentence about an invalid annotation; the mode is then `none`."""


NO_SCALE_UP = ScaleUpPreference()
"""The preference of gangs that request no nodes."""


class ScaleUpPreferences:
    """The scale-up preferences of one cycle's gangs; each queue is read once."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self._queues = queues
        self._of_queues: dict[str, tuple[dict[str, str], ScaleUpPreference]] = {}
        """Maps a queue to its annotations, and to the preference of its gangs that have no annotations of their own."""

    def of(self, gang: GangView) -> ScaleUpPreference:
        """Return the scale-up preference of a gang."""
        known = self._of_queues.get(gang.queue)
        if known is None:
            of_queue = annotated(self._queues, gang.queue, names.SCALE_UP_KEYS)
            known = self._of_queues[gang.queue] = of_queue, _read_request(of_queue, {})
        return _read_request(known[0], gang.scale_up) if gang.scale_up else known[1]


def annotated(queues: Mapping[str, Queue], name: str, keys: tuple[str, ...]) -> dict[str, str]:
    """Return a queue's annotations with these keys; missing annotations are taken from the nearest queue above."""
    found: dict[str, str] = {}
    for queue in lineage(name, queues.get):
        annotations = queue.metadata.annotations
        for key in keys:
            if key in annotations:
                found.setdefault(key, annotations[key])
    return found


def safe_to_evict(queues: Mapping[str, Queue], group: PodGroup | None, labels: Mapping[str, str]) -> str:
    """Return the value of the annotation safe-to-evict for pods with these labels; empty for no annotation."""
    if group is None:
        return ""
    annotation = annotated(queues, group.spec.queue or names.DEFAULT_QUEUE, EVICTION_KEYS)
    return evictable_of(annotation, group, labels)


def evictable_of(of_queue: Mapping[str, str], group: PodGroup, labels: Mapping[str, str]) -> str:
    """Return the queue's value of an eviction annotation, or `false` for a gang that requests nodes; empty for none.

    An unknown value counts as none. A gang that requests nodes is protected, because the eviction of one pod by an
    autoscaler would end the whole gang.
    """
    if names.SAFE_TO_EVICT in of_queue:
        value = of_queue[names.SAFE_TO_EVICT]
        return value if value in safetoevict.VALUES else ""
    mode = {**of_queue, **scale_up_of(group.metadata, labels)}.get(names.SCALE_UP, "none")
    return "false" if mode in MODES and mode != "none" else ""


def _read_request(of_queue: Mapping[str, str], own: Mapping[str, str]) -> ScaleUpPreference:
    mode = {**of_queue, **own}.get(names.SCALE_UP, "none")
    if mode not in MODES:
        return ScaleUpPreference(
            complaint=reasons.scaleup.bad_mode(key=names.SCALE_UP, mode=mode, known=", ".join(MODES))
        )
    if mode == "none":
        return NO_SCALE_UP
    for key in (names.SCALE_UP_CLASS, names.SCALE_UP_PARAMETERS):
        if own.get(key, "") not in {"", of_queue.get(key)}:
            return ScaleUpPreference(complaint=reasons.scaleup.not_of_queue(key=key))
    try:
        parameters = _parameters(of_queue.get(names.SCALE_UP_PARAMETERS, ""))
        longest_s = _timeout_s(of_queue, DEFAULT_TIMEOUT_S)
        timeout_s = min(longest_s, _timeout_s(own, longest_s))
        of_class = _class(of_queue.get(names.SCALE_UP_CLASS))
    except ValueError as error:
        return ScaleUpPreference(complaint=str(error))
    return ScaleUpPreference(cast("Mode", mode), of_class, parameters, timeout_s)


def _parameters(text: str) -> tuple[tuple[str, str], ...]:
    """Parse the parameters of a provisioning class. Raises ValueError for values that the API server would reject."""
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, separator, value = part.partition("=")
        if not separator or not key:
            raise ValueError(reasons.scaleup.bad_parameter(key=names.SCALE_UP_PARAMETERS, part=part))
        if len(value) > MAX_VALUE_CHARS:
            where = names.SCALE_UP_PARAMETERS
            words = reasons.scaleup.long_parameter(key=where, name=key, chars=len(value), most=MAX_VALUE_CHARS)
            raise ValueError(words)
        found.append((key, value))
    return tuple(sorted(found))


def _timeout_s(said: Mapping[str, str], default_s: float) -> float:
    text = said.get(names.SCALE_UP_TIMEOUT)
    try:
        return default_s if text is None else parse_duration_s(text)
    except ValueError as error:
        raise ValueError(reasons.scaleup.bad_timeout(key=names.SCALE_UP_TIMEOUT, error=error)) from error


def _class(name: str | None) -> str:
    if name and not is_domain(name):
        raise ValueError(reasons.scaleup.bad_class(key=names.SCALE_UP_CLASS, name=name))
    return name or DEFAULT_CLASS
