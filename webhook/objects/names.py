"""Checks of names in objects: their syntax, the named queue or framework, and keys under `muster.dev/` without effect.

The API server applies the same syntax rules, but checks some names too late. Examples are a Job's name, which becomes
part of its pods' names, and names in Muster's configuration.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import chain, islice
from typing import Any

from muster.api import names
from muster.api.fields import FieldError, brief
from muster.api.limits import SECONDS
from muster.resources.runtime import declared_s
from muster.runtime.framework import Framework
from muster.runtime.plugins.mpi_objects import HOSTFILE_ANNOTATION
from muster.runtime.settings import KEYS
from webhook.lookup import NamespaceQueues
from webhook.objects.foreign import without_effect
from webhook.review import MOST_WARNINGS
from webhook.senders import listed

MAX_LABEL = 63
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253
_CLOSE = 0.7  # minimum similarity by difflib; 1 is the same word
_PREFIX = f"{names.DOMAIN}/"
LABELS = frozenset({
    *(names.QUEUE, names.FRAMEWORK, names.GANG, names.TASK_PRIORITY, names.MANAGED, names.SCALE_UP, names.NODE_POOL),
})  # fmt: skip
_OF_USERS = frozenset({
    *(f"{_PREFIX}{key}" for key in KEYS),
    *(names.COMPAT, names.MIN_MEMBER, *names.TOPOLOGY_KEYS),
    *(names.RANK, names.SIZE, names.LEADER, names.EXPECTED_RUNTIME, names.RESERVATIONS, names.NUM_NODES),
    names.PRIORITY_CLASS,
    *(names.SPARES, names.BORROWS),
    *names.SCALE_UP_KEYS,
    *(names.EVICT_NOTICE, names.CHECKPOINT, names.EVICT_READY, names.RESTART_BUDGET),
    names.INFRASTRUCTURE_EXIT_CODES,
    *names.FAULT_KEYS,
})  # fmt: skip
WRITTEN = frozenset({
    *(names.EPOCH, names.NODE, names.LATER_TASKS, names.GROUPED_TEMPLATES, names.MEMBER_INDEX, HOSTFILE_ANNOTATION),
    *(names.SAFE_TO_EVICT, names.RUNTIME_VERSION, names.TRAIN_JOB, names.TRAIN_JOB_SPEC, names.RESUMED_AT),
    *(names.DELETE_AFTER, names.REVIEWED, names.PLACEMENT, names.GPU_DEVICES_CHOSEN, names.GPU_PORTION),
    *(names.EVICT_AT, names.EVICT_FOR, names.EVICTION_NOTICE),
    *(names.INDEPENDENT, names.WORKLOAD, names.SCALE_UP_ATTEMPT, names.NATIVE_GROUP, names.INDIVISIBLE),
    *(names.RUNS_ON_SPARE, names.CREATED_BY, names.CHANGED_BY, names.MOVED_TO, names.HELD_REPLICAS),
    *(f"{_PREFIX}{note}" for note in ("restart", "command", "timers", "restarts")),
})  # fmt: skip
"""Labels and annotations that Muster writes into objects for its own use."""
_KNOWN: Mapping[str, frozenset[str]] = {"labels": LABELS, "annotations": _OF_USERS}


def is_label(name: str) -> bool:
    """Return True for a DNS label (RFC 1123). A name that becomes a pod's host name must be a DNS label."""
    return len(name) <= MAX_LABEL and _LABEL.fullmatch(name) is not None


def too_long_label(path: str, name: str) -> Iterator[FieldError]:
    """Reject a name that is too long to be the value of a pod label."""
    if len(name) > MAX_LABEL:
        message = f"must have at most {MAX_LABEL} characters (it has {len(name)}), because it is a label of the pods"
        yield FieldError(path, message, name)


def is_subdomain(name: str) -> bool:
    """Return True for DNS labels separated by dots (RFC 1123), the syntax of most object names."""
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None


def unknown_queue(path: str, name: str, queues: NamespaceQueues) -> list[FieldError]:
    """Return an error if the queue does not exist.

    For pods of an admitted workload, no other check of the queue is needed.
    """
    if name and queues.get(name):
        return []
    message = f"unable to find job queue: {name!r}; usable queues are: {_usable(queues)}"
    return [FieldError(path, message, name, "NotFound")]


def unusable_queue(path: str, name: str, queues: NamespaceQueues) -> list[FieldError]:
    """Return an error if new workloads cannot enter the queue.

    The queue must exist, be open, be a leaf other than the root, and allow the namespace of the workload.
    """
    queue = queues.get(name) if name else None
    if queue is None:
        return unknown_queue(path, name, queues)
    children = queues.children(name)
    if refusal := queues.refusal(path, name):
        return refusal
    if name == names.ROOT_QUEUE:
        message = f"can not submit job to root queue; usable queues are: {_usable(queues)}"
    elif not queue.open:
        message = (
            f"can only submit job to queue with state `Open`, queue `{name}` status is `{queue.status.state}`; "
            f"usable queues are: {_usable(queues)}"
        )
    elif children:
        message = f"can only submit job to leaf queue; `{name}` has queues below it: {listed(children)}"
    else:
        return []
    return [FieldError(path, message, name)]


def unknown_framework(path: str, name: str, framework: Framework) -> list[FieldError]:
    """Return an error if no plugin implements the framework."""
    if name in framework.frameworks:
        return []
    return [FieldError(path, f"must be one of: {', '.join(framework.frameworks)}", name, "NotSupported")]


def _usable(queues: NamespaceQueues) -> str:
    return listed(queues.names())


def unknown_keys(metadata: Any, path: str = "metadata", above: Mapping[str, Any] | None = None) -> list[str]:
    """Return a warning for each key of Muster or another scheduler that has no effect in this metadata.

    Keys whose domain resembles Muster's domain are included. `above` are the labels of the workload that contains the
    template.
    """
    if not isinstance(metadata, Mapping):
        return []
    found = chain(_unknown(metadata, path), _unread(metadata, path), without_effect(metadata, path, above or {}))
    return [*islice(found, MOST_WARNINGS)]


def _unknown(metadata: Mapping[str, Any], path: str) -> Iterator[str]:
    for place, known in _KNOWN.items():
        given = metadata.get(place)
        for key in given if isinstance(given, Mapping) else ():
            if str(key).startswith(_PREFIX) and key not in known | WRITTEN:
                meant = _meant(key, place)
                advice = f"did you mean {meant}?" if meant else "it has no effect"
                yield f"{path}.{place}[{brief(key)}]: Muster does not know this {place[:-1]}; {advice}"
            elif _is_near(str(key)) and (meant := _meant(f"{_PREFIX}{str(key).partition('/')[2]}")):
                yield f"{path}.{place}[{brief(key)}]: Muster does not read this {place[:-1]}; did you mean {meant}?"


def _unread(metadata: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield warnings about values without effect; the values are harmless, so the object is not refused."""
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping):
        return
    runtime = annotations.get(names.EXPECTED_RUNTIME)
    if isinstance(runtime, str) and declared_s({names.EXPECTED_RUNTIME: runtime}) is None:
        what = f"{runtime!r} is not a duration above 0 and up to {SECONDS.value} seconds, such as 30s, 5m or 1h30m"
        yield f"{path}.annotations[{names.EXPECTED_RUNTIME}]: {what}; it has no effect"
    mode = annotations.get(names.RESERVATIONS)
    if isinstance(mode, str) and mode.strip().lower() not in names.RESERVATION_MODES:
        what = f"{mode!r} is not one of {', '.join(names.RESERVATION_MODES)}"
        yield f"{path}.annotations[{names.RESERVATIONS}]: {what}; it has no effect"


def meant_labels(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each unknown label that resembles a label of Muster, together with that label."""
    for key in labels:
        if (key.startswith(_PREFIX) and key not in LABELS | WRITTEN) or _is_near(key):
            meant = _meant(f"{_PREFIX}{key.partition('/')[2]}", "").partition(" ")[2]
            if meant:
                yield key, meant


def _is_near(key: str) -> bool:
    """Return True for a key whose domain resembles Muster's domain, such as `muster.io/queue`."""
    domain, slash, _ = key.partition("/")
    return bool(slash) and domain != names.DOMAIN and f"{domain}.".startswith("muster.")


def _meant(key: str, place: str = "") -> str:
    """Return kind and name of the known key that is most similar to the given key; "" if no key is similar."""
    for other, known in _KNOWN.items():
        if other != place and key in known:
            return f"{other[:-1]} {key}"
    every = {known.removeprefix(_PREFIX): other for other, keys in _KNOWN.items() for known in keys}
    for close in get_close_matches(key.removeprefix(_PREFIX)[:_MAX_SUBDOMAIN], sorted(every), n=1, cutoff=_CLOSE):
        return f"{every[close][:-1]} {_PREFIX}{close}"
    return ""
