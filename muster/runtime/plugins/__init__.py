"""Built-in plugins for frameworks, gangs and targets; `registry` lists them in order.

Plugins are pure: a plugin reads and changes only its argument, an `Info`. The plugins must not import `registry`.
Readers of the code start with `simple`, then `torch`; `shared` contains functions that several plugins use.
"""
