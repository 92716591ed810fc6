"""Filter of nodes by device claims (resource.k8s.io/v1), for reasons other than the number of devices.

The session counts devices like ordinary resources (`planner.dynamic.rows`). The plugin `dynamicresources` handles
missing claims, claims that already have devices, and shared claims. kube-scheduler's DynamicResources plugin, which
allocates every device, makes the final decision.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from extender.planner import reasons
from extender.planner.dynamic.needs import SharedClaim
from extender.planner.framework.answers import Codes
from extender.planner.framework.nodelabels import Columns
from extender.planner.framework.operations import Eviction, Operation
from extender.planner.framework.registry import OwnArgument, PlainPlugin, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.plugins.pernode import PerNode
from extender.planner.state.amounts import Amounts, row_along
from extender.planner.state.podclass import PodClass

GROUP_CLAIMS = "groupClaims"


class DynamicResources(PlainPlugin):
    """Plugin that filters nodes by device claims; placements and evictions of the session update the shared claims."""

    name = "dynamicresources"
    OWN_ARGUMENTS: ClassVar[Mapping[str, OwnArgument]] = {
        GROUP_CLAIMS: OwnArgument(
            "false",
            "`true` if Muster's own kube-scheduler has the feature gates `GenericWorkload` and "
            "`DRAWorkloadResourceClaims` enabled, with which it assigns a PodGroup's claim to the pods "
            "(docs/native-podgroups.md)",
        )
    }

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, tuple(self.OWN_ARGUMENTS))
        given = arguments.get(GROUP_CLAIMS, False)
        if str(given).lower() not in {"true", "false"}:
            raise ValueError(f"plugin {self.name!r}: {GROUP_CLAIMS} is {given!r}; the value must be true or false")
        self._group_claims = str(given).lower() == "true"
        self._by_node = PerNode()

    def on_session_open(self, session: Session) -> None:
        """Register the predicates, and the function that counts the users of shared claims."""
        shared = SharedClaims(session)
        session.hooks.predicate.add(lambda cls: self._codes(session, cls))
        session.hooks.neighbour_predicate.add(shared.codes)
        session.hooks.follow(shared.count)

    def _codes(self, session: Session, cls: PodClass) -> Codes | None:
        needs, snapshot, causes = cls.needs, session.snapshot, session.causes
        problems = needs.problems
        if needs.of_group and not (problems or self._group_claims):
            problems = (reasons.devices.claim_of_group(claim=needs.of_group[0]),)
        if not (needs.beside or needs.nodes or problems):
            return None
        if problems:
            return np.full(len(snapshot.nodes), causes.code(problems[0]), dtype=np.int16)

        def by_node(cls: PodClass, columns: Columns) -> Codes:
            there = [session.labels.matching(selector, columns) for selector in cls.needs.nodes]
            elsewhere = session.labels.there(columns) & ~np.logical_and.reduce(there)
            return np.where(elsewhere, causes.code(reasons.devices.ELSEWHERE), 0).astype(np.int16)

        codes: Codes = np.zeros(len(snapshot.nodes), np.int16)
        if needs.nodes:
            codes = self._by_node.answers_for(cls, snapshot, by_node, other=causes)
        return _without_devices(session, codes, snapshot.allocatable, needs.beside)


def _without_devices(session: Session, codes: Codes, amounts: Amounts, rows: Iterable[tuple[str, int]]) -> Codes:
    """Return `codes`, with a code for missing devices on nodes that have fewer devices than requested."""
    for resource, amount in rows:
        row, code = session.snapshot.axis.get(resource), session.causes.code(reasons.cause.scarce(resource))
        lacks = amounts[row] < amount if row is not None else True
        codes = np.where((codes == 0) & lacks, code, codes).astype(np.int16)
    return codes


class SharedClaims:
    """Shared claims that have no devices yet.

    The first pod that uses a shared claim determines its node, and the other pods must use the same node.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        index = session.snapshot.index
        self._users: dict[str, Counter[int]] = {
            key: Counter({index[node]: pods for node, pods in nodes.items() if node in index})
            for key, nodes in session.snapshot.shared_claims.items()
        }

    def codes(self, cls: PodClass) -> Codes | None:
        """Return each node's refusal code for a pod that names device claims; None for other pods."""
        if not cls.needs.named:
            return None
        snapshot, causes = self._session.snapshot, self._session.causes
        codes: Codes = np.zeros(len(snapshot.nodes), dtype=np.int16)
        if going := next((claim.key for claim in cls.needs.named if self._session.claims.given_away(claim)), ""):
            codes[:] = causes.code(reasons.devices.claim_going(claim=going))
            return codes
        for shared in cls.needs.shared:
            column = self._column(shared)
            if column is None:  # the first pod needs a node with devices for the claim
                codes = _without_devices(self._session, codes, snapshot.free, shared.rows)
            else:
                there = np.arange(len(codes)) == column
                code = causes.code(reasons.devices.elsewhere_used(claim=shared.key))
                codes = np.where((codes == 0) & ~there, code, codes).astype(np.int16)
        return codes

    def count(self, entry: Operation | Eviction, sign: int) -> None:
        """Update the numbers of users of shared claims by one step of a trial."""
        snapshot = self._session.snapshot
        for shared in entry.cls.needs.shared:
            users = self._users.setdefault(shared.key, Counter())
            before = self._column(shared)
            users[entry.column] += sign * entry.size
            if users[entry.column] <= 0:
                del users[entry.column]
            after = self._column(shared)
            if before != after:
                row = row_along(snapshot.axis, snapshot.free.shape[0], dict(shared.rows))
                if before is not None:
                    snapshot.free[:, before] += row
                if after is not None:
                    snapshot.free[:, after] -= row

    def _column(self, shared: SharedClaim) -> int | None:
        """Return the column of the node on which pods use the claim.

        A claim without devices is used on several nodes only if a user has bound pods manually.
        """
        return next(iter(self._users.get(shared.key, ())), None)
