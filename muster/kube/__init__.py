"""Everything that talks to an API server.

There is one client, on an event loop: `loopclient` (with `reads` and `calls`); `client` is the same for threads, which
wait while `loop` works. A call goes through `transport`, `connections` and `exchange`, over what `dial` opens, and its
`answer` comes back; `codec` makes objects of it, `errors` says what can go wrong. A `reflector` keeps a `store` equal
to the server over a `watch`, and `mirror` tells the differences; a `workqueue` has the keys that are to be worked on,
`lease` and `follower` say who may act, `events` tells users. `config` says where the server is and who we are, from
what `kubeconfig` reads; for who has to log in, `logins` does.

It promises a typed answer or an `APIError` for every call, a time limit on every call, and tasks and threads that end
when they are stopped. It knows Kubernetes but nothing of gangs or jobs: it must not import what lies above it. Start
with `client` for calls, with `reflector` for caches.
"""
