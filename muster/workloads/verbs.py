"""Outcomes of `muster cancel`, `hold`, `release`, `move`, `priority` and `resize`, for each kind and state. Pure.

The row of a kind contains the fields to change (`kind.Verbs`). An outcome consists of the steps to take, in order, and
a sentence about the workload. If the verb is impossible for the workload, the sentence explains why and names an
alternative.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import Any, Literal, NamedTuple

from muster.api import names
from muster.api.limits import whole_number
from muster.api.unchecked import mapping, value_at
from muster.workloads.flow_jobs import JOB_FLOW
from muster.workloads.kind import Path, Place, Verbs, WorkloadKind, pod_templates, with_templates
from muster.workloads.podgroup import POD_GROUP
from muster.workloads.sample import JSON
from muster.workloads.table import KINDS

Verb = Literal["cancel", "hold", "release", "move", "priority", "resize"]
Condition = Literal["waiting", "running", "evicted", "suspended", "ended"]
"""State of a workload. A workload in the state "evicted" waits again after all its pods were evicted."""

_PREEMPTS = (
    "; a higher class may preempt gangs of lower classes at once: `muster simulate -f` of its manifest with the new "
    "class shows which"
)
_WAITS_THERE = "it waits there, and may displace gangs at once if that queue or its class entitles it to"
ACTED_ON = (*(kind for kind in KINDS if kind.verbs), POD_GROUP, JOB_FLOW)
"""Kinds to which the commands can be applied."""


class Step(NamedTuple):
    """One step of an outcome: a request, or `stopped`, which waits until the pods of a held workload have ended."""

    does: Literal["delete", "patch", "command", "gangs", "stopped"]
    value: Any = None
    """The merge patch for the workload or its PodGroups, or the action of a Command."""


class Outcome(NamedTuple):
    """The steps to take, and the rest of a sentence that begins with the workload's name, or a reason to refuse."""

    message: str
    steps: tuple[Step, ...] = ()
    refused: bool = False


class VerbRequest(NamedTuple):
    """A verb, with the value that the user has given."""

    verb: Verb
    to: str = ""
    """Name of the new queue or PriorityClass."""
    size: int = 0
    task: str = ""


def outcome(kind: WorkloadKind, workload: JSON, condition: Condition, request: VerbRequest) -> Outcome:
    """Return the outcome of a verb for a workload of this kind in this state."""
    verbs = kind.verbs or Verbs()
    if why := verbs.instead.get(request.verb):
        return Outcome(why.format(**mapping(workload.get("metadata"))), refused=True)
    if condition == "ended" and request.verb != "cancel":
        return Outcome("it has ended, so there is nothing to change: create it again", refused=True)
    try:
        return _OUTCOMES[request.verb](_Given(kind, verbs, workload, condition), request)
    except ValueError as error:
        return Outcome(str(error), refused=True)


def changed(workload: JSON, steps: Iterable[Step]) -> JSON:
    """Return a copy of the workload with the patches of these steps applied."""
    return reduce(_merged, (each.value for each in steps if each.does == "patch"), workload)


def condition_of(kind: WorkloadKind, workload: JSON, gangs: Condition) -> Condition:
    """Return the state of a workload: "ended", "held", or otherwise the given state of its gangs."""
    verbs = kind.verbs or Verbs()
    if verbs.ended(workload):
        return "ended"
    return "suspended" if is_held(kind, workload) else gangs


def released_by(name: str, namespace: str) -> str:
    """Return a message that explains how to start a suspended workload."""
    return f"`muster release {name} -n {namespace}` starts it"


def held_text(name: str, namespace: str) -> str:
    """Return the sentence about a suspended workload without pods."""
    return f"it is suspended (held): {released_by(name, namespace)}"


def is_held(kind: WorkloadKind, workload: Mapping[str, Any]) -> bool:
    """Return True if the workload is held or scaled to zero, so that it wants no pods."""
    verbs = kind.verbs or Verbs()
    if verbs.stop:
        return value_at(workload, verbs.stop) is True
    return _count(workload, verbs.count) == 0 if verbs.count else verbs.held(dict(workload))


def held_pods(kind: WorkloadKind, workload: Mapping[str, Any]) -> int:
    """Return the number of pods that a workload had before it was held; 0 if this number is unknown."""
    return (_held_replicas(workload) or 0) * _count(workload, kind.verbs.group_size if kind.verbs else ())


def size_edits(kind: WorkloadKind, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[Place, Any, Any]]:
    """Yield each place where an edit changes the size of a world that has pods, with the sizes before and after."""
    verbs = kind.verbs or Verbs()
    if verbs.scales or verbs.ended(dict(old)) or not is_world(kind, old) or is_held(kind, old) or is_held(kind, new):
        return
    for path in verbs.sizes:
        before, after = (_values(each, path, verbs.world_tasks(dict(old))) for each in (old, new))
        yield from ((place, one, after[place]) for place, one in before.items() if after.get(place, one) != one)


def is_world(kind: WorkloadKind, workload: Mapping[str, Any]) -> bool:
    """Return True if each pod contains the number of pods, so that a change of this number restarts all pods."""
    nodes = [node for _, node in with_templates(workload, kind.templates)]
    elastic = any(names.ELASTIC in mapping(value_at(each, ("metadata", "annotations"))) for each in nodes)
    return bool(kind.verbs and kind.verbs.world_tasks(dict(workload))) or (any(map(_labelled, nodes)) and not elastic)


class _Given(NamedTuple):
    """The workload to which a command is applied, with its state."""

    kind: WorkloadKind
    verbs: Verbs
    workload: JSON
    condition: Condition

    @property
    def title(self) -> str:
        return self.kind.resource.reference(str(value_at(self.workload, ("metadata", "name"))))

    @property
    def held(self) -> bool:
        return self.condition == "suspended"

    def switched(self, replicas: int | None = None, *, held: bool) -> Step:
        """Return the request that holds the workload, or releases it with this or the previous number of replicas.

        Raises ValueError if a release needs an unknown number of replicas, or if holding would delete the workload's
        volumes.
        """
        if self.verbs.commands:
            return Step("command", self.verbs.commands[0 if held else 1])
        if self.verbs.stop:
            return Step("patch", _at(self.verbs.stop, value=held))
        if held and self.verbs.claims and value_at(self.workload, self.verbs.claims) == "Delete":
            path = ".".join(self.verbs.claims)
            raise ValueError(f"scaling to 0 deletes its volumes, because {path} is Delete: first set it to Retain")
        wanted = replicas
        if wanted is None:
            wanted = _count(self.workload, self.verbs.count) if held else _held_replicas(self.workload)
        if wanted is None:
            raise ValueError(f"it was scaled to 0 by hand: muster resize {self.title} --size NUMBER starts it")
        note = {"metadata": {"annotations": {names.HELD_REPLICAS: str(wanted) if held else None}}}
        return Step("patch", {**note, **_at(self.verbs.count, value=0 if held else wanted)})

    def restarted(self, patch: JSON) -> tuple[Step, ...]:
        """Return the steps that hold the workload, change it, and release it once its pods have ended."""
        if self.verbs.commands:
            change = (Step("stopped"), Step("patch", patch))
            return self.switched(held=True), *change, self.switched(held=False)
        replicas = value_at(patch, self.verbs.count) if self.verbs.count else None
        wanted = _count(self.workload, self.verbs.count) if replicas is None else replicas
        held = _merged(patch, self.switched(wanted, held=True).value)
        return Step("patch", held), Step("stopped"), self.switched(wanted, held=False)


def _cancel(given: _Given, _: VerbRequest) -> Outcome:
    return Outcome("is deleted with its pods", (Step("delete"),))


def _hold(given: _Given, _: VerbRequest) -> Outcome:
    if given.held:
        return Outcome("is held already")
    then = f"`muster release {given.title}` returns it to the end of the queue"
    return Outcome(f"is held: it leaves its queue, and its pods end; {then}", (given.switched(held=True),))


def _release(given: _Given, _: VerbRequest) -> Outcome:
    if not given.held:
        return Outcome("is not held")
    return Outcome("is released: it waits in its queue", (given.switched(held=False),))


def _move(given: _Given, request: VerbRequest) -> Outcome:
    note = Step("patch", {"metadata": {"annotations": {names.MOVED_TO: request.to}}})
    gangs = Step("gangs", {"spec": {"queue": request.to}})
    if given.kind is POD_GROUP:
        return Outcome(f"is moved to queue {request.to}", (gangs._replace(does="patch"),))
    if given.held:
        return Outcome(f"is moved to queue {request.to}, where it waits once it is released", (note,))
    then = "its pods keep running, and are charged to that queue" if given.condition == "running" else _WAITS_THERE
    return Outcome(f"is moved to queue {request.to}: {then}", (gangs, note))


def _priority(given: _Given, request: VerbRequest) -> Outcome:
    there = (path for path in given.verbs.classes if value_at(given.workload, path[:-1]) is not None)
    patch = reduce(_merged, (_at(path, value=request.to) for path in there), dict[str, Any]())
    message, at_once = f"has the class {request.to}", (Step("patch", patch),)
    if given.held:
        return Outcome(f"{message}, which counts once it is released", at_once)
    if given.kind is POD_GROUP:
        return Outcome(f"{message}, whose priority counts up to the highest priority of its pods", at_once)
    if given.condition == "running" and given.verbs.count:
        return Outcome(
            f"it is running, and a new priority class would restart its pods: first use muster hold {given.title}",
            refused=True,
        )
    if given.condition == "running":
        return Outcome(f"{message}; a higher class counts for pods that are created from now on", at_once)
    if not given.verbs.count:
        return Outcome(f"{message}, and keeps its position among gangs of that class{_PREEMPTS}", at_once)
    again = f"{message}: its pods are created again, and it waits behind gangs of that class{_PREEMPTS}"
    return Outcome(again, given.restarted(patch))


def _resize(given: _Given, request: VerbRequest) -> Outcome:
    assert given.verbs.resized  # noqa: S101 # otherwise the row names an alternative
    patch = given.verbs.resized(given.workload, request.size, request.task)
    stops = any(size_edits(given.kind, given.workload, _merged(given.workload, patch)))
    message, minimum = f"has the size {request.size}", _minimum(given, patch, request.size, stops=stops)
    if given.held and given.verbs.count:
        return Outcome(f"{message}, and is released{minimum}", (given.switched(request.size, held=False),))
    if given.held:
        return Outcome(f"{message} once it is released{minimum}", (Step("patch", patch),))
    if not stops:
        return Outcome(f"{message}{minimum}", (Step("patch", patch),))
    pods = "all of its pods stop and start again" if given.condition == "running" else "its pods are created again"
    why = "because each pod contains the number of pods; it waits behind gangs of its class"
    return Outcome(f"{message}: {pods}, {why}{minimum}", given.restarted(patch))


def _minimum(given: _Given, patch: JSON, size: int, *, stops: bool) -> str:
    """Return a text about a Volcano Job's changed minimum, or about an annotation with a minimum below the new size."""
    after, before = (value_at(each, ("spec", "minAvailable")) or 0 for each in (patch, given.workload))
    if after != before and after:
        degraded = ", and it is Degraded until that many run" if given.condition == "running" and not stops else ""
        return f"; its minimum rises to {after}{degraded}" if after > before else f"; its minimum falls to {after}"
    if after or given.verbs.scales:
        return ""
    nodes = [node for _, node in with_templates(given.workload, given.kind.templates)]
    for node, key in product(nodes, names.MIN_MEMBER_KEYS):
        if least := whole_number(mapping(value_at(node, ("metadata", "annotations"))).get(key)):
            return f"; {least} of them still start together, because of annotation {key}" if least < size else ""
    return ""


_OUTCOMES: Mapping[Verb, Callable[[_Given, VerbRequest], Outcome]] = {
    "cancel": _cancel,
    "hold": _hold,
    "release": _release,
    "move": _move,
    "priority": _priority,
    "resize": _resize,
}


def _labelled(node: Mapping[str, Any]) -> bool:
    labels = mapping(value_at(node, ("metadata", "labels")))
    return names.FRAMEWORK in labels and not names.opted_out(labels)


def _held_replicas(workload: Mapping[str, Any]) -> int | None:
    """Return the replicas of a held workload before `muster hold` set them to 0; None without a readable record."""
    return whole_number(mapping(value_at(workload, ("metadata", "annotations"))).get(names.HELD_REPLICAS))


def _count(workload: Mapping[str, Any], path: Path) -> int:
    value = value_at(workload, path)
    return value if isinstance(value, int) else 1


def _values(workload: Mapping[str, Any], path: Path, tasks: Collection[str]) -> dict[Place, Any]:
    """Return the values of a field, keyed by place.

    For a field of tasks, return only the values in these tasks and in tasks with a framework.
    """
    return {
        (*place, path[-1]): node.get(path[-1])
        for place, node in pod_templates(workload, [path[:-1]])
        if "*" not in path or node.get("name") in tasks or _labelled(mapping(node.get("template")))
    }


def _at(path: tuple[str, ...], *, value: Any) -> JSON:
    """Return the merge patch that sets the field at one place."""
    return {path[0]: _at(path[1:], value=value)} if path else value


def _merged(one: JSON, other: JSON) -> JSON:
    """Merge two patches into one; the second one takes precedence."""
    both = {key: _merged(one[key], other[key]) for key in one.keys() & other.keys() if isinstance(one[key], dict)}
    return {**one, **other, **both}
