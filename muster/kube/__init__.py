"""The client of an API server, and caches of its objects.

There is one client, on an event loop: `loopclient` (with `reads`); `client` is the same for threads, which wait while
`loop` works. A call goes through `transport`, which is aiohttp with limits; `codec` makes objects of its answer, and
`errors` has all that can go wrong. `config` has the server and the credentials. A `reflector` keeps a `store` equal to
the server over a `watch`, `optional` one of a kind that may not be there, `readable` what readiness says of them. A
`workqueue` has the keys that wait for work, `lease` elects the process that may act, `events` records Events for users.

It promises a typed answer or an `APIError` for every call, within limits of time and bytes. It promises that one object
that cannot be read is left out alone, and tasks and threads that end when they are stopped. It must not import what
lies above it. Start with `client` for calls, with `reflector` for caches.
"""
