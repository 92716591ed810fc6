"""Events and usage of every gang, which are stored longer than the API objects.

One process records the state of the API; the web page and the command line read the records. The package imports
`muster` and `gangs`, but never the webhook, the extender or the controller: it only relies on API objects.

`recorder` watches and commits. Each observation of an object (`observations`) changes the `entries`: `gangruns` handles
whole gangs, and `members` handles pods; `groups` and `pods` read the objects. `model` defines the rows, and `schema`
and `migrations/` define the tables. `store` opens SQLite or PostgreSQL, and `retain` drops the details of old days.
`integral` computes usage over time from the data of `spans`. `read` and `usage` answer queries, each for a `Scope`.
`answers` defines the queries of the web page and the commands. `tally` and `publish` publish the usage of queues.
Readers of the code start with `model`, then `entries`.
"""
