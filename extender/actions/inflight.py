"""How many seats may be on their way at once: in all, for one queue, and for one gang.

The members of a gang are to reach kube-scheduler together, so that its barrier stays short; hence a limit in all. But
seats of a gang whose pods do not come (a quota is used up, an admission webhook is down) stay on their way until the
placement's deadline, and nobody else is to wait for that. So a gang counts for no more than half of what may be on its
way, whatever its size, a queue for no more than three quarters of it, and some seats are left to small gangs.
"""

from collections import Counter

from extender.framework.snapshot import Snapshot
from extender.state.gangs import GangView

LIMIT = 256
"""Seats that may be on their way at once; the gang that reaches it may exceed it, as it starts whole."""
MAX_SEATS = 3 * LIMIT
"""Seats on their way, counted as they are and not by shares, with which no gang is added but small ones."""
QUEUE_SHARE = 192
"""What a queue counts for at most when others ask."""
GANG_SHARE = 128
"""What a gang counts for at most."""
SMALL = 8
"""Gangs of so many seats or fewer may also use the reserve."""
RESERVE = 32
"""Seats above the limit that only small gangs may use."""


class SeatsOnTheirWay:
    """Counts the seats that placements hold for pods that are not bound yet, as limits see them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._gangs: Counter[str] = Counter()
        self._queues: Counter[str] = Counter()
        self._total = 0
        self._seats = 0
        for gang in snapshot.gangs:
            if seats := snapshot.on_their_way.get(gang.key, 0):
                self.add(gang, seats)

    def add(self, gang: GangView, seats: int) -> None:
        """So many more seats of a gang are on their way."""
        before = min(self._gangs[gang.key], GANG_SHARE)
        self._gangs[gang.key] += seats
        self._seats += seats
        more = min(self._gangs[gang.key], GANG_SHARE) - before
        used = min(self._queues[gang.queue], QUEUE_SHARE)
        self._queues[gang.queue] += more
        self._total += min(self._queues[gang.queue], QUEUE_SHARE) - used

    def admit(self, gang: GangView) -> bool:
        """Whether seats of this gang may be added."""
        reserve = RESERVE if gang.min_member - gang.taken <= SMALL else 0
        shares = max(self._total, self._queues[gang.queue])
        return shares < LIMIT + reserve and self._seats < MAX_SEATS + reserve
