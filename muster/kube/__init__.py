"""Everything that talks to an API server.

There is one client, on an event loop: `loopclient` (with `reads`); `client` is the same for threads, which wait while
`loop` works. A call goes through `transport`, which is aiohttp with our limits; `codec` makes objects of its answer,
with `split` for what is nested too deeply, and `errors` says what can go wrong. `config` says where the server is and
who we are, as the `kubernetes` package reads it. A `reflector` keeps a `store` equal to the server over a `watch` and
tells the differences, `optional` one of a kind that may not be there; a `workqueue` has the keys that are to be worked
on, `lease` says who may act, `events` tells users.

It promises a typed answer or an `APIError` for every call, a limit of time and of bytes on every call, that one object
that cannot be read is left out alone, and tasks and threads that end when they are stopped. It knows Kubernetes but
nothing of gangs or jobs: it must not import what lies above it. Start with `client` for calls, with `reflector` for
caches.
"""
