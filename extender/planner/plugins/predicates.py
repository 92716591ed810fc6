"""Filters of nodes by kube-scheduler's rules; docs/architecture.md lists the rules.

The session, not this plugin, compares requests with free capacity. Results that depend only on the node (cordon,
taints, selectors, node affinity) or on volumes (VolumeBinding, VolumeZone) are cached per pod class. Cached results are
computed again only for changed nodes. `planner.plugins.interpodaffinity` has the rules about other pods. An unbound
claim whose storage class waits for the first consumer excludes no node, because its volume is created on the pod's
node.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from extender.planner import reasons
from extender.planner.framework.answers import Codes
from extender.planner.framework.nodelabels import Columns, NodeLabels, Taints, tolerated_by
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.plugins.interpodaffinity import InterPodAffinity
from extender.planner.plugins.pernode import PerNode
from extender.planner.state.amounts import Mask
from extender.planner.state.neighbours import Spread
from extender.planner.state.podclass import PodClass
from extender.planner.state.podshape import ClaimUse
from extender.planner.state.tables import Volumes
from muster.api.kubernetes.meta import LabelSelectorRequirement
from muster.api.kubernetes.storage import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
)
from muster.api.muster.reason import NOTHING, Reason

_CORDON = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
_SELECTED, _TOLERATED = 1, 2
_BETA = "failure-domain.beta.kubernetes.io/"
_ZONE_LABELS = {
    f"{_BETA}zone": "topology.kubernetes.io/zone",
    f"{_BETA}region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Maps zone and region labels of volumes and nodes to their current names."""


class Predicates(PlainPlugin):
    """Plugin that filters nodes; its caches are kept between cycles."""

    name = "predicates"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._by_node, self._by_volumes, self._inclusion = PerNode(), PerNode(), PerNode()

    def on_session_open(self, session: Session) -> None:
        """Register both predicates, and count tentative pods, because they change the second predicate's results."""
        interpodaffinity = InterPodAffinity(session, lambda cls, spread: self._eligible(session, cls, spread))
        session.hooks.predicate.add(lambda cls: self._codes(session, cls))
        session.hooks.neighbour_predicate.add(interpodaffinity.codes)
        session.hooks.follow(interpodaffinity.count)

    def _codes(self, session: Session, cls: PodClass) -> Codes:
        snapshot, causes = session.snapshot, session.causes

        def by_volumes(cls: PodClass, columns: Columns) -> Codes:
            return _claims_refused(cls, session, columns)

        codes = self._by_node.answers_for(
            cls, snapshot, lambda cls, columns: refused(cls, session, columns), other=causes
        )
        if cls.gpu is not None and not cls.gpu.by_resource and snapshot.devices.divided.any():
            divided = snapshot.devices.divided[: len(codes)]
            codes = np.where((codes == 0) & divided, causes.code(reasons.cause.DIVIDED), codes).astype(np.int16)
        if not cls.claims:
            return codes
        volumes = self._by_volumes.answers_for(cls, snapshot, by_volumes, other=(causes, snapshot.volumes.generation))
        return np.where(codes == 0, volumes, codes)

    def _eligible(self, session: Session, cls: PodClass, spread: Spread) -> Mask:
        """Return the mask of nodes on which a spread constraint counts pods, according to its inclusion policies."""
        bits = self._inclusion.answers_for(
            cls, session.snapshot, lambda cls, columns: _inclusion(cls, session.labels, columns)
        )
        wanted = _SELECTED * spread.honor_affinity | _TOLERATED * spread.honor_taints
        mask: Mask = (bits & wanted) == wanted
        return mask


def refused(cls: PodClass, session: Session, columns: Columns) -> Codes:
    """Return each node's refusal code for a class, regardless of capacity and other pods; faulty nodes refuse all."""
    causes, labels, snapshot = session.causes, session.labels, session.snapshot
    tolerated = tolerated_by(cls.tolerations)

    def by_taints(of: Taints | None) -> int:
        if of is None:
            return causes.code(reasons.cause.GONE)
        if of.cordoned and not tolerated(_CORDON):
            return causes.code(reasons.cause.CORDONED)
        return 0

    def by_taint(of: Taints | None) -> int:
        taint = _untolerated(of, tolerated)
        return causes.code(reasons.cause.taint(*taint[:2])) if taint else 0

    codes = labels.by_taints(by_taints, columns)
    required = cls.required_node_affinity
    if cls.node_selector:
        _refuse(codes, ~labels.selected(cls.node_selector, columns), causes.code(reasons.cause.NODE_SELECTOR))
    if required is not None:
        _refuse(codes, ~labels.matching(required, columns), causes.code(reasons.cause.NODE_AFFINITY))
    codes = np.where(codes == 0, labels.by_taints(by_taint, columns), codes)
    if snapshot.faults:
        faulty = np.zeros(len(snapshot.nodes), dtype=np.int16)
        for name, fault in snapshot.faults.items():
            faulty[snapshot.index[name]] = causes.code(reasons.cause.faulty(fault))
        codes = np.where(faulty[columns] != 0, faulty[columns], codes)
    return codes


def _refuse(codes: Codes, where: Mask, code: int) -> None:
    codes[where & (codes == 0)] = code


def _inclusion(cls: PodClass, labels: NodeLabels, columns: Columns) -> Codes:
    """Return bits per node: 1 if the pod's selector and affinity match, 2 if its tolerations cover all taints."""
    tolerated = tolerated_by(cls.tolerations)
    selected = labels.selected(cls.node_selector, columns)
    if cls.required_node_affinity is not None:
        selected &= labels.matching(cls.required_node_affinity, columns)
    covered = labels.by_taints(lambda of: _TOLERATED * (_untolerated(of, tolerated) is None), columns)
    return np.where(labels.there(columns), _SELECTED * selected + covered, 0).astype(np.int16)


def _untolerated(of: Taints | None, tolerated: Callable[[tuple[str, str, str]], bool]) -> tuple[str, str, str] | None:
    """Return the first taint that keeps the pod off the node; None if there is no such taint."""
    hard = (taint for taint in (of.taints if of else ()) if taint[2] in {"NoSchedule", "NoExecute"})
    return next((taint for taint in hard if not tolerated(taint)), None)


def _claims_refused(cls: PodClass, session: Session, columns: Columns) -> Codes:
    """Return, for each node, the code of the cause why a volume claim excludes the node; 0 if no claim does."""
    codes: Codes = np.zeros(len(columns), dtype=np.int16)
    there = session.labels.there(columns)
    for use in cls.claims:
        for reason, free in _claim_refusals(use, session, columns):
            if reason:
                _refuse(codes, there & ~free, session.causes.code(reason))
    return codes


def _claim_refusals(use: ClaimUse, session: Session, columns: Columns) -> Iterator[tuple[Reason, Mask]]:
    """Yield each reason why a volume claim restricts the pod's nodes, with the mask of the nodes that stay allowed."""
    volumes = session.snapshot.volumes
    nowhere: Mask = np.zeros(len(columns), dtype=np.bool_)
    claim = volumes.claims.get(use.key)
    if claim is None:  # the claim of an ephemeral volume appears shortly after its pod
        yield NOTHING if use.ephemeral else reasons.cause.claim_missing(claim=use.key), nowhere
    elif claim.status.phase == "Lost":
        yield reasons.cause.claim_lost(claim=use.key), nowhere
    elif claim.metadata.deletion_timestamp is not None:
        yield reasons.cause.claim_deleted(claim=use.key), nowhere
    elif not claim.bound:
        yield _unbound(use, claim, volumes), nowhere
        if (selected := claim.metadata.annotations.get(SELECTED_NODE)) is not None:
            yield (
                reasons.cause.volume_made_elsewhere(claim=use.key),
                columns == session.snapshot.index.get(selected, -1),
            )
    elif (volume := volumes.volumes.get(claim.spec.volume_name)) is None:
        yield reasons.cause.volume_missing(volume=claim.spec.volume_name, claim=use.key), nowhere
    else:
        affinity, name = volume.spec.node_affinity, volume.metadata.name
        if affinity and affinity.required:
            there = session.labels.matching(affinity.required, columns, labels_only=True)
            yield reasons.cause.volume_elsewhere(volume=name), there
        yield reasons.cause.volume_in_another_zone(volume=name), _same_zone(volume, session.labels, columns)


def _unbound(use: ClaimUse, claim: PersistentVolumeClaim, volumes: Volumes) -> Reason:
    if claim.spec.volume_name:
        return reasons.cause.claim_unbound(claim=use.key)
    if not claim.storage_class:
        return reasons.cause.claim_without_class(claim=use.key)
    storage_class = volumes.classes.get(claim.storage_class)
    if storage_class is None:
        return reasons.cause.class_missing(name=claim.storage_class, claim=use.key)
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return reasons.cause.claim_unbound(claim=use.key)
    return NOTHING


def _same_zone(volume: PersistentVolume, labels: NodeLabels, columns: Columns) -> Mask:
    """Return the mask of nodes in the volume's zone or without zone labels."""
    has = {key: labels.of(key)[0][columns] >= 0 for key in _ZONE_LABELS}
    same: Mask = np.ones(len(columns), dtype=np.bool_)
    unlabelled = same.copy()
    for key, today in _ZONE_LABELS.items():
        wanted = volume.metadata.labels.get(key)
        if wanted is not None:
            condition = LabelSelectorRequirement(key, "In", wanted.split("__"))
            same &= np.where(has[key], labels.having(condition, columns), labels.having(condition, columns, today))
    for labelled in has.values():
        unlabelled &= ~labelled
    return same | unlabelled
