"""Gangs as shown to users.

Each gang is a row with its state and reason, its pods by rank, its nodes and its expected start.

The web page and the command line show these rows, and the processes below them may use this package. Start reading at
`rows`: one row per gang, for each kind of workload. `states` explains the state and the reason for waiting, and `words`
shortens texts for lists. `members` finds a gang by name, with its pods, and `nodes` has one row per node. `forecast`
computes expected starts: `runs` collects past run times, and `starts` simulates the cluster.

The whole package is pure: it gets the API objects that its caller may read, and returns rows. The package imports only
the shared packages. The package must not import the processes, the web page or the command line.
"""
