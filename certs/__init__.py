"""Certificates and keys of Muster's servers, and ssh keys for the pods of a workload (`ssh`).

`authority` signs certificates, and `certificate` reads them. `content` describes the Secret with the servers'
certificates, and the problems of this Secret. `rotation` decides the next step of a rotation without I/O, and `issuing`
creates the keys and certificates of a step. `controller.certificates` reads and writes the Secret.

Certificate and key files are replaced atomically. Keys are readable only by the files' owner and are never printed.
Every API server trusts the certificates of every replica at all times. The package must not import the packages of
Muster's processes or of the command line. Start reading at `rotation.next_step`.
"""
