"""Certificates: an authority of our own, and what it signs.

Promises files that are never half written, and keys that only their owner can read. It must not import the processes
or the command line.
"""
