"""Reservations: nodes for the first waiting gang of a queue, so that it cannot starve.

EASY backfill on arrays. `ends` has the expected ends of running pods. `reservation` finds the earliest time at which a
gang fits, or nodes to reserve where no time is known, and which queues that binds. `heads` has the reservations of one
cycle. `planner.reasons.queues` has the sentences. They promise no I/O and no clock. Start at `heads`.
"""
