"""Answers to "why": the planner's decision about a gang or pod, and changes that would lead to another one.

It runs the planner's own cycle over a dump of the cluster (read live, or from a file of `muster snapshot`) and reads
the answer from the decisions. So it cannot contradict the planner. The package uses no I/O and no clock, and writes
nothing. It must not import muster.kube, musterctl, or the parts of the extender that serve or write.

Start at `whatif`, which runs cycles over a dump, then `gang`, which takes its `verdict` from a cycle. `relief` tests
changes that would let a gang start; `changes` makes changed dumps. `text` formats reports as text.
"""
