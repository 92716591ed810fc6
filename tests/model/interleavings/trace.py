"""A trace: what happened on a real plane, as the model reads it. tests/plane/recordings.py makes them.

One entry is one change of one object, in the order of etcd, with the request that made it; or a request that changed
nothing; or the beginning of a process's life. Kept as gzipped JSON lines.
"""

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS

KINDS: dict[str, Resource[Any]] = {each.plural: each for each in (PODS, NODES, POD_GROUPS, PLACEMENTS)}
"""The objects that the protocol is about."""
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "finalizers")
_NOT_OURS = ("kwok.", "kubectl.", "node.alpha", "beta.kubernetes.io", "volcano.sh/template-uid", "nvidia.com/")


class Asked(msgspec.Struct, omit_defaults=True):
    """A request as the API server logged it."""

    user: str
    agent: str
    """The program's name in its User-Agent: the extender and its kube-scheduler share an account."""
    verb: str
    """create, update, patch, delete, deletecollection; bind and evict for those subresources."""
    name: str
    namespace: str = ""
    status: bool = False
    """It was sent to the status subresource."""
    uid: str = ""
    """The UID that it was meant for, as its precondition says."""
    version: str = ""
    """The resource version that it was meant for."""
    body: dict[str, Any] = {}
    """What a patch said of what the protocol reads; of a binding `node` and `annotations`."""
    code: int = 0
    """The answer."""
    came_s: float = 0.0
    """When it came, in seconds since the epoch."""
    answered_s: float = 0.0
    """When its answer had been written."""


class Entry(msgspec.Struct, omit_defaults=True):
    """One line of a trace."""

    kind: str
    what: str = ""
    """ADDED, MODIFIED, DELETED; LISTED: it was there before; STARTED: a process has; "": nothing has changed."""
    object: dict[str, Any] = {}
    """The object after it, of a deleted one the last version."""
    revision: int = 0
    """The resource version of the change; 0 if there was none."""
    by: Asked | None = None
    """Who asked for it; None of a change that no request in the log explains."""


def slim(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    """The parts of an object that the protocol reads."""
    meta = content["metadata"]
    found: dict[str, Any] = {"metadata": {key: meta[key] for key in _META if key in meta}}
    for part in ("annotations", "labels"):
        found["metadata"][part] = {key: text for key, text in (meta.get(part) or {}).items() if _ours(key)}
    if owners := meta.get("ownerReferences"):
        found["metadata"]["ownerReferences"] = owners
    spec, status = content.get("spec") or {}, content.get("status") or {}
    if kind == PODS.plural:
        kept = ("nodeName", "schedulingGates", "schedulerName", "schedulingGroup")
        found["spec"] = {key: spec[key] for key in kept if key in spec}
        found["spec"]["containers"] = [
            {"name": each["name"], "resources": each.get("resources", {})} for each in spec["containers"]
        ]
        found["status"] = {"phase": status.get("phase", "")}
    elif kind == NODES.plural:
        found["spec"] = {key: spec[key] for key in ("unschedulable", "taints") if key in spec}
        ready = [
            {"type": "Ready", "status": each["status"]}
            for each in status.get("conditions") or ()
            if each["type"] == "Ready"
        ]
        found["status"] = {"allocatable": status.get("allocatable") or {}, "conditions": ready}
    elif kind == POD_GROUPS.plural:
        found |= {"spec": spec, "status": {"phase": status.get("phase", "")}}
    else:
        found |= {"spec": spec, "status": status}
    return found


def _ours(key: str) -> bool:
    return not key.startswith(_NOT_OURS)


def read(path: Path) -> list[Entry]:
    """A kept trace."""
    with gzip.open(path, "rb") as lines:
        return [msgspec.json.decode(line, type=Entry) for line in lines]


def write(path: Path, entries: Iterable[Entry]) -> None:
    """Keep a trace; equal traces make equal files."""
    path.write_bytes(gzip.compress(b"".join(msgspec.json.encode(each) + b"\n" for each in entries), mtime=0))
