"""Reservations: nodes for a gang that waits for room at the head of its queue, so that it cannot starve.

EASY backfill on arrays. `ends` says what running pods give back and when; `find` looks for the earliest time at which
a gang fits, and for nodes to reserve where no time is known; `reservation` is what is reserved for one gang, and what
that leaves to others; `book` has the reservations of one cycle. `planner.reasons.queues` has the sentences. They
promise no I/O and no clock. `allocate` asks; start at `book`.
"""
