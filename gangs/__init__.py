"""Gangs as rows of lists for users.

Each row has a gang's state and reason, its pods by rank, its nodes and its expected start.

The web page and the command line show the rows. Start reading at `rows`, which builds one row per gang, for each kind
of workload. `states` explains the state and the reason for waiting, and `words` shortens texts for lists. `members`
finds a gang and its pods by name, and `nodes` builds one row per node. `forecast` computes expected starts: `runs`
collects past run times, and `starts` simulates the cluster.

All functions are pure: they compute rows from API objects that the caller has read. The package imports only the shared
package `muster`, and must not import the packages of the processes, the web page or the command line.
"""
