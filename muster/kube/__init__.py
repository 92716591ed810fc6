"""Everything that talks to an API server.

One call goes through `client` (with `reads` and `calls`), `transport` and `connections`; `codec` makes objects of
answers, `errors` says what can go wrong. A `reflector` keeps a `store` equal to the server over a `watch`, a
`workqueue` has the keys that are to be worked on, `lease` and `follower` say who may act, `events` tells users.

It promises a typed answer or an `APIError` for every call, a time limit on every call, and threads that end when they
are stopped. It knows Kubernetes but nothing of gangs or jobs: it must not import what lies above it. Start with
`client` for calls, with `reflector` for caches.
"""
