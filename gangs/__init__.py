"""Views of gangs for users: a row for each, its state and reason, its pods by rank, its nodes, its expected start.

The page and the command line show it, and the processes below them may use it. Start reading at `rows`: a row per gang,
for each kind of workload. `states` decides its state and says why it waits, `words` says things briefly,
`members` finds a gang by name and its pods, `nodes` has a row per node. `forecast` says when gangs will start: `runs`
has the past run times, `starts` plays the cluster forward.

Promises that all of it is pure: objects of the API that its caller may read come in, and rows go out. It
imports the shared kernel alone, and must not import the processes, the page or the command line.
"""
