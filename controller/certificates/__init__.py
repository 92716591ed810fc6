"""The certificates of Muster's servers: one Secret, and the caBundles of the webhook configurations.

The package `certs` decides: `certs.rotation` says in which order an authority changes. This package reads and writes:
`keeper` is a worker with one key; `options` are its settings, `telling` has its metrics and Events. Promises that
nothing of a key is ever logged or told, that a Secret of another issuer is never written, and that the API server
refuses every write if the object has changed since it was read. Start with `keeper.Keeper.process`.
"""
