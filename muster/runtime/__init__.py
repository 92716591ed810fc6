"""What is in a pod: plugins turn a workload into an immutable plan of pod sets, counts, slots, endpoints and env.

Three steps, whatever the way in:

1. Somebody describes the workload as an `Info` (`info`): `train_job.describe(train_job, runtime, target=...)` for a
   TrainJob with its runtime, `workload.describe(framework, adapter, spec, ...)` for pods whose owner an adapter
   (`muster.workloads`) can question: my rank, how many we are, where rank 0 is.
2. `registry.framework()` has the plugins in fixed order. `framework.validate(info)` gathers all errors and warnings
   (`muster.api.fields.Findings`); `framework.plan(info)` ends in a frozen `Plan` (`plan`), where each variable knows
   the plugin that set it and what it follows from; `framework.build(plan)` gives the objects to apply
   (`component.Component`).
3. `framework.compile(info)` does all of it, and `train_job.compile_train_job(train_job, runtime, framework, target)`
   from the two objects: `Compiled(plan, components, findings)`.

Volcano Jobs have plugins of their own (`muster.volcano.plugins`).

`protocols` has the eight kinds of plugin, `settings` the parameters of users, `values` what a variable can hold.
Promises to be pure: owners, pods, runtimes, keys and times are handed in. It must not import muster.kube, and does no
I/O.
"""
