"""The client of an API server, and caches of its objects.

`loopclient` (with `reads`) is the client, which runs on an event loop. `client` offers the same calls to threads, which
wait while the event loop in `loop` executes them. `transport` (aiohttp with limits) sends each request, `codec` decodes
the response, and `errors` defines all errors. `config` finds the server and the credentials. A `reflector` keeps a
`store` in sync with the server through a `watch`. `optional` does the same for kinds that the server may not serve, and
`readable` records whether each kind can be read. `offers` caches the largest allocatable resources that each node has
had. A `workqueue` holds pending keys, `lease` elects the leading process, and `events` records Events for users.

Every call has limits on time and bytes, and returns a typed result or raises an `APIError`. If an object cannot be
decoded, only that object is skipped. The tasks and threads of the package end when they are stopped. The package
`muster.kube` must not import packages of higher layers. Start reading at `client` (calls) and `reflector` (caches).
"""
