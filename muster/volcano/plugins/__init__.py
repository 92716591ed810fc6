"""Job plugins: the additions of a Volcano Job's `spec.plugins` to its pods, and their objects, one module per plugin.

`base.Plugin` is the base class, `flags` reads the arguments, and `registry` lists the plugins in the order in which
they run, whatever the order in the Job: a new one is a module here and a line there. Those of other packages come
through `third_party`. A plugin is pure: it finds mistakes of a Job, adds to its pods and describes its objects; the
webhook refuses, the extender plans and the controller creates by that. Plugins must not call an API server, read a
clock or draw random numbers. Start with `env`, the smallest, then `pytorch`.
"""
