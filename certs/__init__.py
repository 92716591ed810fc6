"""Certificates: an authority of our own (`authority`), and the ssh keys of one workload's pods (`ssh`).

Promises files that are never half written, and keys that only their owner can read. It makes keys and asks nobody: it
must not import the processes or the command line. Start with `authority.Authority`.
"""
