"""Folds a trace into the model: each entry must be a step that the model has, and all that must hold, holds after it.

A trace knows less than a world: not when the extender asked, only when the API server got the request, carried it out
and answered. So a request of the extender is judged by every moment that it may have acted on: the one at which it was
carried out, and those before which had not yet been answered, or not for longer than a watch lags, when it came.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from interleavings import properties
from interleavings.api import Api, Event, Request, Stored, stored
from interleavings.automaton import At
from interleavings.trace import KINDS, Asked, Entry
from muster.api import names
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.gang import Slot
from muster.api.muster.placement import PLACEMENTS
from muster.api.muster.pools import is_musters
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import APIError
from muster.workloads.table import gang_of

LAG_S = 2.0
"""How long after the answer to a write, or the end of an object, the extender may still not know of it."""
STORY = 14
"""Entries about a gang that a failure tells."""
_SYSTEM = f"system:serviceaccount:{names.SYSTEM_NAMESPACE}:"
_USERS = {
    f"{_SYSTEM}muster-webhook": "webhook",
    f"{_SYSTEM}{names.CONTROLLER_ACCOUNT}": "controller",
    "system:kube-scheduler": "the cluster's scheduler",
    "muster-local:kwok": "kubelet",
    "muster-admin": "user",
}
_OF_THE_PAIR = {"muster-extender": "extender", "kube-scheduler": "kube-scheduler"}
_KUBERNETES = ("system:serviceaccount:kube-system:", "system:kube-controller-manager")
_PODS, _NODES, _GROUPS, _PLACEMENTS = (each.plural for each in (PODS, NODES, POD_GROUPS, PLACEMENTS))
STEPS: dict[tuple[str, str], tuple[str, ...]] = {
    ("extender", _PLACEMENTS): ("answer", "create", "patch", "delete"),
    ("extender", _GROUPS): ("answer", "patch"),
    ("extender", _PODS): ("answer", "bind", "evict", "patch", "delete"),
    ("kube-scheduler", _PODS): ("filter", "patch"),
    ("the cluster's scheduler", _PODS): ("user", "bind", "patch"),
    ("controller", _PODS): ("owner", "create", "patch", "delete"),
    ("controller", _GROUPS): ("owner", "create", "patch", "update", "delete"),
    ("kubelet", _PODS): ("kubelet", "patch", "delete"),
    ("kubelet", _NODES): ("kubelet", "patch", "update"),
    ("Kubernetes", _PODS): ("gc", "delete", "patch", "create", "update"),
    ("Kubernetes", _NODES): ("gc", "patch", "update"),
    ("Kubernetes", _GROUPS): ("gc", "delete", "deletecollection"),
    ("Kubernetes", _PLACEMENTS): ("gc", "delete", "deletecollection"),
    ("user", _PODS): ("user", "create", "patch", "delete", "deletecollection"),
    ("user", _GROUPS): ("user", "create", "patch", "delete", "deletecollection"),
    ("user", _NODES): ("fault", "create", "patch", "update", "delete"),
}
"""Who may write about what: the model's step that it is, and the verbs."""


class Known(NamedTuple):
    """A moment of a trace, as `properties` look at one."""

    api: Api
    late: tuple[str, tuple[Event, ...]] | None = None
    extender: At = At(b"", (), may_cycle=True, next_s=None)
    done: Collection[tuple[str, Slot | None]] = frozenset()


@dataclass
class Replayed:
    """What a replay has seen."""

    steps: Counter[str] = field(default_factory=Counter)
    late: int = 0
    """Requests of the extender that were right at an earlier moment which they may have acted on, not at their own."""
    failure: str = ""
    story: list[str] = field(default_factory=list)

    def told(self) -> str:
        """What has failed, and what happened before about the same gang."""
        return f"{self.failure or 'nothing has failed'}:" + "".join(f"\n  {words}" for words in self.story)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.steps.items()))
        return f"{self.steps.total()} steps ({kinds}), {self.late} late requests"


def replay(entries: Sequence[Entry]) -> Replayed:
    """Take each step of a trace; the first that the model does not have, or after which a rule fails, ends it."""
    return _Replay(entries).run()


def who(asked: Asked) -> str:
    """The writer as the model knows it, or "" for one that it does not."""
    if asked.user == f"{_SYSTEM}muster-scheduler":
        return _OF_THE_PAIR.get(asked.agent, "")
    if asked.user.startswith(_KUBERNETES):
        return "Kubernetes"
    return _USERS.get(asked.user, "")


class _Replay:
    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.found = Replayed()
        self.before = self.api = Api({}, {})
        self._moments: list[tuple[Api, Entry]] = []
        """Each entry that changed something that the extender acts on, with the objects before it."""
        self._begun: set[tuple[str, str, float]] = set()
        """Deletions, evictions and bindings of which the first change has been seen."""
        self._done: set[tuple[str, Slot | None]] = set()
        """PodGroup's UID and slot of each deleted pod that had succeeded."""
        self._binds = [
            (at, entry.by)
            for at, entry in enumerate(entries)
            if entry.by is not None and entry.by.verb == "bind" and who(entry.by) == "extender"
        ]
        self._starts = [at for at, entry in enumerate(entries) if entry.what == "STARTED"]

    def run(self) -> Replayed:
        for at, entry in enumerate(self.entries):
            why = self._step(at, entry)
            if why:
                self.found.failure = f"{why} (entry {at})"
                self.found.story = self._story(at)
                return self.found
        if why := properties.at_rest(Known(self.api)):
            self.found.failure = why
        return self.found

    def _step(self, at: int, entry: Entry) -> str | None:  # noqa: C901, PLR0911 - one case for each kind of entry
        if entry.what == "STARTED":
            self.found.steps["fault"] += 1
            return None
        if entry.what == "LISTED":
            self._put(entry)
            return None
        if entry.by is None:
            return f"{_named(entry)} has changed, and nobody has asked for it"
        writer = who(entry.by)
        step, *verbs = STEPS.get((writer, entry.kind), ("",))
        if not writer or (entry.what and entry.by.verb not in verbs):
            return f"the model has no step in which {writer or entry.by.user} may {entry.by.verb} {_named(entry)}"
        if writer == "extender" and (why := self._request(at, entry, entry.by)):
            return why
        if not entry.what:
            self.found.steps["answer" if writer == "extender" else "refused"] += 1
            return None
        if why := self._by_the_right_one(entry, writer) or self._as_the_model_answers(entry, entry.by):
            return why
        self.found.steps[step] += 1
        self.before = self.api
        self._put(entry)
        if entry.kind in {_PLACEMENTS, _GROUPS, _PODS}:
            self._moments.append((self.before, entry))
        for check in properties.ALWAYS:
            if why := check(Known(self.before), Known(self.api, done=self._done)):
                return why
        return None

    def _put(self, entry: Entry) -> None:
        resource = KINDS[entry.kind]
        if entry.what == "DELETED":
            known = self._known(entry)
            self.api = self.api if known is None else self.api.without(resource, known)[0]
            if known is not None and resource is PODS:
                self._note_end(known)
        else:
            self.api, _, _ = self.api.put(resource, entry.object, keep_version=True)

    def _note_end(self, pod: Stored) -> None:
        gang = properties.gang_key(pod)
        group = self.api.find(POD_GROUPS, *gang) if gang else None
        if group is not None:
            place = group.meta["uid"], properties.slot_in(pod)
            (self._done.add if pod.status.get("phase") == "Succeeded" else self._done.discard)(place)

    def _known(self, entry: Entry) -> Stored | None:
        meta = entry.object["metadata"]
        return self.api.find(KINDS[entry.kind], meta.get("namespace", ""), meta["name"])

    def _by_the_right_one(self, entry: Entry, writer: str) -> str | None:  # noqa: PLR0911 - one for each rule
        """What only one program may change: bindings, gates, placements and notes of them."""
        known = self._known(entry)
        if entry.what == "DELETED" or known is None:
            return None
        new = stored(entry.object)
        if entry.kind == _GROUPS and _note(new) != _note(known) and writer != "extender":
            return f"{writer} changes the placement that is noted in {_named(entry)}"
        if entry.kind != _PODS:
            return None
        node, asked = new.spec.get("nodeName"), entry.by
        if node != known.spec.get("nodeName"):
            if known.spec.get("nodeName") or asked is None or asked.verb != "bind":
                return f"{writer} moves {_named(entry)} to {node or 'no node'} without a binding"
            if is_musters(known.spec.get("schedulerName", "")) != (writer == "extender"):
                return f"{_named(entry)} is bound by {writer}"
        if new.spec.get("schedulingGates") != known.spec.get("schedulingGates") and writer not in {"extender", "user"}:
            return f"{writer} lifts a gate of {_named(entry)}"
        return None

    def _as_the_model_answers(self, entry: Entry, asked: Asked) -> str | None:
        """The model's API server would have done the same with a binding, an eviction or a deletion of a pod."""
        known = self._known(entry)
        if entry.kind != _PODS or asked.verb not in {"bind", "evict", "delete"}:
            return None
        if known is None or known.meta["uid"] != entry.object["metadata"]["uid"]:
            return f"{asked.verb} of {_named(entry)}, which is not there"
        if (asked.verb, known.meta["uid"], asked.came_s) in self._begun:
            return None  # the API server carries it out in several changes: a condition, a mark, the end
        self._begun.add((asked.verb, known.meta["uid"], asked.came_s))
        _, answer, _ = self.api.execute(_request(asked), asked.came_s)
        if isinstance(answer, APIError):
            return f"the API server has done what the model refuses: {asked.verb} of {_named(entry)}: {answer}"
        if asked.verb == "bind" and answer.spec["nodeName"] != entry.object["spec"].get("nodeName"):
            return f"{_named(entry)} is bound to another node than the model binds it to"
        return None

    def _request(self, at: int, entry: Entry, asked: Asked) -> str | None:
        """What must hold of a request of the extender at one of the moments that it may have acted on."""
        request = _request(asked)
        together = self._together(at, asked)
        if not entry.what and asked.code >= HTTPStatus.BAD_REQUEST:  # it was sent on what was over, and refused
            return properties.OF_REQUESTS[0](Known(self.api), request)
        if not entry.what:
            return None
        moments = [self.api, *self._earlier(asked)]
        for check in properties.OF_REQUESTS:
            why = check(Known(self.api, extender=together), request)
            if why and all(check(Known(moment, extender=together), request) for moment in moments[1:]):
                return why
            self.found.late += why is not None
        return None

    def _earlier(self, asked: Asked) -> list[Api]:
        """The objects before each change that the extender may not have known of when it sent a request."""
        found = []
        for api, entry in reversed(self._moments):
            answered_s = entry.by.answered_s if entry.by is not None else 0.0
            if answered_s < asked.came_s - LAG_S:
                break
            found.append(api)
        return found

    def _together(self, at: int, asked: Asked) -> At:
        """The bindings that are asked for with this one: of its gang and epoch, until a process ends.

        Where one ends, those that it would have sent are not in the trace, so every member counts as asked for.
        """
        if asked.verb != "bind":
            return Known(self.api).extender
        marks = _marks(asked)
        others = [other for _, other in self._binds if _marks(other) == marks and other.namespace == asked.namespace]
        last = max((place for place, other in self._binds if other in others), default=at)
        names_ = [other.name for other in others]
        if any(at < start <= last + _SOON for start in self._starts):
            names_ += [pod.meta["name"] for pod in self.api.all(PODS)]
        calls = tuple((Request("bind", PODS, asked.namespace, name), 0) for name in dict.fromkeys(names_))
        return At(b"", calls, may_cycle=True, next_s=None)  # type: ignore[arg-type]

    def _story(self, at: int) -> list[str]:
        gang = _gang(self.entries[at])
        told = [
            (place, each) for place, each in enumerate(self.entries[: at + 1]) if gang is None or _gang(each) == gang
        ]
        return [f"{place}. {_words(each)}" for place, each in told[-STORY:]]


_SOON = 40
"""Entries after the last binding within which the start of a new process shows that the old one had ended by then."""


def _marks(asked: Asked) -> tuple[str, str]:
    told = asked.body.get("annotations", {})
    return told.get(names.GROUP_NAME, asked.name), told.get(names.EPOCH, "")


def _request(asked: Asked) -> Request:
    body = msgspec.json.encode(asked.body)
    return Request(asked.verb, PODS, asked.namespace, asked.name, body, uid=asked.uid, version=asked.version)


def _note(group: Stored) -> str | None:
    return group.meta.get("annotations", {}).get(names.PLACEMENT)


def _named(entry: Entry) -> str:
    name = entry.object["metadata"]["name"] if entry.object else entry.by.name if entry.by else ""
    return f"{KINDS[entry.kind].kind} {name}"


def _gang(entry: Entry) -> str | None:
    """The name of the gang that an entry is about."""
    if entry.kind == _PODS and entry.object:
        return gang_of(msgspec.convert(entry.object, PODS.type))
    if entry.kind == _PODS and entry.by is not None:
        return entry.by.body.get("annotations", {}).get(names.GROUP_NAME) or None
    return entry.object.get("metadata", {}).get("name") if entry.kind in {_GROUPS, _PLACEMENTS} else None


def _words(entry: Entry) -> str:
    by = entry.by
    if entry.what == "STARTED":
        return f"{entry.kind} starts"
    asked = f"{who(by) or by.user}: {by.verb}, {by.code}" if by else "nobody"
    spec, status = entry.object.get("spec", {}), entry.object.get("status", {})
    said = {"node": spec.get("nodeName"), "epoch": spec.get("epoch"), "phase": status.get("phase")}
    told = ", ".join(f"{key} {text}" for key, text in said.items() if text)
    return f"{_named(entry)} {entry.what or 'unchanged'} ({asked}) {told}".rstrip()
