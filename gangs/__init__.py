"""Gangs as users see them.

A row for each, with its state and reason, its pods by rank, its nodes and its expected start.

The web page and the command line show these rows, and the processes below them may use this package. Start reading at
`rows`: a row per gang, for each kind of workload. `states` explains the state and the reason for waiting, `words`
shortens texts for lists, `members` finds a gang by name and its pods, `nodes` has a row per node. `forecast` computes
expected starts: `runs` collects past run times, and `starts` simulates the cluster.

The whole package is pure: it takes the API objects that its caller may read and returns rows. It imports only the
shared packages, and must not import the processes, the web page or the command line.
"""
