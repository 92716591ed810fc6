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


class Held(NamedTuple):
    """The time for which one pod had its node."""

    namespace: str
    name: str
    gpus: int
    job: str
    """Its Volcano Job."""
    since_s: float
    until_s: float | None


def held(plane: Plane) -> list[Held]:
    """Every binding so far, with its end: the first status that says so, or the deletion without grace."""
    pods: dict[str, dict[str, Any]] = {}
    known: dict[tuple[str, str], str] = {}
    bound: dict[str, float] = {}
    over: dict[str, float] = {}
    for event in _pod_events(plane):
        reference = event["objectRef"]
        key, sub, verb = (
            (reference["namespace"], reference.get("name", "")),
            reference.get("subresource"),
            event["verb"],
        )
        at = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
        answer = event.get("responseObject") or {}
        if verb == "create" and not sub:
            meta = answer["metadata"]
            pods[meta["uid"]] = answer
            known[meta["namespace"], meta["name"]] = meta["uid"]
        elif sub == "binding":
            bound[event["requestObject"]["metadata"]["uid"]] = at
        elif sub == "status" and answer.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            over.setdefault(answer["metadata"]["uid"], at)
        elif verb == "delete" and not sub and _at_once(event):
            uid = answer.get("metadata", {}).get("uid") or answer.get("details", {}).get("uid") or known.get(key, "")
            over.setdefault(uid, at)
    return [_held(pods[uid], since, over.get(uid)) for uid, since in bound.items() if uid in pods]


def seconds(plane: Plane, until_s: float) -> dict[str, float]:
    """GPU seconds held by the pods of each Volcano Job until then."""
    found: dict[str, float] = {}
    for one in held(plane):
        end = until_s if one.until_s is None else min(one.until_s, until_s)
        found[one.job] = found.get(one.job, 0.0) + one.gpus * max(0.0, end - one.since_s)
    return found


def _held(pod: dict[str, Any], since: float, until: float | None) -> Held:
    meta = pod["metadata"]
    gpus = sum(int(each["resources"].get("limits", {}).get(_GPU, 0)) for each in pod["spec"]["containers"])
    return Held(meta["namespace"], meta["name"], gpus, meta["annotations"]["volcano.sh/job-name"], since, until)


def _pod_events(plane: Plane) -> Iterator[dict[str, Any]]:
    with (plane.root / "audit.log").open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return
            event = json.loads(line)
            reference = event.get("objectRef") or {}
            done = event["stage"] == "ResponseComplete" and event["level"] == "RequestResponse"
            if done and reference.get("resource") == "pods" and _succeeded(event):
                yield event


def _succeeded(event: dict[str, Any]) -> bool:
    return HTTPStatus.OK <= event["responseStatus"]["code"] < HTTPStatus.MULTIPLE_CHOICES


def _at_once(event: dict[str, Any]) -> bool:
    asked = event.get("requestObject") or {}
    return asked.get("gracePeriodSeconds") == 0
