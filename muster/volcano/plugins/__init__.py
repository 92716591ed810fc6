"""Job plugins, which a Volcano Job names in `spec.plugins`, and which change its pods and create objects.

`base.JobPlugin` is the base class, and parses the arguments. `registry` lists the plugins in execution order, which
does not depend on their order in the Job, and loads plugins of other packages. A plugin is pure: it finds errors in a
Job, changes the Job's pods, and describes objects to create. The webhook uses plugins to reject Jobs, the extender to
plan, and the controller to create objects. Plugins must not call an API server, read a clock or use random numbers.
Start reading at `ranks.Env`, the smallest plugin, then continue with `frameworks`.
"""
