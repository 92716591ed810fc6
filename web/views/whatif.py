"""Content of the simulation's page: the fields of the form, the errors of these fields, and the result. Pure.

All fields of the form are untrusted, and a simulation costs the server time, so each field has a limit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from extender.explain.changes import DumpChange, changed
from extender.explain.clusterdump import ClusterDump
from extender.explain.own import QueueDemand, demands
from extender.explain.pools import in_pool, pools_of
from extender.explain.queues import QueueReport, changed_shares, queue_reports, queue_reports_of
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from extender.simulate.placing import SimulatedGang, simulate
from gangs.words import plain
from history.model import Scope
from muster.api.kubernetes.core import NAMESPACES, NODES, PRIORITY_CLASSES
from muster.api.volcano.scheduling import QUEUES
from webhook.offline.manifests import JSON, ManifestError, documents_in
from webhook.offline.submission import Submission

YAML_BYTES = 64 * 1024
"""Maximum size of the manifests in bytes; the largest examples have 4 KiB."""
OBJECTS = 20
"""Maximum number of objects in one simulation."""
JOB_PODS = 5_000
"""Maximum number of pods outside Volcano Jobs in one simulation, because each of these pods is reviewed
individually."""
NEW_NODES = 1_000
CHANGES = 20
"""Maximum number of queue changes, and of nodes to cordon."""
OUTCOMES = 200
"""Maximum number of gangs in the result; gangs of the manifests come first."""
_NAME_CHARS = 253
_NAME = "the manifests"


@dataclass(slots=True)
class WhatIfTrial:
    """Input of a form as typed by the user, with the errors of the form's fields."""

    manifests: str = ""
    namespace: str = ""
    add_nodes: str = ""
    like: str = ""
    cordon: str = ""
    queues: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    """Maps the name of a field to the field's error; the key `form` is for errors of several fields."""

    @property
    def empty(self) -> bool:
        """Return True if the form is empty."""
        return not (self.manifests or self.add_nodes or self.cordon or self.queues)


class GangOutcome(Struct, frozen=True):
    """The result of a simulation for one gang."""

    title: str
    submitted: bool
    starts: bool
    pods: int
    nodes: list[str]
    why: str
    queue: str
    """The gang's queue and queue position, if the gang waits."""
    evicts: list[str] = []
    """The gangs whose pods are evicted for this gang, with the work that they lose."""


class TrialResult(Struct, frozen=True):
    """The result of a simulation."""

    gangs: list[GangOutcome]
    more: int
    asked: list[QueueDemand]
    """Requests of new gangs and limits of their queues, for a caller who is not allowed to see the whole cluster."""
    shares: list[str]
    ignored: list[str]
    released: list[str]
    """Suspended workloads that are simulated as if they were released."""


def trial(form: Mapping[str, str], namespaces: Sequence[str]) -> WhatIfTrial:
    """Return the input of a form, with the errors that can be found without the cluster.

    `namespaces` has the namespaces from which the caller may choose; the first namespace is the default.
    """
    asked = WhatIfTrial(
        manifests=form.get("manifests", "").replace("\r\n", "\n"),
        namespace=form.get("namespace", "").strip() or (namespaces[0] if namespaces else ""),
        add_nodes=form.get("add_nodes", "").strip(),
        like=form.get("like", "").strip(),
        cordon=form.get("cordon", "").strip(),
        queues=form.get("queues", "").strip(),
    )
    _check_numbers(asked)
    if asked.namespace not in namespaces:
        asked.errors["namespace"] = (
            f"no namespace of this name is visible to you; there is {', '.join(namespaces[:5]) or 'none'}"
        )
    if len(asked.manifests.encode()) > YAML_BYTES:
        asked.errors["manifests"] = (
            f"the manifests have {len(asked.manifests.encode())} bytes, and at most {YAML_BYTES} are allowed"
        )
    return asked


def _check_numbers(asked: WhatIfTrial) -> None:
    text = asked.add_nodes
    if text and not (
        text.isascii() and text.isdecimal() and len(text) <= len(str(NEW_NODES)) and 1 <= int(text) <= NEW_NODES
    ):
        asked.errors["add_nodes"] = f"a whole number from 1 to {NEW_NODES}, not {text[:20]!r}"
    if bool(text) != bool(asked.like):
        asked.errors["like" if text else "add_nodes"] = "give both fields: the number of nodes, and the node to copy"
    for name in ("cordon", "queues"):
        parts = words(getattr(asked, name))
        if len(parts) > CHANGES or any(len(part) > _NAME_CHARS for part in parts):
            asked.errors[name] = f"at most {CHANGES} entries, each of at most {_NAME_CHARS} characters"


def words(text: str) -> list[str]:
    """Return the entries of a field; line breaks, commas or blanks separate the entries."""
    return text.replace(",", " ").split()


def _check_objects(objects: Sequence[JSON], namespaces: frozenset[str]) -> None:
    if len(objects) > OBJECTS:
        raise ManifestError(f"there are {len(objects)} objects, and one simulation can have at most {OBJECTS}")
    for each in objects:
        given = (each.get("metadata") or {}).get("namespace")
        if given is not None and not (isinstance(given, str) and given in namespaces):
            raise ManifestError(f"metadata.namespace: no namespace {str(given)[:_NAME_CHARS]!r} is visible to you")


def tried(
    asked: WhatIfTrial, namespaces: Sequence[str], dump: ClusterDump, scope: Scope, *, whole: bool
) -> TrialResult | None:
    """Run the simulation and return its result; on failure, return None and put the reason into the form's errors.

    `whole` is true if the caller may see the whole cluster. Other callers see only the requests of their gangs and the
    limits of these gangs' queues.
    """
    if not whole and (asked.add_nodes or asked.cordon or asked.queues):
        asked.errors["form"] = (
            "only users who may list the whole cluster can simulate these changes; all users can simulate manifests"
        )
        return None
    try:
        objects = list(documents_in(asked.manifests, _NAME, aliases=False))
        _check_objects(objects, frozenset(namespaces))
        submission = _submission(asked.namespace, objects, dump)
    except ManifestError as error:
        asked.errors["manifests"] = str(error)
        return None
    try:
        after = changed(dump, _change(asked, submission))
    except (UnknownNameError, ValueError) as error:
        asked.errors[_field_of(asked, str(error), dump)] = str(error)
        return None
    if not whole:
        known = {report.queue: report for report in queue_reports_of(dump.objects_of(QUEUES))}
        return TrialResult(
            [], 0, demands(WhatIf(after), submission.gangs, known), [], submission.ignored, submission.released
        )
    try:
        worlds = [WhatIf(in_pool(after, pool)) for pool in pools_of(after)]
        shares = list(changed_shares(_reports(dump), _reports(after))) if asked.queues else []
        outcomes = [outcome for each in worlds for outcome in simulate(each, submission.gangs)]
    except (UnknownNameError, ValueError) as error:
        asked.errors["form"] = str(error)
        return None
    mine = [each for each in outcomes if scope.has(each.gang.partition("/")[0])]
    mine.sort(key=lambda each: not each.submitted)
    return TrialResult(
        [_outcome(each) for each in mine[:OUTCOMES]],
        max(0, len(mine) - OUTCOMES),
        [],
        shares,
        submission.ignored,
        submission.released,
    )


def _reports(dump: ClusterDump) -> list[QueueReport]:
    return [report for pool in pools_of(dump) for report in queue_reports(WhatIf(in_pool(dump, pool)))]


def _submission(namespace: str, objects: Sequence[JSON], dump: ClusterDump) -> Submission:
    priorities = {item.metadata.name: item.value for item in dump.objects_of(PRIORITY_CLASSES)}
    known = dump.objects_of(NAMESPACES), dump.objects_of(QUEUES)
    submission = Submission(namespace, dump.taken_at, priorities, *known, most_pods=JOB_PODS)
    submission.add(objects, _NAME)
    submission.finish()
    return submission


def _change(asked: WhatIfTrial, submission: Submission) -> DumpChange:
    return DumpChange(
        asked.namespace,
        cordoned=words(asked.cordon),
        queues=words(asked.queues),
        added={asked.like: int(asked.add_nodes)} if asked.add_nodes else {},
        new=submission.items,
    )


def _field_of(asked: WhatIfTrial, why: str, dump: ClusterDump) -> str:
    """Return the name of the form field that an error is about."""
    there = {node.metadata.name for node in dump.objects_of(NODES)}
    if any(name not in there for name in words(asked.cordon)) and "node" in why:
        return "cordon"
    if asked.like and asked.like not in there and "node" in why:
        return "like"
    return "queues" if asked.queues else "form"


def _outcome(gang: SimulatedGang) -> GangOutcome:
    queue, why = "", ""
    if gang.why is not None:
        why = plain(gang.why.message)
        queue = f"{gang.why.queue.name}, place {gang.why.queue.place} of {gang.why.queue.waiting} in it"
    evicts = [f"{'moves' if each.moved else 'evicts'} {each.text}" for each in gang.evicts]
    return GangOutcome(gang.workload, gang.submitted, gang.placed, gang.slots, gang.nodes, why, queue, evicts)
