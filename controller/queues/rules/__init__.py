"""What a queue is and has, decided: pure functions of objects and running sums, no I/O, no clock.

`state` says which state a queue should be in and what its status says, `usage` adds up what its pods request;
`controller.queues.controller` carries it out. Start with `state.at_rest`. It must not import `muster.kube`.
"""
