"""The client of an API server, and caches of its objects.

There is one client, on an event loop: `loopclient` (with `reads`); `client` offers the same calls to threads, which
wait for the loop of `loop`. A call goes through `transport` (aiohttp with limits); `codec` decodes the response, and
`errors` defines all errors. `config` finds the server and the credentials. A `reflector` keeps a `store` in sync with
the server through a `watch`; `optional` does so for kinds that may not be served, and `readable` reports their
readiness. `offers` caches the largest resources that nodes have offered. A `workqueue` holds pending keys, `lease`
elects the leading process, and `events` records Events for users.

Every call returns a typed result or raises an `APIError`, within limits of time and bytes. If an object is unreadable,
only that object is skipped. Tasks and threads end when they are stopped. The package must not import higher layers.
Start reading with `client` for calls, with `reflector` for caches.
"""
