"""What the three processes share: structured logs (`logs`), health and metrics (`health`), and how an app is served.

`debug` is what a process tells on loopback, `loopback` says who is there; `tracing` sends traces to who wants them.

`server` runs a Flask app under gunicorn. `worker` gives its threads requests that are whole, and nothing else: it reads
them from each `connection` without waiting, `framing` says where one ends. `embedded` serves coroutines (`calls`) in a
process's own event loop: over plain HTTP with `http1`, over TLS with `rsgi` and `tls`, of the files of `tlsfiles`.
Promises that nothing here knows what a process does: it gets an app and callbacks. It must not import the processes
themselves, certs or the command line. Start with `server`.
"""
