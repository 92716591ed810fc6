"""The certificates of Muster's servers: one Secret, and the caBundles of the webhook configurations.

What to do is decided in the package `certs`: `certs.rotation` says in which order an authority changes. Here is what
reads and writes: `keeper`, one worker with one key; `options` are its flags, `metrics` what it tells, `sentences` its
Events. Promises that nothing of a key is ever logged or told, that a Secret which somebody else keeps is never written,
and that every write is refused by the API server if the object has changed since it was read. Start with
`keeper.Keeper.process`.
"""
