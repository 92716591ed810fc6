"""Explanations of the planner's decisions about a gang or pod, and of changes that would lead to other decisions.

The package runs the planner's own cycle over a dump of the cluster (read live, or from a file of `muster snapshot`) and
derives the explanation from the decisions. Explanations therefore cannot contradict the planner. The package does no
I/O, reads no clock and writes nothing. The package must not import muster.kube, musterctl, or modules of the extender
that serve requests or write to the API server.

Start reading at `whatif`, which runs cycles over a dump, and continue with `gang`. `relief` tests changes that would
let a gang start; for example, the workloads in `holders` end and free capacity. `changes` applies changes to a dump.
`text` formats reports as text.
"""
