"""Labels and annotations under `muster.dev/` without effect, such as typing errors, for warnings."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from muster.api import names
from muster.api.limits import SECONDS
from muster.resources.runtime import declared_s
from muster.runtime.plugins.mpi_objects import HOSTFILE_ANNOTATION
from muster.runtime.settings import KEYS

_CLOSE = 0.7  # as difflib measures: 1 is the same word
_PREFIX = f"{names.DOMAIN}/"
LABELS = frozenset({
    *(names.QUEUE, names.FRAMEWORK, names.GANG, names.TASK_PRIORITY, names.MANAGED, names.SCALE_UP),
})  # fmt: skip
_OF_USERS = frozenset({
    *(f"{_PREFIX}{key}" for key in KEYS),
    *(names.COMPAT, names.MIN_MEMBER, *names.TOPOLOGY_KEYS),
    *(names.RANK, names.SIZE, names.LEADER, names.EXPECTED_RUNTIME, names.RESERVATIONS, names.NUM_NODES),
    *names.SCALE_UP_KEYS,
})  # fmt: skip
_OURS = frozenset({
    *(names.EPOCH, names.NODE, names.LATER_TASKS, names.GROUPED_TEMPLATES, names.MEMBER_INDEX, HOSTFILE_ANNOTATION),
    *(names.SAFE_TO_EVICT, names.RUNTIME_VERSION, names.TRAIN_JOB, names.TRAIN_JOB_SPEC, names.RESUMED_AT),
    *(names.DELETE_AFTER, names.REVIEWED),
    *(f"{_PREFIX}{note}" for note in ("restart", "command", "timers")),
})  # fmt: skip
_KNOWN: Mapping[str, frozenset[str]] = {"labels": LABELS, "annotations": _OF_USERS}


def unknown_keys(metadata: Any, path: str = "metadata") -> list[str]:
    """Return a warning for each key under `muster.dev/` in this metadata that has no effect there."""
    return [*_unknown(metadata, path), *_unread(metadata, path)] if isinstance(metadata, Mapping) else []


def _unknown(metadata: Mapping[str, Any], path: str) -> Iterator[str]:
    for place, known in _KNOWN.items():
        given = metadata.get(place)
        for key in given if isinstance(given, Mapping) else ():
            if str(key).startswith(_PREFIX) and key not in known | _OURS:
                yield f"{path}.{place}[{key}]: Muster does not know this {place[:-1]}; {_advice(key, place)}"


def _unread(metadata: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield warnings of values without effect; they do no harm, so that the object need not be refused."""
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping):
        return
    runtime = annotations.get(names.EXPECTED_RUNTIME)
    if isinstance(runtime, str) and declared_s({names.EXPECTED_RUNTIME: runtime}) is None:
        what = f"{runtime!r} is not a duration from above 0 to {SECONDS.value} seconds, as 30s, 5m or 1h30m are"
        yield f"{path}.annotations[{names.EXPECTED_RUNTIME}]: {what}; it has no effect"
    mode = annotations.get(names.RESERVATIONS)
    if isinstance(mode, str) and mode.strip().lower() not in names.RESERVATION_MODES:
        what = f"{mode!r} is none of {', '.join(names.RESERVATION_MODES)}"
        yield f"{path}.annotations[{names.RESERVATIONS}]: {what}; it has no effect"


def _advice(key: str, place: str) -> str:
    for other, known in _KNOWN.items():
        if other != place and key in known:
            return f"did you mean {other[:-1]} {key}?"
    every = {known.removeprefix(_PREFIX): other for other, keys in _KNOWN.items() for known in keys}
    for close in get_close_matches(key.removeprefix(_PREFIX), sorted(every), n=1, cutoff=_CLOSE):
        return f"did you mean {every[close][:-1]} {_PREFIX}{close}?"
    return "it has no effect"
