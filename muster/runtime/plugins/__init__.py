"""Built-in plugins for frameworks, gangs and targets; `registry` lists them in order.

Plugins are pure: a plugin reads and changes only its argument, which is an `Info`. Modules of plugins must not import
`registry`. Start reading at `simple`, then continue with `torch`. `shared` contains functions that several plugins use.
"""
