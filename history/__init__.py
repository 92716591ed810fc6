"""Events of every gang, and usage: kept longer than the objects of the API.

One process records what the API has; the page and the command line read. What lives here imports `muster` and `gangs`,
never the webhook, the extender or the controller: it believes what is in the API, like any other reader.

`recorder` watches and commits. Each of the `looks` at an object changes the `entries`: those at whole gangs by `lives`,
those at pods by `members`; `groups` and `pods` read the objects. `model` has the rows, `schema` and `migrations/` their
tables, `store` SQLite and PostgreSQL, `retain` drops days. `integral` is usage over time, of what `spans` reads. `read`
and `usage` answer, each for a `Scope`. `answers` has the questions of the page and of commands. `tally` and `publish`
publish what queues have held, and
`carried` is what was published before a new store began. Start with `model`, then `entries`.
"""
