"""The runtime framework: plugins make an immutable plan of a workload's pod sets, counts, slots, endpoints and env.

An `Info` (`info`) describes a workload. It is made by `train_job.describe(train_job, runtime, target=...)` for a
TrainJob with its runtime, by `workload.describe(framework, adapter, spec, ...)` for pods whose owner has an adapter
(`muster.workloads`). `registry.framework()` has the plugins in fixed order: `validate(info)` gathers all errors and
warnings (`muster.api.fields.Findings`). `plan(info)` ends in a frozen `Plan` (`plan`), where each variable knows the
plugin that set it and its source. `build(plan)` gives the objects to apply (`plan.Component`). `compile(info)` does all
of it. Volcano Jobs have plugins of their own (`muster.volcano.plugins`).

`framework` has the eight kinds of plugin, `settings` the parameters of users. The package is pure: callers pass owners,
pods, runtimes, keys and times. It must not import muster.kube, and does no I/O.
"""
