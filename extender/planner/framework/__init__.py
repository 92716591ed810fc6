"""The session framework: the interfaces through which plugins and actions read and change the planned state.

`snapshot` is the copy of the state for one cycle, and `inputs` has all inputs of a cycle. `session` is one cycle over
the snapshot, and `freecapacity` computes the number of pods that fit on nodes. `hooks` is the table of all functions
that a plugin can register. `answers` has the return types of hooks, `ordering` has the order of gangs, `statement` is
the log that makes a trial reversible, and `decisions` has the output of a cycle. `shortage` explains why a gang does
not fit; `registry` and `config` determine the plugins and actions. `planner.ask`, outside this package, computes the
demand of one gang.

The package does no I/O and reads no clock: objects and times are passed as arguments. The package imports
`planner.topology`, `planner.state` and `planner.reasons`, and must not import muster.kube or other parts of the
extender. Start reading at `session`.
"""
