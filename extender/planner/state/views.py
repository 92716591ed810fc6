"""Views of gangs, built from changed objects, and the ledger entries that depend on the views.

An event only marks a gang as changed, because a gang of a thousand pods causes thousands of events; `refresh` builds
the views. The placed slots of failed or lost members are therefore out of date until the next view is built. All other
data are up to date after each event, except matches of demands that are still being compared
(`planner.state.comparisons`).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from operator import attrgetter

from extender.planner.ledger import Ledger
from extender.planner.state.access import Access
from extender.planner.state.answers import Answers
from extender.planner.state.avoided import FailedMembers
from extender.planner.state.claimants import Claimants
from extender.planner.state.comparisons import Comparisons
from extender.planner.state.devicetable import DeviceTable
from extender.planner.state.exclusions import Exclusions
from extender.planner.state.gangphase import ACTIVE
from extender.planner.state.gangs import GangView
from extender.planner.state.gangtable import GangTable
from extender.planner.state.minimums import floor_of
from extender.planner.state.nativegroups import NativeGroups
from extender.planner.state.placedslots import PlacedSlots
from extender.planner.state.podchanges import has_same_entry
from extender.planner.state.podclass import ClassTable
from extender.planner.state.pods import PodRecord
from extender.planner.state.podtable import PodTable
from extender.planner.state.spareentries import SpareEntries
from extender.planner.state.tables import Tables
from extender.planner.state.templates import Templates
from muster.api.muster.creator import counted_user
from muster.api.muster.node_faults import DEFAULT_RULES, FaultRules
from muster.api.muster.placement import Placement
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.names import DEFAULT_QUEUE
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup, Queue

MAX_COMPARISONS = 4
"""Maximum evaluations of a gang per refresh; a template that cannot be parsed could cause endless ones."""


class Views(Tables):
    """Base class of the state: nodes, pods, gangs, placements, queues, marks of changed gangs, and views of gangs."""

    def __init__(
        self,
        comparisons: int | None = None,
        later: Callable[[], None] = lambda: None,
        *,
        pool: str = DEFAULT_POOL,
        rules: FaultRules = DEFAULT_RULES,
    ) -> None:
        """Create the empty state of a node pool; objects of other pools are not planned.

        `rules` determine which nodes are suspect.

        If `comparisons` is None, new queries are compared with all pods at once, otherwise with about `comparisons`
        checks per event. With a limit, `later` is called, and `compare` continues with the remaining comparisons.
        """
        self._comparisons, self._later = comparisons, later
        self._released = False
        self.classes = ClassTable()
        self.access = Access(pool)
        self.ledger = Ledger(self.classes, self.access.queues)
        self.ledger.nodes.rules = rules
        super().__init__(self.ledger.nodes)
        self.devices = DeviceTable()
        self.pool = pool
        self.queues: Mapping[str, Queue] = self.access.queues
        """Maps a name to the queue of this name in the node pool."""
        self.pod_table = PodTable()
        self.pods: Mapping[str, PodRecord] = self.pod_table.records
        """Maps a UID to the pod's record, for pods of any scheduler, with or without a gang."""
        self._templates = Templates(self.classes, self.devices)
        self._gangs = GangTable(self._templates)
        self.groups: Mapping[str, PodGroup] = self._gangs.groups
        """Maps a key (`namespace/name`) to the PodGroup in any phase."""
        self.placements: Mapping[str, Placement] = self._gangs.placements
        """Maps a gang's key to its placement, possibly of an earlier PodGroup (see `placement_of`)."""
        self.jobs: Mapping[str, Job] = self._gangs.jobs
        """Maps the UID in a PodGroup's owner reference to the Volcano Job."""
        self._placed_slots = PlacedSlots(self.ledger)
        self._spares = SpareEntries(self.ledger, self.classes)
        self.failures = FailedMembers()
        self._unfollowed: set[str] = set()
        """Keys of gangs with failed or lost pods, whose placed slots are updated when the next view is built."""
        self.answers = Answers()
        """Answers to filter calls for pods without a gang that are not bound yet."""
        self.claimants = Claimants(
            self.devices, self.ledger, self.classes, self._templates, self.pod_table.records,
            equip=self._equip, job_changed=self._job_changed,
        )  # fmt: skip
        self.comparisons = Comparisons(
            self.classes, self.pod_table, self._templates,
            keep=self._keep_pod, job_changed=self._job_changed, equipped=self.claimants.equipped,
            released=self._release,
        )  # fmt: skip
        self.exclusions = Exclusions()
        self.native = NativeGroups(
            self.groups, self.exclusions.gangs,
            put=self._put_group, changed=self._gang_changed, namespace_queue=self.access.queue_of_namespace,
            claims_changed=self.claimants.on_group, pool=pool,
        )  # fmt: skip

    def refresh(self) -> None:
        """Give every member its slot, and build the views of changed gangs."""
        work: Counter[str] = Counter()
        while due := next((key for key in self._gangs.dirty if work[key] < MAX_COMPARISONS), None):
            work[due] += 1  # a template's demands may match pods of this or another gang
            self._check(due)
            if self._comparisons is None or not self._gangs.dirty:
                self._compare()
        for key in work:
            self._hold(key)

    def refresh_gang(self, key: str) -> None:
        """Refresh one gang if the gang has changed."""
        if key not in self._gangs.dirty and key in self._gangs.views:
            return
        self._check(key)
        self._compare()
        self._hold(key)

    def compare(self, comparisons: int) -> bool:
        """Continue comparing queries with pods; return True if the results may require a decision of the planner."""
        self._released = False
        self.comparisons.work(comparisons)
        return self._released or not self.comparisons.pending

    def _equip(self, uids: list[str]) -> None:
        self.comparisons.equip(uids)
        self._compare()

    def _release(self, keys: set[str]) -> None:
        self._gangs.dirty.update(keys)
        self._released = True

    def _check(self, key: str) -> None:
        other_classes = self._gangs.check(key, self.pod_table.of_gang(key), self.exclusions.of_gang(key))
        unfollowed = key in self._unfollowed
        self._unfollowed.discard(key)
        if unfollowed or (other_classes and (key in self._placed_slots or key in self.placements)):
            self._follow_placement(key)
        view = self._gangs.views.get(key)
        self._spares.follow(key, view)
        if view is not None:
            self.ledger.reserve(key, floor_of(view))

    def _hold(self, key: str) -> None:
        """Let a gang wait until its demands have been compared with all pods."""
        view = self._gangs.views.get(key)
        if view is not None:
            view.compared = not self.comparisons.hold(view)

    def _compare(self) -> None:
        if self.comparisons.pending:
            self.comparisons.work(self._comparisons)
            if self.comparisons.pending:
                self._later()

    def refreshed(self, key: str) -> GangView | None:
        """Refresh one gang and return its view."""
        self.refresh_gang(key)
        return self.gang(key)

    def gangs(self) -> list[GangView]:
        """Return the views of all gangs as of the last refresh, in the order in which the gangs were first seen."""
        return sorted(self._gangs.views.values(), key=attrgetter("arrival"))

    def gang(self, key: str) -> GangView | None:
        """Return the view of one gang as of the last refresh."""
        return self._gangs.views.get(key)

    def started(self, key: str) -> bool:
        """Return the current value of `GangView.started`.

        The gang is refreshed only if the number of its pods does not already determine the result.
        """
        certainly = self._gangs.certainly_started(key, self.pod_table)
        if certainly is not None:
            return certainly
        gang = self.refreshed(key)
        return gang is not None and gang.started

    def some_done(self, key: str) -> bool:
        """Return True if the gang's Job has recorded that members succeeded, whose pods may be gone."""
        return self._gangs.some_done(key)

    def placement_of(self, key: str) -> Placement | None:
        """Return the placement of a gang, unless it belongs to an earlier PodGroup of the same name."""
        return self._gangs.placement_of(key)

    def touch_all(self) -> None:
        """Let the next refresh build every view again, for example after this process becomes the leader."""
        self._gangs.dirty.update(self.groups)

    def _gang_changed(self, key: str | None) -> None:
        if key is not None:
            self._gangs.dirty.add(key)
            self._follow_placement(key)

    def _job_changed(self, uid: str) -> None:
        """Mark the gang of a Job for evaluation, because the Job's pod templates have changed."""
        self._gang_changed(self._gangs.of_job(self.jobs[uid]))

    def _follow_placement(self, key: str) -> None:
        """Set the ledger entries to exactly the slots of the gang's active placement."""
        placement = self.placements.get(key)
        active = placement is not None and placement.status.phase in ACTIVE
        if active:
            self.refresh_gang(key)
        self._placed_slots.follow(key, self.gang(key) if active else None)

    def _put_group(self, old: PodGroup | None, new: PodGroup | None) -> bool:
        key = self._gangs.on_group(old, new)
        if key is not None:
            group = self.groups.get(key)
            queue = (group.spec.queue or DEFAULT_QUEUE) if group else None
            meta = group.metadata if group else None
            self.ledger.moved(key, queue, counted_user(meta.namespace, meta.annotations) if meta else "")
        self._gang_changed(key)
        return key is not None

    def _keep_pod(self, record: PodRecord) -> None:
        known = self.pod_table.put(record)
        self.failures.note(known, record)
        self.native.on_pod(record)
        if known is not None and has_same_entry(known, record):
            self.claimants.named(known, record)
            if record.gang:
                self._gangs.dirty.add(record.gang)
            return
        if known is not None and known.gang and known.gang != record.gang:
            self._gangs.dirty.add(known.gang)
        if record.node:
            self.answers.forget(record.uid)
        self.ledger.follow(record)
        self.claimants.named(known, record)
        if record.gang:
            self._gangs.dirty.add(record.gang)
            if record.alive or record.waiting:
                self._placed_slots.pod_changed(record.gang, record)
            elif record.gang in self._placed_slots:
                self._unfollowed.add(record.gang)

    def _forget_pod(self, uid: str) -> None:
        self._gang_changed(self.exclusions.forget_pod(uid))
        self.ledger.left(uid)
        self.answers.forget(uid)
        record = self.pod_table.remove(uid)
        self.claimants.named(record, None)
        if record is None or not record.gang:
            return
        if not self.pod_table.members(record.gang):
            self.native.without_pods(record.gang)
        self._gangs.dirty.add(record.gang)
        if record.gang in self._placed_slots:
            self._unfollowed.add(record.gang)
