"""Mutations: what Muster adds to objects before they are validated and stored.

A module per kind has the handler: `pod`, `workload` (batch Jobs, Deployments, JobSets, …), `job` (of Volcano),
`podgroup`, `queue` and `trainjob`. Start reading at `pod`, where the steps stand in their order. What several of them
need: `optin` (who opts in, and to which queue), `podreview` (what travels from step to step), `resourcegroup`,
`scheduling` (scheduler, gang, gates, markers), `shape` (what a framework needs) and `reapply` (a Job that is written
again).

Promises to be functions of the object and of what was looked up, to write only what is not there yet, so that a second
review changes nothing, and to say for each addition why it is there. It does no I/O of its own, and must not import
webhook.validate.
"""
