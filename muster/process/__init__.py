"""Modules that all processes use: `logs`, `settings`, and `health` (health checks, metrics and /debug).

`serve` runs an ASGI app under uvicorn, in the process's own loop or in a thread. `prefork` runs a Flask app under
gunicorn, with uvicorn's worker, and `draining` stops that worker without losing a request. `bounds` limits the time and
bytes that a client can use. `tls` reloads a server's certificate when the certificate's files change, and `hosts`
recognizes names of the machine itself. `tracing` sends traces, and `counters` starts counters at zero.

The package does not depend on the purpose of a process: it gets an app and callbacks. Only uvicorn reads and writes
HTTP. The package `muster.process` must not import the processes themselves, certs or the command line. Start reading at
`serve`.
"""
