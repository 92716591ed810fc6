"""Gangs as users see them in lists.

Each gang is a row with its state and reason, its pods by rank, its nodes and its expected start.

The web page and the command line show the rows. Readers of the code start with `rows`: one row per gang, for each kind
of workload. `states` explains the state and the reason for waiting, and `words` shortens texts for lists. `members`
finds a gang by name, with its pods, and `nodes` has one row per node. `forecast` computes expected starts: `runs`
collects past run times, and `starts` simulates the cluster.

All functions are pure: they return rows for the API objects that the caller has read. The package imports only the
shared package `muster`, and must not import the processes, the web page or the command line.
"""
