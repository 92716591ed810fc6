"""Resources that pods use, by queue, gang and user, and the usage that counts against the limits of queues."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from extender.planner.limits import ClaimQueues, LimitedUse, Limits
from extender.planner.state.amounts import clipped, tally
from extender.planner.state.minimums import MinResources
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import Vector, scale, subtract

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Use:
    """Resources that a queue or gang uses, as amounts by name, because the set of the nodes' resources may change."""

    staying: Vector = field(default_factory=dict)
    leaving: Vector = field(default_factory=dict)
    """Resources of pods that are being deleted."""
    _copy: "Use | None" = field(default=None, init=False, repr=False, compare=False)
    """The last copy, if the usage has not changed since."""

    def add(self, amounts: Mapping[str, int], sign: int, *, leaving: bool) -> None:
        """Add the resources of one pod; with sign -1, subtract them."""
        self._copy = None
        for resource, amount in amounts.items():
            tally(self.leaving if leaving else self.staying, resource, sign * amount)

    def copy(self) -> "Use":
        """Return a copy of the usage, which is for reading only: all copies of an unchanged usage are one object."""
        if self._copy is None:
            self._copy = Use(dict(self.staying), dict(self.leaving))
        return self._copy


class QueueUse:
    """Usage by queue, by queue and user, and by gang, and the usage that counts against the limits of queues."""

    def __init__(self, known: Mapping[str, Queue] = MappingProxyType({})) -> None:
        self.queues: dict[str, Use] = {}
        """Maps a queue to its own usage, without its child queues; queues without usage are left out."""
        self.gangs: dict[str, Use] = {}
        """Maps a gang to its usage; gangs without usage are left out."""
        self.users: dict[tuple[str, str], Use] = {}
        """Maps a queue and a user to the resources that the user uses in the queue."""
        self.gpus: dict[tuple[str, str], int] = {}
        """Thousandths of nvidia.com/gpu by queue and node."""
        self.queue_of: dict[str, str] = {}
        """Maps the key of a gang with a known PodGroup to its queue."""
        self.user_of: dict[str, str] = {}
        """Maps the key of a gang with a known PodGroup to its creator."""
        self.claims = ClaimQueues()
        self.minimums = MinResources()
        self._known = known
        self._limited: LimitedUse | None = None

    @property
    def limited(self) -> LimitedUse:
        """Limits of queues and the usage that counts against the limits; computed again only after `limits_changed`."""
        if self._limited is None:
            self._limited = LimitedUse(Limits(self._known), self.claims, self.minimums)
            for (queue, user), use in self.users.items() if self._limited.limits.bounds else ():
                for amounts in filter(None, (use.staying, use.leaving)):
                    self._limited.place(queue, user, amounts)
            for gang in self.minimums if self._limited.limits.bounds else ():
                self._limited.place(self.queue_of[gang], self.user_of[gang], self.minimums.rest(gang))
            self._limited.count_once()
        return self._limited

    def limits_changed(self) -> None:
        """Read all limits of queues again on the next use, after a limit or the tree of queues has changed."""
        self._limited = None

    def count(
        self,
        gang: str | None,
        queue: str,
        requests: Mapping[str, int],
        sign: int,
        *,
        leaving: bool = False,
        user: str = "",
        claim: str = "",
    ) -> None:
        """Add (or subtract) one pod's resources. `queue` and `user` apply if the gang's queue and user are unknown.

        Devices of a named `claim` are charged in addition to the minResources of the gang.
        """
        amounts = {resource: clipped(amount) for resource, amount in requests.items()}
        if gang is not None:
            _add(self.gangs, gang, amounts, sign, leaving=leaving)
            user = self.user_of.get(gang, user)
        queue = self.queue_of.get(gang or "", queue)
        _add(self.queues, queue, amounts, sign, leaving=leaving)
        _add(self.users, (queue, user), amounts, sign, leaving=leaving)
        change = scale(amounts, sign) if claim or gang is None else self.minimums.count(gang, amounts, sign)
        if self._limited is not None:
            self._limited.place(queue, user, change, claim=claim)

    def reserve(self, gang: str, floor: Vector, used: Vector) -> None:
        """Charge a gang whose pods use `used` at least `floor`; without a floor, charge exactly `used`."""
        before = self.minimums.rest(gang)
        self.minimums.put(gang, floor, used)
        if self._limited is not None and (change := subtract(self.minimums.rest(gang), before)):
            self._limited.place(self.queue_of[gang], self.user_of[gang], change)


def _add(uses: dict[K, Use], name: K, amounts: Mapping[str, int], sign: int, *, leaving: bool) -> None:
    use = uses.setdefault(name, Use())
    use.add(amounts, sign, leaving=leaving)
    if not use.staying and not use.leaving:
        del uses[name]
