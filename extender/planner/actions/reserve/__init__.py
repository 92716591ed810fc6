"""Reservations: nodes that are held for the first waiting gang of a queue, so that the gang cannot starve.

The reservations implement EASY backfill on arrays. `ends` has the expected ends of running pods. `reservation` finds
the earliest time at which a gang fits, or nodes to reserve if no time is known. The module also decides which queues
must respect the reservation. `heads` has the reservations of one cycle; a head is the first waiting gang of a queue.
`planner.reasons.queues` has the messages. The package uses no I/O and no clock. Start reading at `heads`.
"""
