"""Job plugins: the additions of a Volcano Job's `spec.plugins` to its pods, and their objects.

`base.JobPlugin` is the base class and reads the arguments. `registry` lists the plugins in execution order, which does
not depend on the order in the Job, and loads plugins of other packages. A plugin is pure: it finds mistakes of a Job,
adds to its pods and describes its objects. The webhook uses it to refuse, the extender to plan and the controller to
create. Plugins must not call an API server, read a clock or draw random numbers. Start with `ranks.Env`, the smallest,
then `frameworks`.
"""
