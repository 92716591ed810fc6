"""Queues: the ones that always exist, the state of each, and what is in it.

`rules` decides and adds up, both without I/O; `controller` reads caches, carries out Commands and writes. Promises that
a queue's state follows from how things are, not from the order in which they were seen. It must not import the
controllers of Jobs and gangs. Start with `rules.state`.
"""
