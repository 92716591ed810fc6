"""Certificates and keys: `authority` signs certificates of our own, `ssh` makes the keys of one workload's pods.

Promises files that are never half written, and keys that only their owner can read. It makes keys and asks nobody: it
must not import the processes or the command line. Start with `authority.Authority`.
"""
