"""The controller of queues, which creates the two permanent queues and counts the gangs and pods of each queue.

`rules` computes states and sums without I/O; `controller` reads caches, executes Commands and writes objects. A queue's
state depends only on the objects, not on the order in which changes arrive. The package must not import the controllers
of Jobs and gangs. Start reading at `rules.at_rest`.
"""
