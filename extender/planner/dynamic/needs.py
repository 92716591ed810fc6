"""The sum of the claims of a pod, for the class of pods that it is of."""

from dataclasses import dataclass, field

import msgspec

from muster.api.kubernetes.constraints import NodeSelector


@dataclass(frozen=True, slots=True)
class SharedClaim:
    """A claim that several pods may use, and that has no devices yet: the first of them takes it to its node."""

    key: str
    """namespace/name"""
    rows: tuple[tuple[str, int], ...]
    """The amounts that it takes there, however many pods use it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Of one pod, all claims together; equal needs have equal keys."""

    rows: tuple[tuple[str, int], ...] = ()
    """Resource → amount that the pod takes from its node, on top of what its containers ask for."""
    replaced: tuple[str, ...] = ()
    """Extended resources that the containers ask for and that count no more: what they stand for is in `rows`."""
    beside: tuple[tuple[str, int], ...] = ()
    """So much of these the node must have, in use or not."""
    shared: tuple[SharedClaim, ...] = ()
    nodes: tuple[NodeSelector, ...] = ()
    """Where the devices are that it has already."""
    problems: tuple[str, ...] = ()
    """Why no node will do, in words."""
    unseen: tuple[str, ...] = ()
    """Demands that cannot be counted, in words: kube-scheduler decides them."""
    told: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """The demands for people: each kind once, and nothing that only helps to count."""
    key: bytes = field(default=b"", compare=False)

    def __post_init__(self) -> None:
        """Makes the key."""
        if self:
            parts = (
                self.rows,
                self.replaced,
                self.beside,
                [(shared.key, shared.rows) for shared in self.shared],
                self.nodes,
                self.problems,
                self.unseen,
            )
            object.__setattr__(self, "key", msgspec.msgpack.encode(parts))

    def __bool__(self) -> bool:
        """True if there is anything."""
        return bool(
            self.rows or self.replaced or self.beside or self.shared or self.nodes or self.problems or self.unseen
        )

    @property
    def restricts(self) -> bool:
        """True if some nodes will not do, room aside."""
        return bool(self.beside or self.nodes or self.problems)


NO_NEEDS = Needs()
