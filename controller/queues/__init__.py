"""Queues: the two that always exist, the state of each, and the gangs and pods in it.

`rules` decides and adds up, both without I/O; `controller` reads caches, carries out Commands and writes. Promises that
a queue's state follows from the objects, not from the order in which they were seen. It must not import the controllers
of Jobs and gangs. Start with `rules.at_rest`.
"""
