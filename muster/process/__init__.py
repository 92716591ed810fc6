"""Common parts of the processes: structured logs (`logs`), settings, health, metrics and /debug (`health`).

`serve` runs an ASGI app under uvicorn, in the process's own loop or in a thread. `prefork` runs a Flask app under
gunicorn, whose worker is uvicorn's. `bounds` limits the time and bytes of clients, `tls` follows the files of a
server's certificate, and `hosts` knows the names of the machine itself. `tracing` sends traces, and `counters` starts
counters at zero.

The package does not depend on a process's work: it gets an app and callbacks. Only uvicorn reads and writes HTTP. The
package must not import the processes themselves, certs or the command line. Start reading with `serve`.
"""
