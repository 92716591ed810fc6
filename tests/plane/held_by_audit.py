"""How long pods held their nodes, and which placements there were, by the API server's own audit log.

The plane must be made `traced`: the log then has each binding, each status and each deletion of a pod.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from musterctl.plane.plane import Plane

_GPU = "nvidia.com/gpu"


class Between(NamedTuple):
    """A moment: after a request had come, and before it was answered."""

    first_s: float
    last_s: float


class Held(NamedTuple):
    """The time for which one pod had its node."""

    uid: str
    name: str
    gpus: int
    job: str
    """Its Volcano Job."""
    since: Between
    until: Between | None

    def seconds(self, now_s: float) -> Between:
        """How long, at least and at most."""
        until = self.until or Between(now_s, now_s)
        least = min(until.first_s, now_s) - self.since.last_s
        return Between(max(0.0, least), max(0.0, min(until.last_s, now_s) - self.since.first_s))


def held(plane: Plane) -> list[Held]:
    """Every binding so far, with its end: the first status that says so, or the deletion without grace."""
    pods: dict[str, dict[str, Any]] = {}
    known: dict[tuple[str, str], str] = {}
    bound: dict[str, Between] = {}
    tried: dict[str, Between] = {}
    """Bindings whose caller was killed meanwhile: they failed for him, and were carried out all the same."""
    over: dict[str, Between] = {}
    for event in _pod_events(plane):
        reference = event["objectRef"]
        key, sub = (reference["namespace"], reference.get("name", "")), reference.get("subresource")
        verb, at = event["verb"], _moment(event)
        answer = event.get("responseObject") or {}
        if verb == "create" and not sub:
            meta = answer["metadata"]
            pods[meta["uid"]] = answer
            known[meta["namespace"], meta["name"]] = meta["uid"]
        elif sub == "binding":
            (bound if _succeeded(event) else tried)[event["requestObject"]["metadata"]["uid"]] = at
        elif sub == "status":
            uid = answer["metadata"]["uid"]
            if uid in tried and answer["spec"].get("nodeName"):
                bound.setdefault(uid, tried[uid])
            if answer["status"].get("phase") in {"Succeeded", "Failed"}:
                over.setdefault(uid, at)
        elif verb == "delete" and not sub and _at_once(event):
            uid = answer.get("metadata", {}).get("uid") or answer.get("details", {}).get("uid") or known.get(key, "")
            over.setdefault(uid, at)
    return [_held(uid, pods[uid], since, over.get(uid)) for uid, since in bound.items() if uid in pods]


def _moment(event: dict[str, Any]) -> Between:
    ends = (datetime.fromisoformat(event[name]).timestamp() for name in ("requestReceivedTimestamp", "stageTimestamp"))
    return Between(*ends)


def _held(uid: str, pod: dict[str, Any], since: Between, until: Between | None) -> Held:
    meta = pod["metadata"]
    gpus = sum(int(each["resources"].get("limits", {}).get(_GPU, 0)) for each in pod["spec"]["containers"])
    return Held(uid, meta["name"], gpus, meta["annotations"]["volcano.sh/job-name"], since, until)


def _pod_events(plane: Plane) -> Iterator[dict[str, Any]]:
    with (plane.root / "audit.log").open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return
            event = json.loads(line)
            reference = event.get("objectRef") or {}
            done = event["stage"] == "ResponseComplete" and event["level"] == "RequestResponse"
            tried = reference.get("subresource") == "binding" and event.get("requestObject")
            if done and reference.get("resource") == "pods" and (_succeeded(event) or tried):
                yield event


def _succeeded(event: dict[str, Any]) -> bool:
    return HTTPStatus.OK <= event["responseStatus"]["code"] < HTTPStatus.MULTIPLE_CHOICES


def _at_once(event: dict[str, Any]) -> bool:
    asked = event.get("requestObject") or {}
    return asked.get("gracePeriodSeconds") == 0
