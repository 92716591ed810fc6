"""Everything that talks to an API server.

There is one client, on an event loop: `loopclient` (with `reads`); `client` is the same for threads, which wait while
`loop` works. A call goes through `transport`, which is aiohttp with limits; `codec` makes objects of its answer,
and `errors` has all that can go wrong. `config` has the server and the credentials, as the `kubernetes` package reads
them. A `reflector` keeps a `store` equal to the server over a `watch` and tells the differences, `optional` one of a
kind that may not be there; a `workqueue` has the keys that wait for work, `lease` elects the process that may act,
`events` tells users.

It promises a typed answer or an `APIError` for every call, a limit of time and of bytes on every call, that one object
that cannot be read is left out alone, and tasks and threads that end when they are stopped. It knows Kubernetes but
nothing of gangs or jobs: it must not import what lies above it. Start with `client` for calls, with `reflector` for
caches.
"""
