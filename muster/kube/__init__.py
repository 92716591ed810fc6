"""The client of an API server, and caches of its objects.

The client runs on an event loop: `loopclient` (with `reads`). `client` offers the same calls to threads, which wait
while the event loop in `loop` executes them. A call goes through `transport` (aiohttp with limits); `codec` decodes the
response, and `errors` defines all errors. `config` finds the server and the credentials. A `reflector` keeps a `store`
in sync with the server through a `watch`; `optional` does the same for kinds that may not be served, and `readable`
reports if each kind can be read. `offers` caches the largest allocatable resources that each node has had. A
`workqueue` holds pending keys, `lease` elects the leading process, and `events` records Events for users.

Every call has limits on time and bytes, and returns a typed result or raises an `APIError`. If an object cannot be
decoded, only that object is skipped. Tasks and threads end when they are stopped. The package must not import higher
layers. Readers of the code start with `client` (calls) and `reflector` (caches).
"""
