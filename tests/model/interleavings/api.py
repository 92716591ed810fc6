"""The API server as a value: a request makes a new one, with an answer and the events that watches get.

It keeps what the real one promises to those that write: preconditions on UID and resource version, conflicts, graceful
deletion of pods that have a node, subresources, and bindings that a second one does not change. A resource version
counts the changes of one object, not of the cluster, so that two orders of changes of different objects lead to one
state; nothing compares the versions of two objects.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec
from merge_patches import applied

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import format_time
from muster.kube.errors import AlreadyExists, APIError, Conflict, NotFound

WITH_STATUS = {"pods", "nodes", "queues", "jobs"}
"""Kinds whose status is a subresource (tests/plane reads the same from the CRDs)."""
FOREGROUND = "foregroundDeletion"
"""The finalizer of an object that waits until what it owns is gone."""
RESOURCES: dict[str, Resource[Any]] = {}
"""The kinds that were ever stored, by plural with group: what the garbage collector deletes by."""
Key = tuple[str, str, str]
"""Plural with its group, namespace, name."""
Admit = Callable[["Api", Resource[Any], dict[str, Any]], dict[str, Any]]
"""What the webhook makes of a new object; it raises APIError if it refuses."""


class Stored:
    """One version of one object: plain content, and a digest that stands for it. See `stored`."""

    def __init__(self, content: dict[str, Any], text: bytes, digest: bytes) -> None:
        self.content = content
        self.text = text
        self.digest = digest
        self._read: dict[Any, Any] = {}

    def once(self, worked_out: Callable[["Stored"], Any]) -> Any:
        """What a function makes of this version, which is worked out once."""
        if worked_out not in self._read:
            self._read[worked_out] = worked_out(self)
        return self._read[worked_out]

    def as_(self, kind: type) -> Any:
        """The object as a client of this type reads it; wire types are not changed by those who read them."""
        if kind not in self._read:
            self._read[kind] = msgspec.convert(self.content, kind)
        return self._read[kind]

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Its metadata."""
        return self.content["metadata"]  # type: ignore[no-any-return]

    @cached_property
    def spec(self) -> dict[str, Any]:
        """Its spec."""
        return self.content.get("spec") or {}

    @cached_property
    def status(self) -> dict[str, Any]:
        """Its status."""
        return self.content.get("status") or {}


_STORED: WeakValueDictionary[bytes, Stored] = WeakValueDictionary()


def stored(content: dict[str, Any]) -> Stored:
    """The version with this content, which nobody changes any more: equal ones are one, however many worlds have it."""
    text = msgspec.json.encode(content, order="deterministic")
    digest = hashlib.blake2b(text, digest_size=12).digest()
    known = _STORED.get(digest)
    if known is None:
        known = _STORED[digest] = Stored(content, text, digest)
    return known


class Request(NamedTuple):
    """A call of a client. `body` is JSON of the content, so that equal requests are equal."""

    verb: str
    resource: Resource[Any]
    namespace: str
    name: str
    body: bytes = b""
    subresource: str = ""
    uid: str = ""
    version: str = ""

    def __str__(self) -> str:
        """As a story tells it."""
        what = f"{self.resource.kind} {self.name}" + (f"/{self.subresource}" if self.subresource else "")
        return f"{self.verb} {what}" + (f" {self.body.decode()}" if self.body else "")


class Event(NamedTuple):
    """A change as a watch tells it: the object after it, and if it is gone."""

    resource: Resource[Any]
    stored: Stored
    gone: bool


class Api:
    """All objects at one moment. Immutable: each change returns another one."""

    __slots__ = ("_digest", "admit", "births", "objects")

    def __init__(self, objects: Mapping[Key, Stored], births: Mapping[Key, int], admit: Admit | None = None) -> None:
        self.objects = objects
        self.admit = admit
        """Reviews what is created; None where objects come as they are after admission."""
        self.births = births
        """How many objects have had this name: the next one's UID says it."""
        self._digest = b""

    @property
    def digest(self) -> bytes:
        """What tells two of them apart."""
        if not self._digest:
            text = repr(sorted((key, one.digest) for key, one in self.objects.items()))
            self._digest = hashlib.blake2b(text.encode(), digest_size=12).digest()
        return self._digest

    def all(self, resource: Resource[Any]) -> list[Stored]:
        """The objects of a kind, by name."""
        kind = kind_of(resource)
        return [one for key, one in sorted(self.objects.items()) if key[0] == kind]

    def find(self, resource: Resource[Any], namespace: str, name: str) -> Stored | None:
        """One object, or None."""
        return self.objects.get((kind_of(resource), namespace if resource.namespaced else "", name))

    def execute(self, request: Request, now_s: float) -> tuple["Api", Stored | APIError, list[Event]]:
        """Carry out a request: the API server after it, its answer, and the events."""
        try:
            return _VERBS[request.verb](self, request, now_s)
        except APIError as error:
            return self, error, []

    def put(
        self, resource: Resource[Any], content: dict[str, Any], *, keep_version: bool = False
    ) -> tuple["Api", Stored, list[Event]]:
        """Store a version of an object."""
        meta = content["metadata"]
        if not keep_version:
            meta["resourceVersion"] = str(int(meta.get("resourceVersion") or 0) + 1)
        one = stored(content)
        key = (kind_of(resource), meta.get("namespace", ""), meta["name"])
        RESOURCES[key[0]] = resource
        return Api({**self.objects, key: one}, self.births, self.admit), one, [Event(resource, one, gone=False)]

    def without(self, resource: Resource[Any], gone: Stored) -> tuple["Api", list[Event]]:
        """Remove an object, and what it owns."""
        meta = gone.meta
        key = (kind_of(resource), meta.get("namespace", ""), meta["name"])
        api = Api({known: one for known, one in self.objects.items() if known != key}, self.births, self.admit)
        return api, [Event(resource, gone, gone=True)]

    def create(
        self, resource: Resource[Any], content: dict[str, Any], now_s: float
    ) -> tuple["Api", Stored, list[Event]]:
        """Create an object; raises AlreadyExists, or what the webhook refuses it with."""
        meta = content.setdefault("metadata", {})
        if not meta.get("name"):
            born = self.births.get((kind_of(resource), meta.get("namespace", ""), meta["generateName"]), 0) + 1
            births = {**self.births, (kind_of(resource), meta.get("namespace", ""), meta["generateName"]): born}
            return Api(self.objects, births, self.admit).create(
                resource, {**content, "metadata": {**meta, "name": f"{meta['generateName']}{born}"}}, now_s
            )
        if self.admit is not None:
            content = self.admit(self, resource, content)
            meta = content["metadata"]
        key = (kind_of(resource), meta.get("namespace", ""), meta["name"])
        if key in self.objects:
            raise AlreadyExists(f"{resource.kind} {meta['name']} exists")
        born = self.births.get(key, 0) + 1
        meta |= {
            "uid": f"{meta['name']}.{resource.kind.lower()}.{born}",
            "generation": 1,
            "creationTimestamp": format_time(now_s),
        }
        if resource.plural in WITH_STATUS and resource is PODS:
            content["status"] = {"phase": "Pending"}
        return Api(self.objects, {**self.births, key: born}, self.admit).put(resource, content)

    def garbage(self) -> Iterator[tuple[Resource[Any], Stored]]:
        """What the garbage collector deletes now: what has lost its owners, or has one that waits for its end."""
        there = {one.meta["uid"]: one for one in self.objects.values()}
        waiting = {uid for uid, one in there.items() if FOREGROUND in one.meta.get("finalizers", ())}
        held = set()
        for key, one in sorted(self.objects.items()):
            owners = [owner["uid"] for owner in one.meta.get("ownerReferences", ())]
            held |= waiting & {*owners}
            lost = owners and not any(uid in there for uid in owners)
            if (lost or waiting & {*owners}) and not one.meta.get("deletionTimestamp"):
                yield RESOURCES[key[0]], one
        for key, one in sorted(self.objects.items()):
            if one.meta["uid"] in waiting - held:
                yield RESOURCES[key[0]], one

    def collect(self, resource: Resource[Any], one: Stored, now_s: float) -> tuple["Api", list[Event]]:
        """Delete one of `garbage`."""
        meta = one.meta
        if FOREGROUND in meta.get("finalizers", ()):
            return self.without(resource, one)
        request = Request("delete", resource, meta.get("namespace", ""), meta["name"], uid=meta["uid"])
        api, _, events = self.execute(request, now_s)
        return api, events


def kind_of(resource: Resource[Any]) -> str:
    """The plural with its group."""
    return f"{resource.plural}.{resource.group}"


def _existing(api: Api, request: Request) -> Stored:
    found = api.find(request.resource, request.namespace, request.name)
    if found is None:
        raise NotFound(f"there is no {request.resource.kind} {request.name}")
    if request.uid and found.meta["uid"] != request.uid:
        raise Conflict(f"{request.resource.kind} {request.name} is another one")
    if request.version and found.meta["resourceVersion"] != request.version:
        raise Conflict(f"{request.resource.kind} {request.name} has changed")
    return found


def _get(api: Api, request: Request, now_s: float) -> tuple[Api, Stored, list[Event]]:
    del now_s
    return api, _existing(api, request), []


def _create(api: Api, request: Request, now_s: float) -> tuple[Api, Stored, list[Event]]:
    content = msgspec.json.decode(request.body)
    if request.resource.namespaced:
        content["metadata"]["namespace"] = request.namespace
    if request.resource.plural in WITH_STATUS:
        content.pop("status", None)
    return api.create(request.resource, content, now_s)


def _patch(api: Api, request: Request, now_s: float) -> tuple[Api, Stored, list[Event]]:
    del now_s
    body = msgspec.json.decode(request.body)
    meta = body.get("metadata") or {}
    old = _existing(api, request._replace(uid=meta.get("uid", ""), version=meta.get("resourceVersion", "")))
    if request.resource.plural in WITH_STATUS:
        parts = {"status"} if request.subresource else set(body) - {"status"}
        body = {part: value for part, value in body.items() if part in parts or part == "metadata"}
    content = applied(msgspec.json.decode(old.text), body)
    content["metadata"]["resourceVersion"] = old.meta["resourceVersion"]
    if content == old.content:
        return api, old, []
    if content.get("spec") != old.content.get("spec"):
        content["metadata"]["generation"] = old.meta.get("generation", 0) + 1
    return api.put(request.resource, content)


def _delete(api: Api, request: Request, now_s: float) -> tuple[Api, Stored, list[Event]]:
    found = _existing(api, request)
    running = found.spec.get("nodeName") and found.status.get("phase") not in {"Succeeded", "Failed"}
    options = msgspec.json.decode(request.body or b"{}")
    at_once = options.get("gracePeriodSeconds") == 0
    if options.get("propagationPolicy") == "Foreground":
        return _mark(api, request.resource, found, now_s, [FOREGROUND])
    if request.resource is PODS and running and not at_once:
        return _mark(api, PODS, found, now_s)
    api, events = api.without(request.resource, found)
    return api, found, events


def _mark(
    api: Api, resource: Resource[Any], found: Stored, now_s: float, finalizers: list[str] | None = None
) -> tuple[Api, Stored, list[Event]]:
    """Begin a deletion that takes its time."""
    if found.meta.get("deletionTimestamp"):
        return api, found, []
    content = msgspec.json.decode(found.text)
    content["metadata"] |= {"deletionTimestamp": format_time(now_s)}
    if finalizers:
        content["metadata"]["finalizers"] = finalizers
    return api.put(resource, content)


def _bind(api: Api, request: Request, now_s: float) -> tuple[Api, Stored, list[Event]]:
    del now_s
    found = _existing(api, request)
    if found.meta.get("deletionTimestamp"):
        raise Conflict(f"pod {request.name} is being deleted")
    if found.spec.get("nodeName"):
        raise Conflict(f"pod {request.name} is already assigned to node {found.spec['nodeName']}")
    if found.spec.get("schedulingGates"):
        raise Conflict(f"pod {request.name} has scheduling gates")
    binding = msgspec.json.decode(request.body)
    content = msgspec.json.decode(found.text)
    content["spec"]["nodeName"] = binding["node"]
    content["metadata"].setdefault("annotations", {}).update(binding["annotations"])
    return api.put(PODS, content)


def _list(_: Api, request: Request, now_s: float) -> tuple[Api, Stored, list[Event]]:
    del now_s
    raise NotFound(f"the server does not know {request.resource.plural}")


def _apply(api: Api, request: Request, now_s: float) -> tuple[Api, Stored, list[Event]]:
    if api.find(request.resource, request.namespace, request.name) is None:
        return _create(api, request, now_s)
    return _patch(api, request, now_s)


_VERBS = {
    "apply": _apply, "get": _get, "create": _create, "patch": _patch, "delete": _delete, "evict": _delete,
    "bind": _bind, "list": _list
}  # fmt: skip
