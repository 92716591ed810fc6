"""Queues: the two that always exist, and the state, gangs and pods of each.

`rules` decides and sums, without I/O; `controller` reads caches, executes Commands and writes. A queue's state depends
only on the objects, not on the order in which they were seen. It must not import the controllers of Jobs and gangs.
Start with `rules.at_rest`.
"""
