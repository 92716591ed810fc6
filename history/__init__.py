"""What happened to every gang, and who used what: kept longer than the objects of the API.

One process records what the API has; the page and the command line read. What lives here imports `muster` only, never
the webhook, the extender or the controller: it believes what is in the API, like any other reader.

`recorder` watches and commits; `book` decides what is written, by what `groups` (PodGroups, Placements, Jobs) and
`pods` tell of a change; `looks` catches up after a restart. `model` has the rows, `schema` and `migrations/` their
tables, `store` SQLite and PostgreSQL, `retain` drops days. `read` and `usage` answer, each for a `scope`; `tally` and
`publish` tell others what queues have held. Start with `model`, then `book`.
"""
