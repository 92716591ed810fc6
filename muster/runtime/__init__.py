"""The runtime framework, whose plugins compute a workload's immutable plan: pod sets, slots, endpoints and variables.

An `Info` (`info`) describes a workload. `train_job.describe(train_job, runtime, target=...)` creates the `Info` of a
TrainJob with its runtime. `workload.describe(framework, adapter, spec, ...)` creates the `Info` of pods whose owner has
an adapter (`muster.workloads`). `registry.framework()` returns the framework with its plugins in fixed order.
`validate(info)` collects all errors and warnings (`muster.api.fields.Findings`). `plan(info)` returns a frozen `Plan`
(`plan`), in which each variable has its source and the plugin that set it. `build(plan)` returns the objects to apply
(`plan.Component`). `compile(info)` validates, plans and builds. Volcano Jobs have their own plugins
(`muster.volcano.plugins`).

`framework` defines the eight kinds of plugins, and `settings` the parameters that users can set. The package's
functions are pure: callers pass owners, pods, runtimes, keys and times. The package `muster.runtime` must not import
muster.kube, and does no I/O.
"""
