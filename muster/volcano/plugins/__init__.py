"""Job plugins: the additions of a Volcano Job's `spec.plugins` to its pods, and their objects.

`base.JobPlugin` is the base class and reads the arguments. `registry` lists the plugins in the order in which they run,
in any order in the Job, and brings those of other packages. A plugin is pure: it finds mistakes of a Job, adds to its
pods and describes its objects; the webhook refuses, the extender plans and the controller creates by that. Plugins must
not call an API server, read a clock or draw random numbers. Start with `ranks.Env`, the smallest, then `frameworks`.
"""
