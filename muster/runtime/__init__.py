"""The runtime framework, whose plugins compute a workload's immutable plan: pod sets, counts, slots, endpoints, env.

An `Info` (`info`) describes a workload. An `Info` is created by `train_job.describe(train_job, runtime, target=...)`
for a TrainJob with its runtime. For pods whose owner has an adapter (`muster.workloads`), it is created by
`workload.describe(framework, adapter, spec, ...)`. `registry.framework()` has the plugins in fixed order;
`validate(info)` collects all errors and warnings (`muster.api.fields.Findings`). `plan(info)` returns a frozen `Plan`
(`plan`), in which each variable has its source and the plugin that set it. `build(plan)` returns the objects to apply
(`plan.Component`). `compile(info)` does all these steps. Volcano Jobs have their own plugins
(`muster.volcano.plugins`).

`framework` has the eight kinds of plugins, and `settings` the parameters of users. The package is pure: callers pass
owners, pods, runtimes, keys and times. The package must not import muster.kube, and does no I/O.
"""
