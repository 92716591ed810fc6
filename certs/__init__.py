"""Certificates and keys: those of Muster's servers, and the ssh keys of one workload's pods (`ssh`).

`authority` signs, `certificate` reads. `content` is the Secret of the servers' certificates and its problems,
`rotation` decides the next step for it and is pure, `making` makes the keys and certificates of a step. The controller
reads and writes (`controller.certificates`).

Promises files that are never half written, and keys that only their owner can read and that nothing prints. Promises
that at every moment every API server trusts the certificates of every replica. It must not import the processes or the
command line. Start with `rotation.next_step`.
"""
