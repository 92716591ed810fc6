"""Job plugins, which `spec.plugins` of a Volcano Job names, and which add to its pods and create objects.

`base.JobPlugin` is the base class, and parses the arguments. `registry` lists the plugins in execution order, which
does not depend on their order in the Job, and loads plugins of other packages. A plugin is pure: it finds errors of a
Job, adds to the Job's pods and describes its objects. The webhook uses plugins to refuse Jobs, the extender to plan,
and the controller to create objects. Plugins must not call an API server, read a clock or use random numbers. Readers
of the code start with `ranks.Env`, the smallest plugin, then `frameworks`.
"""
