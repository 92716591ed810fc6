"""The decisions about queues: pure functions of objects and running sums, no I/O, no clock.

`state` has the state that a queue should be in, and its status; `usage` adds up the requests of its pods;
`controller.queues.controller` carries it out. Start with `state.at_rest`. It must not import `muster.kube`.
"""
