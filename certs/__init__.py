"""Certificates and keys of Muster's servers, and ssh keys for the pods of a workload (`ssh`).

`authority` signs certificates, and `certificate` reads them. `content` describes the Secret of the servers'
certificates and its problems. `rotation` (pure) decides the next step of a rotation, and `issuing` creates the keys and
certificates of a step. `controller.certificates` reads and writes the Secret.

Files are replaced atomically. Keys are readable by their owner only and are never printed. Every API server trusts the
certificates of every replica at all times. The package must not import the processes or the command line. Readers of
the code start with `rotation.next_step`.
"""
