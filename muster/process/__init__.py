"""What the three processes share: structured logs (`logs`), health and metrics (`health`), and how an app is served.

`serve` runs an ASGI app under uvicorn, in the process's own loop or in a thread; `prefork` a Flask app under gunicorn,
whose worker is uvicorn's (`wsgi` is between the two). `bounds` says what a client may take, `tls` follows the files of
a server's certificate. `debug` is what a process tells on loopback, `loopback` says who is there; `tracing` sends
traces to who wants them.

Promises that nothing here knows what a process does: it gets an app and callbacks. HTTP is read and written by uvicorn
alone. It must not import the processes themselves, certs or the command line. Start with `serve`.
"""
