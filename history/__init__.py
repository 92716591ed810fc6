"""Recorder of every gang's events and usage, which are stored longer than the API objects.

One process records changes of the API objects; the web page and the command line read the records. The package imports
`muster` and `gangs`, but never the webhook, the extender or the controller, because it relies only on API objects.

`recorder` watches objects and commits rows to the store. Each observation of an object (`observations`) changes the
`entries`. `gangruns` processes whole gangs, and `members` processes pods; `groups` and `pods` read the objects' fields.
`model` defines the rows, and `schema` and `migrations/` define the tables. `store` opens SQLite or PostgreSQL, and
`retain` aggregates the details of old days. `integral` computes usage over time from the time spans in `spans`. `read`
and `usage` answer queries, each within the `Scope` of a user. `answers` defines the queries of the web page and the
commands. `tally` computes the usage of queues, and `publish` publishes this usage. Start reading at `model`, and
continue with `entries`.
"""
