"""The API server's audit log of what Muster's processes ask for, held against the rights that the chart grants them.

It also has the requests of the users of one namespace, who run the command line.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from muster.api.names import SYSTEM_NAMESPACE
from musterctl.chart import roles
from musterctl.chart.roles import RoleRule
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER

_LOG = "audit.log"
_AGENTS = {
    "muster-webhook": roles.WEBHOOK, "muster-extender": roles.EXTENDER, "muster-controller": roles.CONTROLLER,
    "muster-history": roles.HISTORY, "muster-web": roles.WEB, "kube-scheduler": roles.SCHEDULER
}  # fmt: skip
_PROCESSES = (roles.WEBHOOK, roles.EXTENDER, roles.CONTROLLER, roles.HISTORY, roles.SCHEDULER, roles.WEB)
_TRACED = (
    {
        "level": "RequestResponse",
        "omitManagedFields": True,
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        "resources": [
            {
                "group": "",
                "resources": ["pods", "pods/binding", "pods/eviction", "pods/status", "nodes", "nodes/status"],
            },
            {"group": "scheduling.volcano.sh", "resources": ["podgroups"]},
            {"group": "muster.dev", "resources": ["placements"]},
            {"group": "batch.volcano.sh", "resources": ["jobs/status"]},
        ],
    },
)
"""What a trace is made of: writes of what the protocol of gangs is about."""
USERS = "rights"
"""A namespace whose service accounts stand for users: their requests are logged, too."""
_USER = f"system:serviceaccount:{USERS}:"
_ACCOUNTS = (*roles.ACCOUNTS.values(), roles.OWN_EXTENDER, roles.WEB_ACCOUNT)


class Use(NamedTuple):
    """One verb on one resource, as a role says it (`pods/binding`)."""

    process: str
    group: str
    resource: str
    verb: str


class Asked(NamedTuple):
    """One request of a process."""

    use: Use
    namespace: str
    name: str
    forbidden: bool
    """By the authorizer; what admission refuses is another matter."""
    code: int
    moment_s: float
    """When it came, in seconds since the epoch."""


def arguments(folder: Path, *, traced: bool = False) -> dict[str, list[str]]:
    """More arguments for the parts of a plane in that folder: its API server writes down what our accounts ask for.

    `traced`: and whoever writes about gangs, with what they write (tests/plane/recordings.py).
    """
    users = [f"system:serviceaccount:{SYSTEM_NAMESPACE}:{account.name}" for account in _ACCOUNTS]
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            *(_TRACED if traced else ()),
            {"level": "Metadata", "users": users},
            {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{USERS}"]},
            {"level": "None"},
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "audit-policy.yaml"
    file.write_text(yaml.safe_dump(policy), encoding="utf-8")
    return {API_SERVER: [f"--audit-policy-file={file}", f"--audit-log-path={folder / _LOG}"]}


def asked(plane: Plane) -> Iterator[Asked]:
    """Every request of our processes so far."""
    log = plane.root / _LOG
    if not log.exists():
        return
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return  # still being written; its rest would be read as a line of its own
            event = json.loads(line)
            of_user = event["user"]["username"].startswith(_USER)
            if not of_user and (event["stage"] == "ResponseComplete" or event["verb"] == "watch"):
                yield _asked(event)


def length(plane: Plane) -> int:
    """Return the bytes that the log has now."""
    return (plane.root / _LOG).stat().st_size


def of_user(plane: Plane, account: str, since: int) -> Iterator[dict[str, Any]]:
    """Yield the events of one of the users, of those that came after so many bytes of the log."""
    user = f'"{_USER}{account}"'.encode()
    with (plane.root / _LOG).open("rb") as lines:
        lines.seek(since)
        for line in lines:
            if user in line and line.endswith(b"\n"):
                yield json.loads(line)


def writes(plane: Plane) -> Iterator[dict[str, Any]]:
    """The audit events of a traced plane that carry what was written, and those by which the pair's processes begin.

    Jobs are not among them: the protocol of gangs knows nothing of them.
    """
    with (plane.root / _LOG).open(encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            written = event["level"] == "RequestResponse" and event["objectRef"]["resource"] != "jobs"
            if written or _begins(event):
                yield event


def of_gangs(plane: Plane) -> Iterator[dict[str, Any]]:
    """The audit events of a traced plane for PodGroups, Placements and the status of Volcano Jobs, so far."""
    with (plane.root / _LOG).open(encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                return  # still being written
            event = json.loads(line)
            of = event.get("objectRef", {}).get("resource") in {"podgroups", "placements", "jobs"}
            if of and event["level"] == "RequestResponse" and event["stage"] == "ResponseComplete":
                yield event


def _begins(event: dict[str, Any]) -> bool:
    """Whether a process has read its objects for the first time: the extender lists, kube-scheduler has them sent."""
    agent, resource = event["userAgent"].partition("/")[0], (event.get("objectRef") or {}).get("resource")
    if agent == "muster-extender":
        return (event["verb"], resource) == ("list", "placements")
    own = agent == "kube-scheduler" and event["user"]["username"].startswith("system:serviceaccount:")
    return own and resource == "pods" and "sendInitial" in event["requestURI"] and event["stage"] == "ResponseStarted"


def forbidden(plane: Plane) -> list[str]:
    """What our processes were refused for want of a right, once each.

    What is granted, or was allowed in the same place later, came before the API server had taken in the role.
    """
    found: set[tuple[Use, str]] = set()
    for one in asked(plane):
        (found.add if one.forbidden else found.discard)((one.use, one.namespace))
    granted = {use for process in _PROCESSES for use in uses_of(roles.rules(process), process)}
    wanted = {use for use, _ in found} - granted
    return sorted(f"{use.process} may not {use.verb} {use.resource} ({use.group or 'core'})" for use in wanted)


def uses_of(rules: Iterable[RoleRule], process: str) -> set[Use]:
    """What some rules allow a process."""
    return {
        Use(process, group, resource, verb)
        for rule in rules
        for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs)
    }


def _asked(event: dict[str, Any]) -> Asked:
    reference = event.get("objectRef") or {"resource": event["requestURI"].partition("?")[0]}
    subresource = f"/{reference['subresource']}" if reference.get("subresource") else ""
    agent = event.get("userAgent", "").partition("/")[0]
    use = Use(
        _AGENTS.get(agent, agent), reference.get("apiGroup", ""), reference["resource"] + subresource, event["verb"]
    )
    refused = event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    code = (event.get("responseStatus") or {}).get("code", 0)
    moment_s = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
    return Asked(use, reference.get("namespace", ""), reference.get("name", ""), refused, code, moment_s)
