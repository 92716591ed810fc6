"""The view of one caller: the part of the cluster that pages may show to this caller."""

from collections.abc import Sequence

from msgspec import Struct, field

from extender.explain.queues import OwnQueue, QueueReport, own_queues, queue_reports_of
from gangs.row import GangRow
from gangs.rows import RowSources
from history.model import EVERYTHING, Scope
from muster.api.kubernetes.admission import shared_name
from muster.api.kubernetes.core import NODES, Node
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.scheduling import QUEUES, PodGroup, Queue
from web.caches import PageCaches


class Caller(Struct, frozen=True, kw_only=True):
    """A user of the API server, with the rights that determine what the page may show."""

    name: str = ""
    """The user's name in the API server; empty on loopback, where the user has started the page."""
    scope: Scope = field(default_factory=Scope)
    """The namespaces in which the caller may list gangs."""
    nodes: bool = True
    """True if the caller may list nodes."""
    queues: bool = True
    """True if the caller may list Queues."""

    @property
    def account(self) -> str:
        """The account to which the caller's threads, slow requests and streams are charged."""
        return shared_name(self.name)

    @property
    def everything(self) -> bool:
        """True if the caller may see the whole cluster: all gangs, nodes and queues."""
        return self.scope == EVERYTHING and self.nodes and self.queues


class View:
    """The part of the cluster that one caller may see."""

    def __init__(self, caches: PageCaches, caller: Caller) -> None:
        self._caches = caches
        self._caller = caller

    @property
    def namespaces(self) -> list[str]:
        """The namespaces with gangs that the caller may see, sorted by name."""
        return [each for each in self._caches.namespaces() if self._caller.scope.has(each)]

    def rows(self, namespace: str | None = None) -> list[GangRow]:
        """Return the rows of `muster ps --all` that the caller may see, for one namespace or for all."""
        wanted = self.namespaces if namespace is None else [each for each in self.namespaces if each == namespace]
        return [row for each in wanted for row in self._caches.rows(each)]

    def objects(self, namespace: str) -> RowSources:
        """Return the objects from which a namespace's rows are built; none if the caller may not see the namespace."""
        return self._caches.objects(namespace) if self._caller.scope.has(namespace) else RowSources()

    def placements(self) -> list[Placement]:
        """Return the placements of the gangs that the caller may see."""
        return [each for name in self.namespaces for each in self._caches.objects_in(PLACEMENTS, name)]

    def queues(self) -> list[QueueReport]:
        """Return the report of each Queue, parents before their children; none if the caller cannot list Queues."""
        return queue_reports_of(self._caches.all(QUEUES)) if self._caller.queues else []

    def queue_objects(self) -> dict[str, Queue]:
        """Return the Queues by name; none if the caller is not allowed to list Queues."""
        return {each.metadata.name: each for each in self._caches.all(QUEUES)} if self._caller.queues else {}

    def own_queues(self) -> list[OwnQueue]:
        """Return what is known about queues from the gangs that the caller may see."""
        return own_queues(self._groups())

    def nodes(self) -> Sequence[Node]:
        """Return the nodes; none if the caller is not allowed to list nodes."""
        return self._caches.all(NODES) if self._caller.nodes else []

    def mark(self, page: str) -> tuple[int, ...]:
        """Return numbers that change whenever the content of a page may have changed for this caller.

        Pages are `queues`, `topology` and `gang/NAMESPACE`; any other name counts as a page of rows.
        """
        kind, _, namespace = page.partition("/")
        if kind == "gang":
            return (self._caches.changes(namespace),) if self._caller.scope.has(namespace) else ()
        of_rows = hash(tuple((each, self._caches.generation(each)) for each in self.namespaces))
        queues = self._caches.changes_of(QUEUES) if kind == "queues" and self._caller.queues else 0
        nodes = self._caches.changes_of(NODES) if kind == "topology" and self._caller.nodes else 0
        return of_rows, queues, nodes

    def _groups(self) -> list[PodGroup]:
        return [group for each in self.namespaces for group in self._caches.objects(each).groups]
