"""Answers to "why": what the planner would decide about a gang or pod, and what would change that.

It runs the planner's own cycle over a picture of the cluster (read live, or from a file of `muster snapshot`) and
reads the answer off the decisions, so that it cannot say anything else than the planner. It promises no I/O, no clock
and no writes. It must not import muster.kube, musterctl, or the parts of the extender that serve or write.

Start at `whatif`, the picture brought to life, then `gang`, which reads the answer off a cycle; `relief` tries what
would help, `simulation` what would come next, `text` puts all of it into words.
"""
