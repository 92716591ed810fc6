"""Common parts of the processes: structured logs (`logs`), settings, health, metrics and /debug (`health`).

`serve` runs an ASGI app under uvicorn, in the process's own loop or in a thread. `prefork` runs a Flask app under
gunicorn, whose worker is uvicorn's. `bounds` limits the time and bytes that a client can use. `tls` reloads a server's
certificate when its files change, and `hosts` recognizes names of the machine itself. `tracing` sends traces, and
`counters` starts counters at zero.

The package does not depend on what a process does: it gets an app and callbacks. HTTP is only read and written by
uvicorn. The package must not import the processes themselves, certs or the command line. Readers of the code start with
`serve`.
"""
