"""Job plugins: what a Volcano Job's `spec.plugins` adds to its pods and beside them, one module per plugin.

`base.Plugin` is what a plugin is, `flags` how its arguments are read, and `registry` which plugins there are and in
what order they run, whatever the order in the Job: a new one is a module here and a line there. Those of other packages
come through `third_party`. A plugin is pure: it says what is wrong with a Job, what its pods are to have and which
objects it needs; the webhook refuses, the extender plans and the controller creates by that. Plugins must not talk to
an API server, read a clock or draw random numbers. Start with `env`, the smallest, then `pytorch`.
"""
