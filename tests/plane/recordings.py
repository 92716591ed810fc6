"""Records what happens on a plane as a trace for the model: each change in etcd's order, with the request that made it.

The audit log says who asked for what, and the watches what came of it: the answer to a binding or an eviction names no
resource version, so the log alone does not tell its place among the other changes. The plane must be made `traced`.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import audits
from interleavings.replay import replay
from interleavings.trace import KINDS, Asked, Entry, slim, write

from musterctl.plane.plane import Plane

_BEHIND_S = 30.0
_LONGEST_S = 7200
_STARTS = {"muster-extender": "extender", "kube-scheduler": "scheduler"}
"""Programs whose lists tell that they have started."""


KEPT = Path(__file__).parents[1] / "model" / "traces"


def held(recording: "Recording", folder: Path, name: str) -> None:
    """The model takes every step of a recording; it is kept if that is asked for."""
    entries = recording.entries()
    write((KEPT if "MUSTER_KEEP_TRACES" in os.environ else folder) / f"{name}.jsonl.gz", entries)
    found = replay(entries)
    sys.stderr.write(f"\n{name}: {found}\n")
    assert not found.failure, found.told()


class Recording:
    """What happens on a plane while this is entered; `entries` afterwards."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self.plane = plane
        self._files = {kind: folder / f"watched-{kind}.jsonl" for kind in KINDS}
        self._listed: dict[str, dict[str, Any]] = {}
        self._watches: dict[str, subprocess.Popen[bytes]] = {}
        self._began_s = 0.0

    def __enter__(self) -> Self:
        self._began_s = time.time()
        for kind, file in self._files.items():
            self._listed[kind] = self._list(kind)
            file.touch()
            self._watches[kind] = self._watch(kind, self._listed[kind]["metadata"]["resourceVersion"])
        return self

    def _watch(self, kind: str, version: str) -> subprocess.Popen[bytes]:
        """Watch a kind from this version on; what comes is added to its file."""
        program = [str(self.plane.kubectl_program()), f"--kubeconfig={self.plane.kubeconfig}", "get", "--raw"]
        path = f"{KINDS[kind].path()}?watch=1&resourceVersion={version}&timeoutSeconds={_LONGEST_S}"
        with self._files[kind].open("ab") as out:
            return subprocess.Popen([*program, path], stdout=out)

    def _go_on(self, kind: str) -> None:
        """Watch a kind from where its watch ended: the API server ends one that is slow, as on a loaded machine."""
        file = self._files[kind]
        whole = file.read_bytes()
        file.write_bytes(whole[: whole.rfind(b"\n") + 1])
        told = [int(_version(one)[1]) for _, one in _told(file)]
        version = max([int(self._listed[kind]["metadata"]["resourceVersion"]), *told])
        self._watches[kind] = self._watch(kind, str(version))

    def __exit__(self, *_: object) -> None:
        try:
            self._wait_until_told()
        finally:
            for each in self._watches.values():
                each.terminate()
                each.wait()

    def _list(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.plane.kubectl("get", "--raw", KINDS[kind].path()).stdout)
        return found

    def _wait_until_told(self) -> None:
        """The watches have told of all that is there now."""
        deadline = time.monotonic() + _BEHIND_S
        for kind in self._watches:
            there = {_version(one) for one in self._list(kind)["items"]}
            known = {_version(one) for one in self._listed[kind]["items"]}
            while there - known - {_version(one) for _, one in _told(self._files[kind])}:
                if self._watches[kind].poll() is not None:
                    self._go_on(kind)
                assert time.monotonic() < deadline, f"the watch of {kind} is behind"
                time.sleep(0.2)

    def entries(self) -> list[Entry]:
        """The trace: changes in the order of etcd, and among them requests that changed nothing, by their time."""
        changes = [
            Entry(kind=kind, what=what, object=slim(kind, one), revision=int(one["metadata"]["resourceVersion"]))
            for kind, listed in self._listed.items()
            for what, one in (*(("LISTED", one) for one in listed["items"]), *_told(self._files[kind]))
        ]
        changes.sort(key=lambda each: (each.what != "LISTED", each.revision))
        log = [event for event in audits.writes(self.plane) if _seconds(event["stageTimestamp"]) >= self._began_s]
        return joined(changes, log)


def _version(one: dict[str, Any]) -> tuple[str, str]:
    return one["metadata"]["uid"], one["metadata"]["resourceVersion"]


def _told(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a watch so far: ADDED, MODIFIED or DELETED, and the object."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return  # still being written
            event = json.loads(line)
            yield event["type"], event["object"]


def joined(changes: list[Entry], log: list[dict[str, Any]]) -> list[Entry]:
    """Each change with its request; the requests that are left over come where their time is."""
    requests = _Requests(log)
    before: dict[str, dict[str, Any]] = {}
    for change in changes:
        uid = change.object["metadata"]["uid"]
        if change.what != "LISTED":
            change.by = requests.of(change, before.get(uid, {}))
        before[uid] = change.object
    answered = [change.by.answered_s if change.by else 0.0 for change in changes]
    found = [*changes]
    for each in sorted(requests.left(), key=lambda each: each[1].came_s, reverse=True):
        what, asked = each
        place = max((at for at, moment_s in enumerate(answered, 1) if moment_s <= asked.came_s), default=0)
        found.insert(place, Entry(kind=what, what="STARTED" if what in _STARTS.values() else "", by=asked))
    return found


class _Requests:
    """What was asked for, by what came of it."""

    def __init__(self, log: list[dict[str, Any]]) -> None:
        self._unused: dict[int, tuple[str, Asked]] = {}
        self._written: dict[tuple[str, str], list[int]] = {}
        """UID and resource version of an answer → requests that got it; the first one made it."""
        self._bound: dict[str, list[int]] = {}
        self._ended: dict[str, list[int]] = {}
        """UID → deletions and evictions of it."""
        self._conditions: dict[tuple[str, str], list[int]] = {}
        """UID and resource version → evictions of it as it was then, which write a condition first.

        Where the pod changes between that and its end, they are refused, and the condition stays.
        """
        self._unanswered: dict[tuple[str, str, str], list[int]] = {}
        """Kind, namespace and name → writes whose sender was gone before the answer: they may have been made."""
        self._marked: set[int] = set()
        """Deletions and evictions that have begun an end."""
        for event in sorted(log, key=lambda event: str(event["stageTimestamp"])):
            if event["level"] != "RequestResponse":
                self._unused[len(self._unused)] = (_STARTS[event["userAgent"].partition("/")[0]], _asked(event))
            elif "dryRun=" not in event["requestURI"]:
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        number, asked = len(self._unused), _asked(event)
        self._unused[number] = (event["objectRef"]["resource"], asked)
        if asked.verb == "evict":
            self._conditions.setdefault((asked.uid, asked.version), []).append(number)
        lost = asked.code == HTTPStatus.GATEWAY_TIMEOUT
        if asked.code >= HTTPStatus.MULTIPLE_CHOICES and not lost:
            return
        answer = event.get("responseObject") or {}
        meta = answer.get("metadata", {})
        uid = asked.uid or meta.get("uid") or (answer.get("details") or {}).get("uid", "")
        if asked.verb == "bind":
            self._bound.setdefault(uid, []).append(number)
        elif asked.verb == "deletecollection":
            for one in answer.get("items", ()):
                self._ended.setdefault(one["metadata"]["uid"], []).append(number)
        elif asked.verb in {"delete", "evict"}:
            self._ended.setdefault(uid, []).append(number)
        elif lost:
            of = event["objectRef"]["resource"], asked.namespace, asked.name
            self._unanswered.setdefault(of, []).append(number)
        if meta.get("resourceVersion") and asked.verb != "deletecollection":
            self._written.setdefault((uid, meta["resourceVersion"]), []).append(number)

    def of(self, change: Entry, before: dict[str, Any]) -> Asked | None:
        """The request that made a change of an object that was so before."""
        meta, uid = change.object["metadata"], change.object["metadata"]["uid"]
        numbers = self._written.get((uid, meta["resourceVersion"]), [])
        bound = change.object["spec"].get("nodeName") and not before.get("spec", {}).get("nodeName")
        if not numbers and bound and change.what == "MODIFIED":
            numbers = self._bound.get(uid, [])
        elif not numbers and (change.what == "DELETED" or meta.get("deletionTimestamp")):
            numbers = self._ended.get(uid, [])
            numbers = [*reversed(numbers)] if change.what == "DELETED" else numbers
        elif not numbers:  # an eviction first writes the condition DisruptionTarget
            was = before.get("metadata", {}).get("resourceVersion", "")
            numbers = [each for version in (was, "") for each in self._conditions.get((uid, version), [])]
            # Of two with one version, only that which wrote the condition can succeed.
            numbers.sort(key=lambda each: each not in self._ended.get(uid, []))
        unanswered = self._unanswered.get((change.kind, meta.get("namespace", ""), meta["name"]), [])
        number = next((number for number in (*numbers, *unanswered) if number in self._unused), None)
        if number is None:
            return None
        _, asked = self._unused[number]
        # A deletion without grace marks the object, and removes it: many changes by one request.
        ends = asked.verb in {"delete", "evict"} and change.what != "DELETED"
        if ends:
            self._marked.add(number)
        if asked.verb != "deletecollection" and not ends:
            del self._unused[number]
            self._unused[-1 - number] = ("", asked)  # the numbers go on
        return asked

    def left(self) -> Iterator[tuple[str, Asked]]:
        """Requests that changed nothing, with their kinds."""
        return (each for number, each in self._unused.items() if each[0] and number not in self._marked)


def _asked(event: dict[str, Any]) -> Asked:
    reference, body = event.get("objectRef") or {}, event.get("requestObject") or {}
    part = reference.get("subresource", "")
    meta, verb = body.get("metadata") or {}, event["verb"]
    verb = {"binding": "bind", "eviction": "evict"}.get(part, verb)
    options = body if verb == "delete" else body.get("deleteOptions") or {}
    limits = options.get("preconditions") or {}
    said: dict[str, Any] = {}
    if verb == "bind":
        said = {"node": body["target"]["name"], "annotations": meta.get("annotations") or {}}
    elif verb == "patch" and event["userAgent"].startswith("muster-extender"):
        said = {key: body[key] for key in ("metadata", "spec", "status") if key in body}
    return Asked(
        user=event["user"]["username"],
        agent=event.get("userAgent", "").partition("/")[0],
        verb=verb,
        name=reference.get("name") or meta.get("name", ""),
        namespace=reference.get("namespace", ""),
        status=part == "status",
        uid=limits.get("uid", "") or ("" if verb == "evict" else meta.get("uid", "")),
        version=limits.get("resourceVersion", "") or ("" if verb == "evict" else meta.get("resourceVersion", "")),
        body=said,
        code=event["responseStatus"]["code"],
        came_s=_seconds(event["requestReceivedTimestamp"]),
        answered_s=_seconds(event["stageTimestamp"]),
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
