"""Certificates and keys: those of our servers, and the ssh keys of one workload's pods (`ssh`).

`authority` signs, `certificate` reads. What stands in the Secret of our servers' certificates is in `content`, what to
do next about it in `rotation`, which is pure; `making` makes what that asks for, `since` knows for how long something
has been so, and `problems` says what is wrong. The controller reads and writes (`controller.certificates`).

Promises files that are never half written, keys that only their owner can read and that nothing prints, and an order in
which at every moment everybody trusts what everybody shows. It asks nobody: it must not import the processes or the
command line. Start with `rotation.next_step`.
"""
