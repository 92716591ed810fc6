"""Reservations: what is kept for a gang that waits for room at the head of its queue, so that it cannot starve.

EASY backfill on arrays. `ends` says what running pods give back and when; `find` looks for the earliest time at which
a gang fits, and for nodes to keep where no time is known; `book` holds the reservations of one cycle and says what each
other gang may use; `words` has the sentences. They promise no I/O and no clock. `allocate` asks; start at `book`.
"""
