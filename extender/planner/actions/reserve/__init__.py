"""Reservations: nodes that are held for the first waiting gang of a queue, so that the gang cannot starve.

The package implements EASY backfill on arrays: a later gang may start first only if it does not delay the reserved
start. `ends` computes when running pods are expected to end. `reservation` finds the earliest time at which a gang
fits, or nodes to reserve if no time is known. `reservation` also determines which queues must respect a reservation.
`heads` manages the reservations of one cycle, each for the first waiting gang of a queue. `planner.reasons.queues` has
the messages about reservations. The package uses no I/O and no clock. Start reading at `heads`.
"""
