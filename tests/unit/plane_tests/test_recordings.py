"""A recording knows which request made which change, also where the answer to it says that nothing was done."""

from typing import Any

from interleavings.trace import Entry
from recordings import joined

EXTENDER = "muster-extender"
STAMP = "2026-01-01T00:00:0{}.000000Z"


def pod(version: int, *, node: str = "") -> dict[str, Any]:
    """The pod `a` at that resource version."""
    meta = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}}


def change(version: int, what: str = "MODIFIED", *, node: str = "") -> Entry:
    """What a watch told."""
    return Entry(kind="pods", what=what, object=pod(version, node=node), revision=version)


def asked(verb: str, code: int, second: int, agent: str = EXTENDER, **more: Any) -> dict[str, Any]:
    """A line of the audit log; `of` is the version that an eviction names, `wrote` the one that the answer has."""
    reference = {"resource": "pods", "namespace": "ns", "name": "a"}
    if verb in {"eviction", "binding"}:
        reference["subresource"] = verb
    body: dict[str, Any] = {"metadata": {"name": "a"}}
    if verb == "eviction":
        body["deleteOptions"] = {"preconditions": {"uid": "u", "resourceVersion": str(more["of"])}}
    if verb == "binding":
        body |= {"metadata": {"name": "a", "uid": "u"}, "target": {"name": "n"}}
    return {
        "level": "RequestResponse",
        "requestURI": "/api/v1/namespaces/ns/pods/a",
        "verb": verb if verb == "patch" else "create",
        "user": {"username": agent},
        "userAgent": agent,
        "objectRef": reference,
        "requestObject": body,
        "responseObject": pod(more["wrote"]) if "wrote" in more else {},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": STAMP.format(second),
        "stageTimestamp": STAMP.format(second),
    }


def told(changes: list[Entry], log: list[dict[str, Any]]) -> list[tuple[str, int, str, int, str]]:
    """What, revision, and verb, code and version of the request, in the order of the recording."""
    found = []
    for each in joined(changes, log):
        by = each.by
        found.append((each.what, each.revision, *((by.verb, by.code, by.version) if by else ("", 0, ""))))
    return found


def test_an_eviction_that_is_refused_as_the_pod_changes_has_written_its_condition() -> None:
    """kube-scheduler writes between the condition and the end; the next eviction names the version after that."""
    log = [
        asked("eviction", 409, 1, of=1),
        asked("patch", 200, 1, "kube-scheduler", wrote=3),
        asked("eviction", 201, 2, of=3),
    ]
    assert told([change(1, "LISTED"), change(2), change(3), change(4), change(5, "DELETED")], log) == [
        ("LISTED", 1, "", 0, ""),
        ("MODIFIED", 2, "evict", 409, "1"),
        ("MODIFIED", 3, "patch", 200, ""),
        ("MODIFIED", 4, "evict", 201, "3"),
        ("DELETED", 5, "evict", 201, "3"),
    ]


def test_of_two_evictions_of_a_version_the_one_that_succeeds_has_written_the_condition() -> None:
    """The other one is refused because of it, and may be answered first."""
    log = [asked("eviction", 409, 1, of=1), asked("eviction", 201, 2, of=1)]
    assert told([change(1, "LISTED"), change(2), change(3, "DELETED")], log) == [
        ("LISTED", 1, "", 0, ""),
        ("", 0, "evict", 409, "1"),
        ("MODIFIED", 2, "evict", 201, "1"),
        ("DELETED", 3, "evict", 201, "1"),
    ]


def test_an_eviction_that_came_too_late_has_changed_nothing() -> None:
    """It stands among the changes, at its time."""
    log = [asked("patch", 200, 1, "kube-scheduler", wrote=2), asked("eviction", 409, 2, of=1)]
    assert told([change(1, "LISTED"), change(2)], log) == [
        ("LISTED", 1, "", 0, ""),
        ("MODIFIED", 2, "patch", 200, ""),
        ("", 0, "evict", 409, "1"),
    ]


def test_a_binding_is_known_by_the_node() -> None:
    """Its answer has no resource version."""
    assert told([change(1, "LISTED"), change(2, node="n")], [asked("binding", 201, 1)])[1][2:4] == ("bind", 201)


def test_a_write_whose_answer_was_lost_is_known_by_what_nobody_else_wrote() -> None:
    """Nobody was there to get the resource version."""
    assert told([change(1, "LISTED"), change(2)], [asked("patch", 504, 1)])[1][2:4] == ("patch", 504)


def test_a_change_that_no_request_explains_has_none() -> None:
    """The model refuses it."""
    assert told([change(1, "LISTED"), change(2)], [])[1] == ("MODIFIED", 2, "", 0, "")
