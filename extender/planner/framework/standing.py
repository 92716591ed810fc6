"""What a plugin knows of one queue, for its status."""

from dataclasses import dataclass

from muster.resources.vector import Vector


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """Amounts in milli-CPU and base units; each counts the queues below."""

    fair_share: Vector
    deserved: Vector
    usage: Vector | None
    """Its mean over time; None where nobody keeps that."""
