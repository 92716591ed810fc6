"""Outcomes of `muster cancel`, `hold`, `release`, `move`, `priority` and `resize`, for each kind and state. Pure.

The row of a kind has the members that change (`kind.Verbs`). An outcome has the steps to take, in order, and a sentence
about the workload; or the reason why there are none, with the way that works.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from muster.api import names
from muster.api.unchecked import find, mapping
from muster.api.volcano.scheduling import POD_GROUPS
from muster.workloads.kind import Path, Place, Verbs, WorkloadKind, pod_templates
from muster.workloads.sample import JSON
from muster.workloads.table import KINDS

Verb = Literal["cancel", "hold", "release", "move", "priority", "resize"]
Condition = Literal["waiting", "running", "evicted", "suspended", "ended"]
"""Evicted: it waits again, as all of its pods were evicted."""

_OPERATOR = "its pods are made by others"
POD_GROUP = WorkloadKind(
    POD_GROUPS,
    templates=(),
    verbs=Verbs(
        ended=lambda group: find(group, ("status", "phase")) == "Completed",
        classed=lambda _group, name: {"spec": {"priorityClassName": name}},
        in_place=True,
        instead={
            "cancel": f"{_OPERATOR}, and would wait for it without end: delete what makes them, or these pods first",
            "hold": f"{_OPERATOR}: hold what makes them",
            "release": f"{_OPERATOR}: release what makes them",
            "resize": f"{_OPERATOR}: change their number there; its minimum is spec.minMember",
        },
    ),
)
"""A PodGroup that a user or an operator makes for pods of its own."""
ACTED_ON = (*(kind for kind in KINDS if kind.verbs), POD_GROUP)
"""The kinds that have verbs."""


class Step(NamedTuple):
    """One request, or `stopped`: to wait until the pods of a held workload have ended."""

    does: Literal["delete", "patch", "command", "gangs", "stopped"]
    value: Any = None
    """The merge patch, of the workload or of its PodGroups, or the action of a Command."""


class Outcome(NamedTuple):
    """The rest of a sentence that begins with the workload's name, and the steps; or a sentence why there are none."""

    says: str
    steps: tuple[Step, ...] = ()
    refused: bool = False


class Asked(NamedTuple):
    """A verb with its value."""

    verb: Verb
    to: str = ""
    """The queue or the PriorityClass."""
    size: int = 0
    task: str = ""


def outcome(kind: WorkloadKind, workload: JSON, condition: Condition, asked: Asked) -> Outcome:
    """Return what a verb does to a workload of this kind, in this state."""
    verbs = kind.verbs or Verbs()
    if why := verbs.instead.get(asked.verb):
        return Outcome(why, refused=True)
    if condition == "ended" and asked.verb != "cancel":
        return Outcome("it has ended, so there is nothing to change: create it again", refused=True)
    return _OUTCOMES[asked.verb](_Given(kind, verbs, workload, condition), asked)


def condition_of(kind: WorkloadKind, workload: JSON, gangs: Condition) -> Condition:
    """Return the state of a workload, whose gangs are in this state if it neither has ended nor is held."""
    verbs = kind.verbs or Verbs()
    if verbs.ended(workload):
        return "ended"
    return "suspended" if is_held(kind, workload) else gangs


def is_held(kind: WorkloadKind, workload: Mapping[str, Any]) -> bool:
    """Return True if the workload wants no pods for now."""
    verbs = kind.verbs or Verbs()
    if verbs.stop:
        return find(workload, verbs.stop) is True
    return _count(verbs, workload) == 0 if verbs.count else verbs.held(dict(workload))


def size_edits(kind: WorkloadKind, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[Place, Any, Any]]:
    """Yield each place where an edit changes the size of a world that has pods, with the numbers before and after."""
    verbs = kind.verbs or Verbs()
    if verbs.scales or verbs.ended(dict(old)) or not is_world(kind, old) or is_held(kind, old) or is_held(kind, new):
        return
    for path in verbs.sizes:
        after = dict(_values(new, path, ()))
        yield from ((place, one, after[place]) for place, one in _values(old, path, ()) if after.get(place, one) != one)


def is_world(kind: WorkloadKind, workload: Mapping[str, Any]) -> bool:
    """Return True if each pod of the workload knows their number, so that another number takes a new start of all."""
    nodes = [workload, *(template for _, template in pod_templates(workload, kind.templates))]
    elastic = any(names.ELASTIC in mapping(find(each, ("metadata", "annotations"))) for each in nodes)
    labelled = any(names.FRAMEWORK in mapping(find(each, ("metadata", "labels"))) for each in nodes)
    return bool(kind.verbs and kind.verbs.restarts(dict(workload))) or (labelled and not elastic)


class _Given(NamedTuple):
    """The workload that a verb is about."""

    kind: WorkloadKind
    verbs: Verbs
    workload: JSON
    condition: Condition

    @property
    def called(self) -> str:
        return self.kind.resource.reference(str(find(self.workload, ("metadata", "name"))))

    @property
    def held(self) -> bool:
        return self.condition == "suspended"

    def stopping(self, replicas: int | None = None) -> Iterator[Step]:
        """Yield the request that holds it; released, it has these replicas, by default as many as now."""
        if self.verbs.commands:
            yield Step("command", self.verbs.commands[0])
        elif self.verbs.stop:
            yield Step("patch", _at(self.verbs.stop, value=True))
        else:
            kept = str(_count(self.verbs, self.workload) if replicas is None else replicas)
            yield Step("patch", _replicas(self.verbs, 0, kept))

    def starting(self, replicas: int | None = None) -> Iterator[Step]:
        """Yield the request that releases it; ValueError without a number of pods."""
        if self.verbs.commands:
            yield Step("command", self.verbs.commands[1])
        elif self.verbs.stop:
            yield Step("patch", _at(self.verbs.stop, value=False))
        else:
            kept = mapping(find(self.workload, ("metadata", "annotations"))).get(names.HELD_REPLICAS, "")
            if replicas is None and not str(kept).isdecimal():
                raise ValueError(f"it was scaled to 0 by hand: muster resize {self.called} --size NUMBER starts it")
            yield Step("patch", _replicas(self.verbs, int(kept) if replicas is None else replicas, None))

    def restarted(self, patch: JSON) -> tuple[Step, ...]:
        """Return the steps that hold it, change it, and release it once its pods have ended."""
        if self.verbs.commands:
            return (*self.stopping(), Step("stopped"), Step("patch", patch), *self.starting())
        replicas = None
        if not self.verbs.stop:
            wanted = find(patch, self.verbs.count)
            replicas = _count(self.verbs, self.workload) if wanted is None else int(wanted)
        held = [step._replace(value=_merged(patch, step.value)) for step in self.stopping(replicas)]
        return (*held, Step("stopped"), *self.starting(replicas))


def _cancel(given: _Given, _: Asked) -> Outcome:
    return Outcome("is deleted with its pods", (Step("delete"),))


def _hold(given: _Given, _: Asked) -> Outcome:
    if given.held:
        return Outcome("is held already")
    ends = "its pods end" if given.condition == "running" else "it leaves its queue"
    says = f"is held: {ends}; `muster release {given.called}` has it wait again, behind those that wait then"
    return Outcome(says, tuple(given.stopping()))


def _release(given: _Given, _: Asked) -> Outcome:
    if not given.held:
        return Outcome("is not held")
    try:
        return Outcome("is released: it waits for its turn", tuple(given.starting()))
    except ValueError as error:
        return Outcome(str(error), refused=True)


def _move(given: _Given, asked: Asked) -> Outcome:
    note = Step("patch", {"metadata": {"annotations": {names.MOVED_TO: asked.to}}})
    gangs = Step("gangs", {"spec": {"queue": asked.to}})
    if given.kind is POD_GROUP:
        return Outcome(f"is moved to queue {asked.to}", (gangs._replace(does="patch"),))
    if given.held:
        return Outcome(f"is moved to queue {asked.to}, where it waits once it is released", (note,))
    then = "its pods keep running, and count there" if given.condition == "running" else "it waits there"
    return Outcome(f"is moved to queue {asked.to}: {then}", (gangs, note))


def _priority(given: _Given, asked: Asked) -> Outcome:
    assert given.verbs.classed  # noqa: S101 # else the row says what to do instead
    patch, says = Step("patch", given.verbs.classed(given.workload, asked.to)), f"has the class {asked.to}"
    if given.held:
        return Outcome(f"{says}, which counts once it is released", (patch,))
    if given.condition == "running":
        if given.verbs.in_place:
            return Outcome(f"{says}; as far as it is higher, it counts for pods that are created from now on", (patch,))
        why = (
            f"it runs, and another class starts its pods again: muster hold {given.called}, then this, then release it"
        )
        return Outcome(why, refused=True)
    if given.kind is POD_GROUP:
        return Outcome(f"{says}, which counts as far as its pods have one as high", (patch,))
    if given.verbs.in_place:
        return Outcome(f"{says}, and keeps its place among those of that class", (patch,))
    return Outcome(
        f"{says}: its pods are created again, and it waits behind the others of that class",
        given.restarted(patch.value),
    )


def _resize(given: _Given, asked: Asked) -> Outcome:
    assert given.verbs.resized  # noqa: S101 # as above
    try:
        patch = given.verbs.resized(given.workload, asked.size, asked.task)
    except ValueError as error:
        return Outcome(str(error), refused=True)
    says = f"has the size {asked.size}"
    if given.held and given.verbs.count:
        return Outcome(f"{says}, and is released", tuple(given.starting(asked.size)))
    if given.held:
        return Outcome(f"{says} once it is released", (Step("patch", patch),))
    if given.verbs.scales or not is_world(given.kind, given.workload):
        return Outcome(says, (Step("patch", patch),))
    stops = "all of its pods stop and start again" if given.condition == "running" else "its pods are created again"
    return Outcome(f"{says}: {stops}, as each of them knows their number", given.restarted(patch))


_OUTCOMES: Mapping[Verb, Callable[[_Given, Asked], Outcome]] = {
    "cancel": _cancel,
    "hold": _hold,
    "release": _release,
    "move": _move,
    "priority": _priority,
    "resize": _resize,
}


def _count(verbs: Verbs, workload: Mapping[str, Any]) -> int:
    value = find(workload, verbs.count)
    return value if isinstance(value, int) else 1


def _values(node: Any, path: Path, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the value at a path, or that of each element of a list, with its place."""
    if not path:
        yield place, node
    elif path[0] == "*":
        for index, element in enumerate(node if isinstance(node, list) else ()):
            yield from _values(element, path[1:], (*place, index))
    else:
        yield from _values(mapping(node).get(path[0]), path[1:], (*place, path[0]))


def _replicas(verbs: Verbs, replicas: int, kept: str | None) -> JSON:
    return {"metadata": {"annotations": {names.HELD_REPLICAS: kept}}, **_at(verbs.count, value=replicas)}


def _at(path: tuple[str, ...], *, value: Any) -> JSON:
    """Return the patch of one member."""
    return {path[0]: _at(path[1:], value=value)} if path else value


def _merged(one: JSON, other: JSON) -> JSON:
    """Return both patches as one; the second counts where both have a value."""
    both = {key: _merged(one[key], other[key]) for key in one.keys() & other.keys() if isinstance(one[key], dict)}
    return {**one, **other, **both}
