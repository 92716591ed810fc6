"""Queues: the two permanent queues, and the state, gangs and pods of each queue.

`rules` decides and sums, without I/O; `controller` reads caches, executes Commands and writes. A queue's state depends
only on the objects, not on the order in which they were seen. The package must not import the controllers of Jobs and
gangs. Readers of the code start with `rules.at_rest`.
"""
